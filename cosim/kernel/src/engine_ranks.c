/* What a rank may start: its program's dependencies and streams, iteration after iteration. */
#include "kernel.h"

/* Look at a rank in the next round of starts. Once a round is enough: it will look at all that is ready by then. */
static void touch(struct engine *engine, int64_t number) {
  struct rank *rank = &engine->ranks[number];
  if (rank->touched) return;
  rank->touched = 1;
  PUSH_DUE(engine, touched, engine->state.round + 1, number, 0, 0, (int32_t)number, 0);
}

/* Whether an operation goes before another: those that are ahead, then by iteration, then by number. Slots go round, so
 * those before the oldest iteration's are of later ones. `ops` are of its program. */
static inline bool goes_before(const struct operation *ops, const struct rank *rank, int32_t one, int32_t other) {
  if ((ops[one].ahead > 0) != (ops[other].ahead > 0)) return ops[one].ahead > 0;
  return (one >= rank->origin) == (other >= rank->origin) ? one < other : one >= rank->origin;
}

/* Put an operation into the heap of its lane, the first of the oldest iteration first; whether it may start, for
 * nothing holds its stream. */
static bool make_ready(struct engine *engine, const struct rank *rank, int32_t op) {
  const struct program *program = &engine->programs[rank->program];
  const struct operation *ops = &engine->ops[program->op0];
  int64_t number = ops[op].lane;
  struct lane *lane = &engine->lanes[rank->lane0 + number];
  struct rank_cell *cells = engine->cells + rank->cell0 + engine->lane_base[program->lane0 + number];
  int64_t at = lane->count++;
  while (at > 0) {
    int64_t parent = (at - 1) >> 1;
    if (goes_before(ops, rank, cells[parent].ready, op)) break;
    cells[at].ready = cells[parent].ready;
    at = parent;
  }
  cells[at].ready = op;
  /* The last lane is no stream: nobody holds it. */
  return lane->busy == NONE || number + 1 == program->lanes;
}

/* Whether the first operation that is ready in a lane may start now; if so, it is counted. */
static bool takes_its_turn(struct engine *engine, const struct rank *rank, int64_t number) {
  struct lane *lane = &engine->lanes[rank->lane0 + number];
  const struct program *program = &engine->programs[rank->program];
  if (program->ahead == 0) return true;
  int64_t base = engine->lane_base[program->lane0 + number];
  bool ahead = engine->ops[program->op0 + engine->cells[rank->cell0 + base].ready].ahead > 0;
  if (!ahead && lane->owed > 0 && lane->ahead > 0) return false;
  lane->owed += ahead ? -1 : 1;
  lane->ahead -= ahead;
  return true;
}

/* Take the first operation that is ready in a lane of a rank, which has one. */
static int64_t take_ready(struct engine *engine, const struct rank *rank, int64_t number) {
  struct lane *lane = &engine->lanes[rank->lane0 + number];
  const struct program *program = &engine->programs[rank->program];
  const struct operation *ops = &engine->ops[program->op0];
  int64_t base = engine->lane_base[program->lane0 + number];
  struct rank_cell *cells = engine->cells + rank->cell0 + base;
  int64_t count = --lane->count, at = 0;
  int32_t taken = cells[0].ready, last = cells[count].ready;
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && goes_before(ops, rank, cells[child + 1].ready, cells[child].ready)) child++;
    if (!goes_before(ops, rank, cells[child].ready, last)) break;
    cells[at].ready = cells[child].ready;
    at = child;
  }
  cells[at].ready = last;
  return taken;
}

/* Whether a rank has an iteration left to begin, and may now. */
static bool may_begin(const struct engine *engine, const struct rank *rank) {
  const struct job *job = &engine->jobs[rank->job];
  return rank->iteration + 1 < job->iterations && rank->iteration + 1 - rank->oldest < job->open;
}

/* A rank is done with its oldest iteration: whether all of its job are, is what a repeated interval begins with. */
static inline void note_end(struct engine *engine, const struct rank *rank) {
  struct repeats *repeats = engine->repeats;
  if (repeats == NULL) return;
  struct repeated_job *job = &repeats->jobs[rank->job];
  if (rank->oldest == job->ended && --job->behind == 0) repeats->state.due = repeats->state.ended = 1;
}

/* A rank's oldest iteration has ended, and with it those after it that ended before: have their slots ready for the
 * next. */
static void close_iterations(struct engine *engine, struct rank *rank, int64_t now) {
  const struct program *program = &engine->programs[rank->program];
  const struct job *job = &engine->jobs[rank->job];
  int64_t slots = 2 * (int64_t)job->open - 1;
  for (; rank->oldest <= rank->iteration; rank->oldest++) {
    int64_t slot = rank->oldest % slots, first = slot * program->ops;
    if (engine->slots[rank->slot0 + slot].left > 0) break;
    engine->iteration_ends[job->end0 + (int64_t)rank->oldest * job->ranks + rank->number] = now;
    note_end(engine, rank);
    /* The slot is the next iteration's to come: from now on, ends of iterations before that one count here. */
    for (int64_t op = first; op < first + program->ops; op++)
      engine->cells[rank->cell0 + op].waits = engine->ops[program->op0 + op].waits;
  }
  rank->origin = (int32_t)(rank->oldest % slots * program->ops);
}

/* Begin a rank's next iteration, which it may; an empty program ends as it begins. */
static void begin_iteration(struct engine *engine, int64_t number, int64_t now) {
  struct rank *rank = &engine->ranks[number];
  const struct program *program = &engine->programs[rank->program];
  int64_t slots = 2 * (int64_t)engine->jobs[rank->job].open - 1;
  /* No iteration comes before the first: nothing waits for one. */
  if (rank->iteration == NONE)
    for (int64_t op = 0; op < slots * program->ops; op++) {
      const struct operation *one = &engine->ops[program->op0 + op];
      engine->cells[rank->cell0 + op].waits = one->waits - one->early;
    }
  rank->iteration++;
  int64_t slot = rank->iteration % slots, first = slot * program->ops;
  engine->slots[rank->slot0 + slot] = (struct rank_slot){rank->iteration, program->ops};
  /* What depends on nothing waits for its iteration alone. */
  for (int64_t k = program->root0; k < program->root0 + program->roots; k++) {
    int64_t root = first + engine->roots[k];
    if (--engine->cells[rank->cell0 + root].waits == 0) make_ready(engine, rank, (int32_t)root);
  }
  if (program->ops > 0) {
    touch(engine, number);
  } else if (rank->oldest == rank->iteration) {
    rank->finish = now;
    close_iterations(engine, rank, now);
  }
}

/* An operation ended: write it down, free its stream, let its successors follow; whether the rank's oldest iteration
 * ended with it. */
static bool end_operation(struct engine *engine, int64_t number, int64_t op, int64_t now, int64_t cause) {
  if (is_driven(engine, number)) {
    end_issued(engine, number, op, now, cause);
    return false;
  }
  struct rank *rank = &engine->ranks[number];
  const struct program *program = &engine->programs[rank->program];
  const struct operation *one = &engine->ops[program->op0 + op];
  struct rank_cell *cell = &engine->cells[rank->cell0 + op];
  struct rank_slot *slot = &engine->slots[rank->slot0 + one->slot];
  log_operation(engine, number, one->number, slot->iteration, cell->started, now);
  cell->started = NONE;
  /* Only ends of this round count: those of rounds before have let start what they could. */
  if (rank->cause_round != engine->state.round + 1) {
    rank->cause_round = engine->state.round + 1;
    rank->cause = 0;
  }
  rank->cause = most(rank->cause, cause);
  /* Whether there is something to start: most ends let nothing follow, and to look costs as much as to end. */
  bool starts = false;
  if (one->lane + 1 < program->lanes) {
    struct lane *lane = &engine->lanes[rank->lane0 + one->lane];
    lane->busy = NONE;
    starts = lane->count > 0;
  }
  for (int64_t k = one->first; k < one->last; k++) {
    int32_t successor = engine->successors[k];
    if (--engine->cells[rank->cell0 + successor].waits == 0 && make_ready(engine, rank, successor)) starts = true;
  }
  rank->finish = now;
  if (starts) touch(engine, number);
  /* An iteration that ends before an older one keeps its slot until that has ended: slots are a ring. */
  if (--slot->left > 0 || slot->iteration > rank->oldest) return false;
  close_iterations(engine, rank, now);
  return true;
}
