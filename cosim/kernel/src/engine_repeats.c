/* What repeats is not computed again: an interval between two states that are the same is taken from the one before.
 *
 * Jobs that share no link and no memory have nothing to do with each other: they are parts, each of which repeats on its
 * own. A part is named by one of its jobs. What a job uses is known once it has ended an iteration, for all are alike.
 *
 * A part's state is looked at after an iteration of one of its jobs has ended on all ranks, as soon as nothing of it is
 * under way on the network, and before anything starts then. Then nothing but the following decides what comes: where
 * each rank is in its program, what it computes and until when, whom it waits for, and what the network keeps in mind of
 * its links. All of it is told by a digest of 128 bits, times from now on and iterations from those that all ranks ended.
 * If it is that of an earlier state, the interval up to the next such state is simulated once more, and kept: operations,
 * completions, what links carried. If the digest is the same again, the part sleeps for as long as the interval takes, is
 * then told all that happened, each time later, and sleeps again; as long as nothing else may come: the end of a job, a
 * change of a link, somebody who has a word.
 */
#include "kernel.h"

enum {
  MOST_SEEN = 16, /* states in mind; a power of two */
  MOST_KEPT = 1 << 22, /* operations, completions and uses of intervals: each takes up to 56 bytes */
};

/* Each part. */
#define FOR_PARTS(repeats, p)                                        \
  for (int64_t k_ = 0, p; k_ < (repeats)->state.num_running; k_++)   \
    if (p = (repeats)->running[k_], (repeats)->jobs[p].part == p)
/* Each job of a part, and each of its ranks. */
#define FOR_JOBS(repeats, j, p)                                      \
  for (int64_t k_ = 0, j; k_ < (repeats)->state.num_running; k_++)   \
    if ((repeats)->jobs[j = (repeats)->running[k_]].part == (p))
#define FOR_RANKS(engine, r, p)                                      \
  FOR_JOBS((engine)->repeats, j_, p)                                 \
  for (int64_t r = (engine)->jobs[j_].rank0; r < (engine)->jobs[j_].rank0 + (engine)->jobs[j_].ranks; r++)

static inline int64_t part_of_rank(const struct engine *engine, int64_t rank) {
  return engine->repeats->jobs[engine->ranks[rank].job].part;
}

static inline int64_t part_of_group(const struct engine *engine, int64_t group) {
  int64_t job = engine->repeats->group_jobs[group];
  return job == NONE ? NONE : engine->repeats->jobs[job].part;
}

/* The job of a message of which one end is posted. */
static inline const struct repeated_job *job_of(const struct engine *engine, const struct message *one) {
  return &engine->repeats->jobs[engine->ranks[one->send_rank != NONE ? one->send_rank : one->recv_rank].job];
}

/* -- parts ------------------------------------------------------------------------------------------------------------------ */

static int64_t root_of(const struct repeats *repeats, int64_t job) {
  while (repeats->jobs[job].part != job) job = repeats->jobs[job].part;
  return job;
}

/* A job uses what another may use, too. */
static void use(struct repeats *repeats, int32_t *user, int64_t job) {
  int64_t root = root_of(repeats, job);
  if (*user == NONE)
    *user = (int32_t)root;
  else
    repeats->jobs[root].part = root_of(repeats, *user);
}

/* A job uses the links of its flows. */
static void use_links(const struct engine *engine, const struct core *core, const struct claim *claim) {
  const struct binding *bound = &engine->bindings[claim->binding];
  const struct flow_block *last = &engine->blocks[bound->block + bound->blocks - 1];
  int64_t first = bound->path + core->store->tables[bound->table].row;
  for (int64_t at = first; at < first + last->row + last->rows; at++) {
    int64_t path = path_now(core, at);
    for (int64_t k = core->path_ptr[path]; k < core->path_ptr[path + 1]; k++)
      use(engine->repeats, &core->kept->users[core->path_link[k]], claim->job);
  }
}

/* Which job each group is of. */
static void find_group_jobs(struct engine *engine) {
  struct repeats *repeats = engine->repeats;
  RESERVE(repeats, group_jobs, engine->groups_len);
  for (int64_t k = 0; k < engine->groups_len; k++) repeats->group_jobs[k] = NONE;
  for (int64_t c = 0; c < engine->comms_len; c++) {
    const struct comm *comm = &engine->comms[c];
    if (comm->size > 0) repeats->group_jobs[comm->group] = engine->ranks[engine->comm_ranks[comm->rank0]].job;
  }
}

/* The longest that a stream of a rank computes in each iteration. */
static int64_t least_time(const struct engine *engine, const struct rank *rank) {
  const struct program *program = &engine->programs[rank->program];
  int64_t longest = 0;
  for (int64_t lane = 0; lane + 1 < program->lanes; lane++) {
    int64_t time = 0;
    for (const struct operation *one = engine->ops + program->op0; one < engine->ops + program->op0 + program->ops; one++)
      if (one->lane == lane && one->kind == OP_COMPUTE) time += one->duration;
    longest = most(longest, time);
  }
  return longest;
}

/* What is kept of intervals is of no use. */
static void forget_rows(struct repeats_state *state, struct core *core) {
  state->num_ops = state->num_flows = state->num_sums = state->num_collectives = state->num_messages = 0;
  core->kept->count = 0;
}

/* Find out who has to do with whom; whether that is known of all. */
static bool find_parts(struct engine *engine, struct core *core) {
  struct repeats *repeats = engine->repeats;
  struct repeats_state *state = &repeats->state;
  FOR_PARTS(repeats, p) if (repeats->parts[p].asleep > 0) return false;
  RESERVE(repeats, running, repeats->jobs_len);
  RESERVE(repeats, parts, repeats->jobs_len);
  RESERVE(repeats, seen, MOST_SEEN * repeats->jobs_len);
  state->num_running = 0;
  for (int64_t j = 0; j < repeats->jobs_len; j++) {
    const struct rank *first = &engine->ranks[engine->jobs[j].rank0];
    struct repeated_job *job = &repeats->jobs[j];
    job->part = NONE;
    if (engine->jobs[j].ranks == 0 || first->iteration == NONE || job->ended == engine->jobs[j].iterations) continue;
    repeats->running[state->num_running++] = (int32_t)j;
    job->part = j;
    job->least = least_time(engine, first);
  }
  for (int64_t k = 0; k < state->num_running; k++)
    if (repeats->jobs[repeats->running[k]].ended == 0) return false;
  int64_t links = core->link_busy_cols, claims = state->num_claims, all = links + engine->free_at_len;
  RESERVE(core->kept, users, all);
  int32_t *users = core->kept->users, *device_users = users + links;
  for (int64_t k = 0; k < all; k++) users[k] = NONE;
  state->num_claims = 0;
  for (int64_t k = 0; k < claims; k++) {
    struct claim claim = repeats->claims[k];
    if (repeats->jobs[claim.job].part == NONE) continue; /* it is over */
    repeats->claims[state->num_claims++] = claim;
    use_links(engine, core, &claim);
  }
  for (int64_t k = 0; k < state->num_running; k++) {
    int64_t j = repeats->running[k], first = engine->jobs[j].rank0;
    for (int64_t r = first; r < first + engine->jobs[j].ranks; r++)
      if (engine->ranks[r].device != NONE) use(repeats, &device_users[engine->ranks[r].device], j);
  }
  for (int64_t k = 0; k < all; k++)
    if (users[k] != NONE) users[k] = (int32_t)root_of(repeats, users[k]);
  for (int64_t k = 0; k < state->num_running; k++) {
    int64_t j = repeats->running[k];
    repeats->jobs[j].part = root_of(repeats, j);
    repeats->parts[j] = (struct repeated_part){.due = 1};
  }
  find_group_jobs(engine);
  forget_rows(state, core);
  state->is_full = state->stale = 0;
  return true;
}

/* -- the state -------------------------------------------------------------------------------------------------------------- */

static inline void stir(uint64_t *digest, int64_t value) {
  digest[0] = mix(digest[0] + (uint64_t)value + GOLDEN);
  digest[1] = mix((digest[1] ^ (uint64_t)value) * 0xD1342543DE82EF95 + GOLDEN);
}

static inline int64_t bits_of(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* What a rank has under way, and what it may start. */
static void stir_rank(const struct engine *engine, const struct rank *rank, int64_t ended, uint64_t *digest) {
  const struct program *program = &engine->programs[rank->program];
  int64_t slots = 2 * (int64_t)engine->jobs[rank->job].open - 1, now = engine->state.now;
  stir(digest, rank->iteration - ended);
  stir(digest, rank->oldest - ended);
  stir(digest, rank->origin);
  stir(digest, rank->touched);
  stir(digest, rank->cause_round > engine->state.round ? now - rank->cause : -1);
  for (int64_t k = 0; k < slots; k++) {
    const struct rank_slot *slot = &engine->slots[rank->slot0 + k];
    stir(digest, slot->iteration - ended);
    stir(digest, slot->left);
  }
  for (int64_t op = 0; op < slots * program->ops; op++) {
    const struct rank_cell *cell = &engine->cells[rank->cell0 + op];
    stir(digest, cell->started == NONE ? -1 - (int64_t)cell->waits : now - cell->started);
  }
  for (int64_t k = 0; k < program->lanes; k++) {
    const struct lane *lane = &engine->lanes[rank->lane0 + k];
    const struct rank_cell *heap = engine->cells + rank->cell0 + engine->lane_base[program->lane0 + k];
    stir(digest, lane->busy);
    stir(digest, lane->count);
    stir(digest, lane->owed);
    stir(digest, lane->ahead);
    for (int64_t at = 0; at < lane->count; at++) stir(digest, heap[at].ready);
  }
}

/* Messages of which one end is posted. */
static void stir_messages(const struct engine *engine, int64_t part, uint64_t *digest) {
  for (int64_t c = 0; c < engine->channels_len; c++)
    for (int64_t at = engine->channels[c].head; at != NONE; at = engine->messages[at].next) {
      const struct message *one = &engine->messages[at];
      const struct repeated_job *job = job_of(engine, one);
      if (job->part != part) break; /* a channel is of one job */
      stir(digest, c);
      stir(digest, one->size);
      stir(digest, one->requested << 1 | one->arrived);
      stir(digest, one->send_rank);
      stir(digest, one->recv_rank);
      if (one->send_rank != NONE) {
        stir(digest, one->send_op);
        stir(digest, one->send_iteration - job->ended);
      } else {
        stir(digest, one->recv_op);
        stir(digest, one->recv_iteration - job->ended);
        stir(digest, one->port);
      }
    }
}

/* What will end, in any order: heaps of the same events may lie differently. */
static void stir_agenda(const struct engine *engine, int64_t part, uint64_t *digest) {
  uint64_t sums[2] = {0, 0};
  for (int64_t k = 0; k < engine->state.num_agenda; k++) {
    const struct due *one = &engine->agenda[k];
    if (one->b == WAKE || part_of_rank(engine, one->a) != part) continue;
    uint64_t own[2] = {1, 2};
    stir(own, one->time - engine->state.now);
    stir(own, one->cause - engine->state.now);
    stir(own, one->high);
    stir(own, one->low);
    sums[0] += own[0];
    sums[1] += own[1];
  }
  stir(digest, (int64_t)sums[0]);
  stir(digest, (int64_t)sums[1]);
}

/* What links that carry nothing are left with. */
static void stir_fair_links(const struct fluid *fluid, const int32_t *users, int64_t part, uint64_t *digest) {
  for (int64_t k = 0; k < fluid->links_len; k++) {
    if (users[k] != part) continue;
    const struct fluid_link *link = &fluid->links[k];
    stir(digest, bits_of(link->capacity));
    stir(digest, link->load);
    stir(digest, bits_of(link->full_level));
    stir(digest, link->full_priority);
    stir(digest, (int64_t)link->rechecks << 32 | link->room << 16 | link->kept);
  }
}

/* Whether all that ends now has ended, and a round of starts is next, or a later instant. */
static bool is_between_rounds(const struct engine *engine) {
  const struct engine_state *state = &engine->state;
  return state->at_rank == NONE && state->begins_at == state->num_begins && state->num_reactions == 0 &&
         state->num_ending == 0 && state->enters_at == state->num_enters && state->pumps_at == state->num_pumps &&
         state->dispatches_at == state->num_dispatches && state->hold != state->now &&
         (state->num_agenda == 0 || engine->agenda[0].time > state->now);
}

/* Whether nothing of a part is under way on the network, or on its way there. */
static bool is_quiet(const struct engine *engine, const struct core *core, const void *columns, int64_t part) {
  const struct repeats *repeats = engine->repeats;
  FOR_JOBS(repeats, j, part) if (repeats->jobs[j].under_way > 0) return false;
  for (int64_t k = 0; k < core->link_busy_cols; k++) {
    if (core->kept->users[k] != part) continue;
    if (repeats->state.network == FAIR_LINKS) {
      const struct fluid_link *link = &((const struct fluid *)columns)->links[k];
      if (link->dirty != 0 || link->used > 0.0) return false;
    } else if (repeats->state.network == LINKS_IN_TURN) {
      if (((const struct link_queues *)columns)->links[k].free > engine->state.now) return false;
    }
  }
  return true;
}

/* A digest of the state of a part, which is quiet. */
static void digest_state(const struct engine *engine, const struct core *core, const void *columns, int64_t part,
                         uint64_t *digest) {
  const struct repeats *repeats = engine->repeats;
  FOR_RANKS(engine, r, part) stir_rank(engine, &engine->ranks[r], repeats->jobs[engine->ranks[r].job].ended, digest);
  for (int64_t k = 0; k < engine->groups_len; k++) {
    if (part_of_group(engine, k) != part) continue;
    /* Where an operation of an earlier iteration stopped is of no use to any that comes. */
    int64_t iteration = engine->groups[k].iteration - repeats->jobs[repeats->group_jobs[k]].ended;
    stir(digest, k);
    stir(digest, iteration < 0 ? -1 : iteration);
    stir(digest, iteration < 0 ? 0 : engine->groups[k].turn);
  }
  stir_messages(engine, part, digest);
  stir_agenda(engine, part, digest);
  for (int64_t k = 0; k < engine->free_at_len; k++)
    if (core->kept->users[core->link_busy_cols + k] == part) stir(digest, most(engine->free_at[k] - engine->state.now, 0));
  if (repeats->state.network == FAIR_LINKS) stir_fair_links(columns, core->kept->users, part, digest);
}

/* -- an interval is kept ---------------------------------------------------------------------------------------------------- */

/* Somebody changed what no digest tells. */
static void forget_repeats(struct engine *engine) {
  if (engine->repeats != NULL) engine->repeats->state.stale = 1;
}

/* An iteration ended on all ranks of some jobs: count anew. */
static void count_ended(struct engine *engine) {
  struct repeats *repeats = engine->repeats;
  repeats->state.ended = 0;
  for (int64_t j = 0; j < repeats->jobs_len; j++) {
    struct repeated_job *job = &repeats->jobs[j];
    if (job->behind > 0) continue;
    const struct rank *ranks = engine->ranks + engine->jobs[j].rank0;
    int64_t count = engine->jobs[j].ranks, ended = count > 0 ? ranks[0].oldest : 0;
    for (int64_t k = 0; k < count; k++) ended = least(ended, ranks[k].oldest);
    job->ended = ended;
    for (int64_t k = 0; k < count; k++) job->behind += ranks[k].oldest == ended;
    if (job->part != NONE) repeats->parts[job->part].due = 1;
  }
}

static int64_t next_change_of(const struct repeats *repeats, const void *columns) {
  return repeats->state.network == FAIR_LINKS ? ((const struct fluid *)columns)->changes->state.next : 0;
}

/* When a link changes next. */
static int64_t time_of_change(const struct repeats *repeats, const void *columns) {
  if (repeats->state.network != FAIR_LINKS) return NEVER;
  const struct change_list *list = ((const struct fluid *)columns)->changes;
  return list->state.next < list->changes_len ? list->changes[list->state.next].time : NEVER;
}

/* Write down what a part has done so far, and, called again, how much more it is by then: `sign` 1, then -1. */
static void take_marks(struct engine *engine, const struct core *core, const void *columns, int64_t part,
                       int64_t sign) {
  struct repeats *repeats = engine->repeats;
  struct repeated_part *one = &repeats->parts[part];
  RESERVE(repeats, link_bytes, core->link_busy_cols);
  RESERVE(repeats, oldest, repeats->state.ranks);
#define MARK(to, value) (to) = sign > 0 ? (value) : (value) - (to)
  MARK(one->time, engine->state.now);
  MARK(one->next_change, next_change_of(repeats, columns));
  FOR_JOBS(repeats, j, part) MARK(repeats->jobs[j].step, repeats->jobs[j].ended);
  for (int64_t k = 0; k < core->link_busy_cols; k++)
    if (core->kept->users[k] == part) MARK(repeats->link_bytes[k], core->link_bytes[k]);
  FOR_RANKS(engine, r, part) MARK(repeats->oldest[r], engine->ranks[r].oldest);
#undef MARK
}

static void set_recorder(struct repeats *repeats, struct core *core, int64_t part) {
  repeats->state.recorder = core->kept->part = part;
}

/* What is kept of an interval is of no use: have the room for others. */
static void drop_interval(struct repeats *repeats, struct core *core) {
  if (repeats->state.recorder == NONE) return;
  struct repeated_part *one = &repeats->parts[repeats->state.recorder];
  one->away = 0;
  repeats->state.num_ops = one->ops0;
  repeats->state.num_flows = one->flows0;
  core->kept->count = one->uses0;
  set_recorder(repeats, core, NONE);
}

static void begin_interval(struct engine *engine, struct core *core, const void *columns, int64_t part,
                           const uint64_t *digest, int64_t period) {
  struct repeats *repeats = engine->repeats;
  struct repeats_state *state = &repeats->state;
  struct repeated_part *one = &repeats->parts[part];
  bool is_first = true;
  FOR_PARTS(repeats, p) is_first = is_first && !repeats->parts[p].is_whole;
  if (is_first) forget_rows(state, core);
  memcpy(one->begin, digest, sizeof one->begin);
  one->away = period;
  one->ops0 = state->num_ops;
  one->flows0 = state->num_flows;
  one->uses0 = core->kept->count;
  one->collectives0 = state->num_collectives;
  one->messages0 = state->num_messages;
  state->collectives_before = engine->state.num_collective_log;
  state->messages_before = engine->state.num_kept;
  set_recorder(repeats, core, part);
  take_marks(engine, core, columns, part, 1);
}

/* Keep a part's collectives and messages that were written down. */
static void keep_rows(struct engine *engine, int64_t part) {
  struct repeats *repeats = engine->repeats;
  struct repeats_state *state = &repeats->state;
  for (int64_t k = state->collectives_before; k < engine->state.num_collective_log; k++) {
    if (part_of_rank(engine, engine->collective_log[k].rank) != part) continue;
    RESERVE(repeats, collectives, state->num_collectives + 1);
    repeats->collectives[state->num_collectives++] = engine->collective_log[k];
  }
  for (int64_t k = state->messages_before; k < engine->state.num_kept; k++) {
    if (repeats->jobs[engine->kept[k].key_high >> 51].part != part) continue;
    RESERVE(repeats, messages, state->num_messages + 1);
    repeats->messages[state->num_messages++] = engine->kept[k];
  }
}

/* Write down the sums that were made, and forget them: to be called again for each place that a sum was made at. */
static void write_sum(struct repeats *repeats, int64_t at) {
  if (repeats->scratch[at] == 0) return;
  RESERVE(repeats, sums, repeats->state.num_sums + 1);
  repeats->sums[repeats->state.num_sums++] = (struct repeated_sum){at, repeats->scratch[at]};
  repeats->scratch[at] = 0;
}

/* What arrivals of a part add up to, by bin of their times and by pair. */
static void sum_arrivals(const struct engine *engine, struct repeated_part *part) {
  struct repeats *repeats = engine->repeats;
  const struct repeated_flow *from = repeats->flows + part->flows0, *to = repeats->flows + part->flows;
  RESERVE(repeats, scratch, most(FCT_BINS, engine->traffic->state.num_pairs));
  part->arrivals = part->took = part->took_carries = 0;
  part->first_arrival = NEVER;
  part->last_arrival = 0;
  part->bins = repeats->state.num_sums;
  for (const struct repeated_flow *one = from; one < to; one++) {
    if (one->pair == NONE) continue;
    part->arrivals++;
    add_times(&part->took, &part->took_carries, one->took);
    part->first_arrival = least(part->first_arrival, one->time);
    part->last_arrival = most(part->last_arrival, one->time);
    repeats->scratch[one->bin]++;
  }
  for (const struct repeated_flow *one = from; one < to; one++)
    if (one->pair != NONE) write_sum(repeats, one->bin);
  part->pairs = repeats->state.num_sums;
  for (const struct repeated_flow *one = from; one < to; one++)
    if (one->pair != NONE) repeats->scratch[one->pair] += one->bytes;
  for (const struct repeated_flow *one = from; one < to; one++)
    if (one->pair != NONE) write_sum(repeats, one->pair);
}

/* How long each link was busy for a part. */
static void sum_uses(struct repeats *repeats, const struct core *core, struct repeated_part *part) {
  const struct link_use *from = core->kept->uses + part->uses0, *to = core->kept->uses + part->uses;
  RESERVE(repeats, scratch, core->link_busy_cols);
  part->links = repeats->state.num_sums;
  part->first_use = NEVER;
  part->last_use = 0;
  for (const struct link_use *one = from; one < to; one++) {
    part->first_use = least(part->first_use, one->start);
    part->last_use = most(part->last_use, one->end);
    repeats->scratch[one->link] += share_of_time(one->end - one->start, one->part);
  }
  for (const struct link_use *one = from; one < to; one++) write_sum(repeats, one->link);
}

/* How many bytes each link carried for part `number`. */
static void sum_bytes(struct repeats *repeats, const struct core *core, int64_t number) {
  struct repeated_part *part = &repeats->parts[number];
  part->bytes = repeats->state.num_sums;
  for (int64_t k = 0; k < core->link_busy_cols; k++) {
    if (core->kept->users[k] != number) continue;
    repeats->scratch[k] = repeats->link_bytes[k];
    write_sum(repeats, k);
  }
  part->bytes_end = repeats->state.num_sums;
}

/* The state at which the interval that is kept should end. */
static void end_interval(struct engine *engine, struct core *core, const void *columns, int64_t part,
                         const uint64_t *digest) {
  struct repeats *repeats = engine->repeats;
  struct repeated_part *one = &repeats->parts[part];
  take_marks(engine, core, columns, part, -1);
  one->is_whole = memcmp(one->begin, digest, sizeof one->begin) == 0 && one->next_change == 0 && one->time > 0;
  if (!one->is_whole) {
    drop_interval(repeats, core);
    return;
  }
  keep_rows(engine, part);
  one->ops = repeats->state.num_ops;
  one->flows = repeats->state.num_flows;
  one->uses = core->kept->count;
  one->collectives = repeats->state.num_collectives;
  one->messages = repeats->state.num_messages;
  one->times = 0;
  sum_arrivals(engine, one);
  sum_uses(repeats, core, one);
  sum_bytes(repeats, core, part);
  set_recorder(repeats, core, NONE);
}

/* Whether some job of a part has so many iterations to come that one can be repeated. */
static bool is_worth_it(const struct engine *engine, int64_t part) {
  const struct repeats *repeats = engine->repeats;
  FOR_JOBS(repeats, j, part) if (engine->jobs[j].iterations - repeats->jobs[j].ended > 3) return true;
  return false;
}

/* -- and repeated --------------------------------------------------------------------------------------------------------- */

/* Whether a job's end, of which somebody is told who may have others begin, may come up to `time`. */
static bool may_end(const struct engine *engine, int64_t job, int64_t time) {
  const struct repeated_job *one = &engine->repeats->jobs[job];
  const struct repeated_part *part = &engine->repeats->parts[one->part];
  int64_t left = engine->jobs[job].iterations - 1 - engine->ranks[engine->jobs[job].rank0].iteration;
  if (!engine->jobs[job].directed) return false;
  /* Undisturbed, a part that sleeps goes on like this; and nobody is disturbed before the first end of all. */
  if (part->asleep > 0 && one->step > 0) return left / one->step <= (time - part->asleep + part->time) / part->time;
  return one->least == 0 || left <= (time - engine->state.now) / one->least;
}

/* Whether nothing else comes before a part's interval would have ended again. */
static bool may_repeat(const struct engine *engine, const void *columns, int64_t part, int64_t until) {
  const struct repeats *repeats = engine->repeats;
  int64_t length = repeats->parts[part].time, now = engine->state.now;
  if (!repeats->parts[part].is_whole || length > until - now || length >= time_of_change(repeats, columns) - now)
    return false;
  FOR_RANKS(engine, r, part) {
    const struct rank *rank = &engine->ranks[r];
    int64_t step = repeats->jobs[rank->job].step;
    /* A rank that has begun its last iteration finds no other: nothing was as it is then. */
    if (step > 0 && rank->iteration + 1 + step >= engine->jobs[rank->job].iterations) return false;
  }
  for (int64_t k = 0; k < repeats->state.num_running; k++) {
    int64_t j = repeats->running[k];
    if (repeats->jobs[j].part != part && may_end(engine, j, now + length)) return false;
  }
  return true;
}

static void repeat_operations(struct engine *engine, const struct repeated_part *part) {
  const struct repeats *repeats = engine->repeats;
  int64_t later = part->times * part->time, job = NONE, iteration = NONE;
  uint64_t digest[2] = {0, 0}, of_iteration = 0;
  for (int64_t k = part->ops0; k < part->ops; k++) {
    struct ended_operation row = repeats->ops[k];
    const struct rank *rank = &engine->ranks[row.rank];
    row.start += later;
    row.end += later;
    row.iteration += (int32_t)(part->times * repeats->jobs[rank->job].step);
    if (rank->job != job || row.iteration != iteration) { /* neighbours mostly share them */
      job = rank->job;
      iteration = row.iteration;
      of_iteration = hash_iteration(job, iteration);
    }
    add_to_digest(digest, hash_operation(of_iteration, rank->number, row.op, row.start, row.end));
    log_row(engine, row);
  }
  engine->state.op_digest[0] += digest[0];
  engine->state.op_digest[1] += digest[1];
}

/* Count what arrives, by sums: whether all of it falls into one bin of time. */
static bool add_arrivals(struct engine *engine, const struct repeated_part *part) {
  struct engine_state *state = &engine->state;
  struct traffic *traffic = engine->traffic;
  const struct repeated_sum *sums = engine->repeats->sums;
  int64_t later = part->times * part->time, first = part->first_arrival + later, last = part->last_arrival + later;
  while (last >> traffic->state.bin_bits >= traffic->state.bins) widen_traffic(traffic);
  if (first >> traffic->state.bin_bits != last >> traffic->state.bin_bits) return false;
  for (int64_t k = part->bins; k < part->pairs; k++) engine->fct[sums[k].at] += sums[k].amount;
  for (int64_t k = part->pairs; k < part->links; k++) add_traffic(traffic, sums[k].at, sums[k].amount, last);
  add_times(&state->fct_sum, &state->fct_carries, part->took);
  state->fct_carries += part->took_carries;
  state->messages += part->arrivals;
  return true;
}

static void repeat_flows(struct engine *engine, struct core *core, const struct repeated_part *part) {
  const struct repeats *repeats = engine->repeats;
  int64_t later = part->times * part->time, count = part->flows - part->flows0;
  uint64_t digest[2] = {0, 0}, head = 0;
  int64_t high = -1;
  for (int64_t k = part->flows0; k < part->flows; k++) {
    const struct repeated_flow *one = &repeats->flows[k];
    if (one->key_high != high) { /* neighbours mostly share it */
      high = one->key_high;
      head = mix_in(0, high + (part->times * repeats->jobs[high >> 51].step << 31));
    }
    add_to_digest(digest, mix_in(mix_in(head, one->key_low), one->time + later));
  }
  engine->state.digest[0] += digest[0];
  engine->state.digest[1] += digest[1];
  if (part->arrivals > 0 && !add_arrivals(engine, part))
    for (int64_t k = part->flows0; k < part->flows; k++) {
      const struct repeated_flow *one = &repeats->flows[k];
      if (one->pair != NONE) count_arrival(engine, one->pair, one->bytes, one->time + later, one->took, one->bin);
    }
  core->state.num_started += count;
  core->state.num_completed += count;
  core->state.num_events += count;
}

/* Collectives and messages that were written down. */
static void repeat_rows(struct engine *engine, const struct repeated_part *part) {
  const struct repeats *repeats = engine->repeats;
  struct engine_state *state = &engine->state;
  int64_t later = part->times * part->time;
  RESERVE(engine, collective_log, state->num_collective_log + part->collectives - part->collectives0);
  for (int64_t k = part->collectives0; k < part->collectives; k++) {
    struct ended_collective *row = &engine->collective_log[state->num_collective_log++];
    *row = repeats->collectives[k];
    row->start += later;
    row->ready += later;
    row->end += later;
    row->iteration += (int32_t)(part->times * repeats->jobs[engine->ranks[row->rank].job].step);
  }
  RESERVE(engine, kept, state->num_kept + part->messages - part->messages0);
  for (int64_t k = part->messages0; k < part->messages; k++) {
    struct kept_message *row = &engine->kept[state->num_kept++];
    *row = repeats->messages[k];
    row->key_high += part->times * repeats->jobs[row->key_high >> 51].step << 31;
    row->start += later;
    row->end += later;
  }
}

/* Count what links carried, by sums: whether all of it falls into one bin of time. */
static bool add_uses(const struct repeats *repeats, struct core *core, const struct repeated_part *part) {
  int64_t later = part->times * part->time, bits = core->state.bin_bits;
  int64_t bin = (part->first_use + later) >> bits;
  if (part->last_use + later > bins_end(core) || bin != (part->last_use + later - 1) >> bits) return false;
  for (int64_t k = part->links; k < part->bytes; k++)
    core->link_busy[bin * core->link_busy_cols + repeats->sums[k].at] += repeats->sums[k].amount;
  return true;
}

static void repeat_uses(const struct repeats *repeats, struct core *core, void *columns, int64_t number) {
  const struct repeated_part *part = &repeats->parts[number];
  const struct link_uses *kept = core->kept;
  int64_t later = part->times * part->time;
  if (part->uses > part->uses0 && !add_uses(repeats, core, part))
    for (int64_t k = part->uses0; k < part->uses; k++) {
      const struct link_use *use = &kept->uses[k];
      int64_t start = use->start + later, length = use->end - use->start;
      /* While another part's are kept, these are none of them. */
      if (repeats->state.network == FAIR_LINKS)
        add_share(core, use->link, start, start + length, use->part);
      else if (repeats->state.network == LINKS_IN_TURN)
        add_busy(core, use->link, start, length);
      else
        add_whole_bins(core, columns, use->link, start, length);
    }
  for (int64_t k = part->bytes; k < part->bytes_end; k++)
    core->link_bytes[repeats->sums[k].at] += repeats->sums[k].amount;
}

/* Ranks have ended as many iterations more. */
static void repeat_ends(struct engine *engine, int64_t part) {
  struct repeats *repeats = engine->repeats;
  int64_t length = repeats->parts[part].time;
  FOR_RANKS(engine, r, part) {
    struct rank *rank = &engine->ranks[r];
    const struct job *job = &engine->jobs[rank->job];
    int64_t step = repeats->jobs[rank->job].step;
    int64_t *ends = engine->iteration_ends + job->end0 + rank->number;
    for (int64_t k = rank->oldest - repeats->oldest[r]; k < rank->oldest; k++)
      ends[(k + step) * job->ranks] = ends[k * job->ranks] + length;
    if (step > 0) rank->finish += length;
    rank->iteration += (int32_t)step;
    rank->oldest += (int32_t)step;
  }
  FOR_JOBS(repeats, j, part) {
    repeats->jobs[j].ended += repeats->jobs[j].step;
    repeats->jobs[j].taken += repeats->jobs[j].step;
  }
}

/* All that happened in an interval has happened again. */
static void repeat_interval(struct engine *engine, struct core *core, void *columns, int64_t part) {
  struct repeated_part *one = &engine->repeats->parts[part];
  one->times++;
  repeat_operations(engine, one);
  repeat_flows(engine, core, one);
  repeat_rows(engine, one);
  repeat_uses(engine->repeats, core, columns, part);
  repeat_ends(engine, part);
}

/* What a part has under way is as many intervals later. */
static void move_state(struct engine *engine, const struct core *core, int64_t part) {
  struct repeats *repeats = engine->repeats;
  int64_t times = repeats->parts[part].times, later = times * repeats->parts[part].time;
  FOR_RANKS(engine, r, part) {
    struct rank *rank = &engine->ranks[r];
    int64_t slots = 2 * (int64_t)engine->jobs[rank->job].open - 1, step = times * repeats->jobs[rank->job].step;
    rank->cause += later;
    for (int64_t k = 0; k < slots; k++) engine->slots[rank->slot0 + k].iteration += (int32_t)step;
    for (int64_t op = 0; op < slots * engine->programs[rank->program].ops; op++) {
      struct rank_cell *cell = &engine->cells[rank->cell0 + op];
      if (cell->started != NONE) cell->started += later;
    }
  }
  for (int64_t c = 0; c < engine->channels_len; c++)
    for (int64_t at = engine->channels[c].head; at != NONE; at = engine->messages[at].next) {
      struct message *one = &engine->messages[at];
      const struct repeated_job *job = job_of(engine, one);
      if (job->part != part) break;
      one->send_iteration += (int32_t)(times * job->step);
      one->recv_iteration += (int32_t)(times * job->step);
    }
  for (int64_t k = 0; k < engine->groups_len; k++)
    if (part_of_group(engine, k) == part)
      engine->groups[k].iteration += (int32_t)(times * repeats->jobs[repeats->group_jobs[k]].step);
  for (int64_t k = 0; k < engine->free_at_len; k++)
    if (core->kept->users[core->link_busy_cols + k] == part && engine->free_at[k] > engine->state.now - later)
      engine->free_at[k] += later;
}

/* What of a heap's events is a part's is held, times from now on; the others stay. */
static int64_t hold_events(struct engine *engine, struct due *heap, int64_t count, int64_t part) {
  struct repeats *repeats = engine->repeats;
  int64_t now = engine->state.now, kept = 0;
  for (int64_t k = 0; k < count; k++) {
    struct due one = heap[k];
    if (one.b == WAKE || part_of_rank(engine, one.a) != part) {
      sift_due(heap, kept++, one); /* never ahead of where it was */
      continue;
    }
    one.time -= now;
    one.cause -= now;
    RESERVE(repeats, held, repeats->state.num_held + 1);
    repeats->held[repeats->state.num_held++] = one;
  }
  return kept;
}

/* A part has nothing to do until its interval has ended once more. */
static void sleep_on(struct engine *engine, int64_t part) {
  struct repeated_part *one = &engine->repeats->parts[part];
  one->asleep = engine->state.now + one->time;
  PUSH_DUE(engine, agenda, one->asleep, part, WAKE, engine->state.now, (int32_t)part, WAKE);
}

static void fall_asleep(struct engine *engine, int64_t part) {
  struct engine_state *state = &engine->state;
  state->num_agenda = hold_events(engine, engine->agenda, state->num_agenda, part);
  int64_t kept = 0;
  for (int64_t k = 0; k < state->num_touched; k++)
    if (part_of_rank(engine, engine->touched[k].a) != part) sift_due(engine->touched, kept++, engine->touched[k]);
  state->num_touched = kept;
  FOR_RANKS(engine, r, part) if (engine->ranks[r].cause_round > state->round) engine->ranks[r].cause_round = NEVER;
  sleep_on(engine, part);
}

/* It goes on as it was before, only later. */
static void wake_up(struct engine *engine, const struct core *core, int64_t part) {
  struct repeats *repeats = engine->repeats;
  struct engine_state *state = &engine->state;
  int64_t kept = 0;
  move_state(engine, core, part);
  repeats->parts[part].asleep = repeats->parts[part].is_whole = repeats->parts[part].due = 0;
  for (int64_t k = 0; k < repeats->state.num_held; k++) {
    struct due one = repeats->held[k];
    if (part_of_rank(engine, one.a) != part) {
      repeats->held[kept++] = one;
      continue;
    }
    PUSH_DUE(engine, agenda, state->now + one.time, one.high, one.low, state->now + one.cause, one.a, one.b);
  }
  repeats->state.num_held = kept;
  FOR_RANKS(engine, r, part) {
    struct rank *rank = &engine->ranks[r];
    if (rank->cause_round == NEVER) rank->cause_round = state->round + 1;
    if (rank->touched) PUSH_DUE(engine, touched, state->round + 1, r, 0, 0, (int32_t)r, 0);
  }
}

/* Look at the state of a part, which is quiet. */
static void look_at(struct engine *engine, struct core *core, void *columns, int64_t part, int64_t until) {
  struct repeats *repeats = engine->repeats;
  struct repeated_part *one = &repeats->parts[part];
  if (!is_worth_it(engine, part)) {
    if (repeats->state.recorder == part) drop_interval(repeats, core);
    return;
  }
  uint64_t digest[2] = {0, 0};
  digest_state(engine, core, columns, part, digest);
  if (one->away > 0 && --one->away == 0) end_interval(engine, core, columns, part, digest);
  if (one->is_whole) one->is_whole = may_repeat(engine, columns, part, until);
  if (one->is_whole) fall_asleep(engine, part);
  struct seen_state *seen = &repeats->seen[MOST_SEEN * part];
  for (int64_t back = 1; !one->is_whole && back <= least(one->num_seen, MOST_SEEN); back++)
    if (repeats->state.recorder == NONE && !repeats->state.is_full &&
        memcmp(seen[(one->num_seen - back) % MOST_SEEN].digest, digest, sizeof digest) == 0)
      begin_interval(engine, core, columns, part, digest, back);
  memcpy(seen[one->num_seen++ % MOST_SEEN].digest, digest, sizeof digest);
}

/* After an iteration ended on all ranks of a job, or a part has slept, and before anything starts: have parts repeat
 * what they do, or go on. */
static void repeat(struct engine *engine, struct core *core, void *columns, int64_t until) {
  struct repeats *repeats = engine->repeats;
  struct repeats_state *state = &repeats->state;
  if (state->recorder != NONE && state->num_ops + state->num_flows + core->kept->count > MOST_KEPT) {
    drop_interval(repeats, core);
    state->is_full = 1;
  }
  if (!state->due || !is_between_rounds(engine)) return;
  state->due = 0;
  if (state->ended) count_ended(engine);
  if (state->stale) {
    drop_interval(repeats, core);
    FOR_PARTS(repeats, p) repeats->parts[p].is_whole = repeats->parts[p].num_seen = 0;
  }
  FOR_PARTS(repeats, p) {
    if (repeats->parts[p].asleep == 0 || repeats->parts[p].asleep > engine->state.now) continue;
    repeat_interval(engine, core, columns, p);
    if (may_repeat(engine, columns, p, until))
      sleep_on(engine, p);
    else
      wake_up(engine, core, p);
  }
  if (!state->stale || find_parts(engine, core))
    FOR_PARTS(repeats, p) {
      struct repeated_part *one = &repeats->parts[p];
      if (!one->due) continue;
      one->due = !is_quiet(engine, core, columns, p);
      if (one->due)
        state->due = 1;
      else
        look_at(engine, core, columns, p, until);
    }
  engine->state.since = NEVER;
  FOR_PARTS(repeats, p)
    if (repeats->parts[p].asleep > 0)
      engine->state.since = least(engine->state.since, repeats->parts[p].asleep - repeats->parts[p].time);
}
