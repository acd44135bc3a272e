/* Driven ranks: what they do is no program, but comes from Python as the run goes on, an operation at a time.
 *
 * All driven ranks have one program, a pool of operations without streams: a row is an operation that was issued and has
 * not ended. An operation may start at once; those of one instant go by (rank, number), as all starts do. A ticket is
 * what somebody waits for: operations of one or several ranks. When the last of these has ended, Python is told, before
 * anything starts that follows from what ended with it.
 */
#include "kernel.h"

/* Whether a rank is driven: then it has no iterations. */
static inline bool is_driven(const struct engine *engine, int64_t rank) {
  return engine->programs[engine->ranks[rank].program].lanes == 0;
}

static void pass_on(struct engine *engine, int64_t ticket, int64_t job) {
  RESERVE(engine, told, engine->state.num_told + 1);
  engine->told[engine->state.num_told++] = (struct told){(int32_t)ticket, (int32_t)job, NONE, NONE};
}

/* A rank has come to a rendezvous that code carries. */
static void tell_carrier(struct engine *engine, int64_t met, int64_t position) {
  RESERVE(engine, told, engine->state.num_told + 1);
  engine->told[engine->state.num_told++] = (struct told){NONE, NONE, (int32_t)met, (int32_t)position};
}

static int64_t take_ticket(struct engine *engine, int64_t count) {
  struct engine_state *state = &engine->state;
  int64_t found = state->free_ticket;
  if (found == NONE) {
    RESERVE(engine, tickets, state->tickets_used + 1);
    found = state->tickets_used++;
  } else {
    state->free_ticket = engine->tickets[found].next;
  }
  engine->tickets[found] = (struct ticket){(int32_t)count, NONE, state->num_issued, 0};
  return found;
}

/* What a ticket stands for is through. */
static void tear_off(struct engine *engine, int64_t ticket) {
  pass_on(engine, ticket, NONE);
  engine->tickets[ticket].next = (int32_t)engine->state.free_ticket;
  engine->state.free_ticket = ticket;
}

static void issue_on(struct engine *engine, int64_t number, const struct operation *like, const struct issued *said) {
  struct engine_state *state = &engine->state;
  struct rank *rank = &engine->ranks[number];
  int64_t op = state->free_op;
  struct operation *one = &engine->ops[engine->programs[rank->program].op0 + op];
  state->free_op = one->waits;
  state->num_free--;
  *one = *like;
  one->number = rank->issued++;
  one->early = (int32_t)state->num_issued;
  engine->cells[rank->cell0 + op] = (struct rank_cell){.started = NONE};
  RESERVE(engine, issued, state->num_issued + 1);
  struct issued *row = &engine->issued[state->num_issued++];
  *row = *said;
  row->rank = (int32_t)number;
  PUSH_DUE(engine, touched, state->round + 1, number, one->number, 0, (int32_t)number, (int32_t)op);
}

/* Issue the first `count` rows of `asked`, now, each with a ticket of its own; NONE: the pool is used up. */
int64_t issue_asked(struct engine *engine, int64_t now, int64_t count) {
  CATCH_OUT_OF_MEMORY;
  if (engine->state.num_free < count) return NONE;
  engine->state.now = now;
  for (int64_t k = 0; k < count; k++) {
    struct asked *row = &engine->asked[k];
    row->ticket = take_ticket(engine, 1);
    struct operation one = {.size = row->size, .kind = (int32_t)row->kind, .ref = (int32_t)row->ref,
                            .first = (int32_t)row->ticket, .last = (int32_t)row->traits};
    struct issued said = {0, row->size, NONE, 0, (int32_t)row->like, (int32_t)row->peer, (int32_t)row->tag};
    issue_on(engine, row->rank, &one, &said);
  }
  return count;
}

/* Issue one operation on several ranks, now: its ticket, or NONE. In a collective, each is member `ref` of its
 * group, and it is their `occurrence`-th there. */
int64_t issue_all(struct engine *engine, int64_t now, int64_t count, const int32_t *ranks, const int64_t *durations,
                  const int32_t *ref, const int32_t *occurrence, int64_t kind, int64_t like, int64_t size,
                  int64_t what, int64_t traits) {
  CATCH_OUT_OF_MEMORY;
  if (engine->state.num_free < count) return NONE;
  int64_t ticket = take_ticket(engine, count);
  engine->state.now = now;
  for (int64_t k = 0; k < count; k++) {
    struct operation one = {.duration = durations[k], .size = size, .kind = (int32_t)kind, .what = (int32_t)what,
                            .ref = ref[k], .occurrence = occurrence[k], .first = (int32_t)ticket,
                            .last = (int32_t)traits};
    struct issued said = {durations[k], size, NONE, 0, (int32_t)like, NONE, 0};
    issue_on(engine, ranks[k], &one, &said);
  }
  return ticket;
}

/* An operation of a driven rank ended. */
static void end_issued(struct engine *engine, int64_t number, int64_t op, int64_t now, int64_t cause) {
  struct engine_state *state = &engine->state;
  struct rank *rank = &engine->ranks[number];
  struct operation *one = &engine->ops[engine->programs[rank->program].op0 + op];
  log_operation(engine, number, one->number, 0, engine->cells[rank->cell0 + op].started, now);
  if (rank->cause_round != state->round + 1) {
    rank->cause_round = state->round + 1;
    rank->cause = 0;
  }
  rank->cause = most(rank->cause, cause);
  rank->finish = now;
  engine->issued[one->early].end = now;
  if (--engine->tickets[one->first].left == 0) tear_off(engine, one->first);
  one->waits = (int32_t)state->free_op;
  state->free_op = op;
  state->num_free++;
}
