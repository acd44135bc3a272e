/* What repeats is not computed again: an interval between two states that are the same is taken from the one before.
 *
 * A state is looked at after an iteration of a job has ended on all its ranks, as soon as nothing is under way on the
 * network, and before anything starts then. Then nothing but the following decides what comes: where each rank is in its program, what
 * it computes and until when, whom it waits for, and what the network keeps in mind of its links. All of it is told by a
 * digest of 128 bits, times from now on and iterations from those that all ranks ended. If it is that of an earlier
 * state, the interval up to the next such state is simulated once more, and kept: operations, completions, what links
 * carried. If the digest is the same again, the interval is repeated as long as nothing else comes (the end of a job, a
 * change of a link, somebody who has a word), each time later by its length.
 */
#include "kernel.h"

enum {
  MOST_SEEN = 16, /* states in mind; a power of two */
  SOME = 1 << 18, /* so many of what follows are repeated, about, before others have a word */
  MOST_KEPT = 1 << 22, /* operations, completions and uses of an interval: each takes up to 56 bytes */
};

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

/* What a rank has under way, and what it may start. */
static void stir_rank(const struct engine *engine, const struct rank *rank, int64_t ended, uint64_t *digest) {
  const struct program *program = &engine->programs[rank->program];
  int64_t slots = 2 * (int64_t)engine->jobs[rank->job].open - 1, now = engine->state.now;
  stir(digest, rank->iteration - ended);
  stir(digest, rank->oldest - ended);
  stir(digest, rank->origin);
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
static void stir_messages(const struct engine *engine, uint64_t *digest) {
  const struct repeated_job *jobs = engine->repeats->jobs;
  for (int64_t c = 0; c < engine->channels_len; c++)
    for (int64_t at = engine->channels[c].head; at != NONE; at = engine->messages[at].next) {
      const struct message *one = &engine->messages[at];
      bool is_sent = one->send_rank != NONE;
      int64_t ended = jobs[engine->ranks[is_sent ? one->send_rank : one->recv_rank].job].ended;
      stir(digest, c);
      stir(digest, one->size);
      stir(digest, one->requested << 1 | one->arrived);
      stir(digest, one->send_rank);
      stir(digest, one->recv_rank);
      if (is_sent) {
        stir(digest, one->send_op);
        stir(digest, one->send_iteration - ended);
      } else {
        stir(digest, one->recv_op);
        stir(digest, one->recv_iteration - ended);
        stir(digest, one->port);
      }
    }
}

/* What will end, in any order: heaps of the same events may lie differently. */
static void stir_agenda(const struct engine *engine, uint64_t *digest) {
  uint64_t sums[2] = {0, 0};
  for (int64_t k = 0; k < engine->state.num_agenda; k++) {
    const struct due *one = &engine->agenda[k];
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

/* Which ranks the next round of starts looks at. */
static void stir_touched(const struct engine *engine, uint64_t *digest) {
  stir(digest, engine->state.num_touched);
  for (int64_t r = 0; r < engine->repeats->state.ranks && engine->state.num_touched > 0; r++)
    stir(digest, engine->ranks[r].touched);
}

/* What links that carry nothing are left with. */
static void stir_fair_links(struct fluid *fluid, uint64_t *digest) {
  struct fluid_counts *counts = &fluid->counts;
  for (int64_t k = 0; k < fluid->links_len; k++) {
    const struct fluid_link *link = &fluid->links[k];
    stir(digest, bits_of(link->capacity));
    stir(digest, link->load);
    stir(digest, bits_of(link->full_level));
    stir(digest, link->full_priority);
    stir(digest, (int64_t)link->rechecks << 32 | link->room << 16 | link->kept);
  }
  stir(digest, bits_of(counts->first_level));
  stir(digest, counts->first_priority);
  /* No flow is there: they are numbered from the first again, so that a state has no other past. */
  counts->free_flow = counts->free_member = NONE;
  counts->flows_used = counts->members_used = 0;
}

static bool is_fair_quiet(const struct fluid *fluid) {
  const struct fluid_counts *counts = &fluid->counts;
  if (counts->begin != 0 || counts->num_members != 0 || counts->num_dirty != 0 || fluid->drains->count != 0)
    return false;
  for (int64_t k = 0; k < fluid->links_len; k++)
    if (fluid->links[k].used > 0.0) return false;
  return true;
}

/* Whether all that ends now has ended, and a round of starts is next, or a later instant. */
static bool is_between_rounds(const struct engine *engine) {
  const struct engine_state *state = &engine->state;
  return state->at_rank == NONE && state->begins_at == state->num_begins && state->num_reactions == 0 &&
         state->num_ending == 0 && state->enters_at == state->num_enters && state->pumps_at == state->num_pumps &&
         state->dispatches_at == state->num_dispatches && state->hold != state->now &&
         (state->num_agenda == 0 || engine->agenda[0].time > state->now);
}

/* Whether nothing is under way on the network, or on its way there. */
static bool is_quiet(const struct engine *engine, const struct core *core, const void *columns) {
  const struct engine_state *state = &engine->state;
  if (state->under_way > 0 || !is_between_rounds(engine) || state->num_starts > 0 || state->num_opened > 0 ||
      state->serial > state->num_collective_log || core->state.num_pending > 0 ||
      core->calendar->state.num_events > 0)
    return false;
  if (engine->repeats->state.network == FAIR_LINKS) return is_fair_quiet(columns);
  if (engine->repeats->state.network != LINKS_IN_TURN) return true;
  const struct link_queues *queues = columns;
  for (int64_t k = 0; k < queues->links_len; k++)
    if (queues->links[k].free > state->now) return false;
  return true;
}

/* A digest of the state, which is quiet. */
static void digest_state(struct engine *engine, void *columns, uint64_t *digest) {
  const struct repeats *repeats = engine->repeats;
  find_group_jobs(engine);
  for (int64_t r = 0; r < repeats->state.ranks; r++) {
    const struct rank *rank = &engine->ranks[r];
    stir_rank(engine, rank, repeats->jobs[rank->job].ended, digest);
  }
  for (int64_t k = 0; k < engine->groups_len; k++) {
    if (repeats->group_jobs[k] == NONE) continue;
    /* Where an operation of an earlier iteration stopped is of no use to any that comes. */
    int64_t iteration = engine->groups[k].iteration - repeats->jobs[repeats->group_jobs[k]].ended;
    stir(digest, k);
    stir(digest, iteration < 0 ? -1 : iteration);
    stir(digest, iteration < 0 ? 0 : engine->groups[k].turn);
  }
  stir_messages(engine, digest);
  stir_agenda(engine, digest);
  stir_touched(engine, digest);
  for (int64_t k = 0; k < engine->free_at_len; k++) stir(digest, most(engine->free_at[k] - engine->state.now, 0));
  if (repeats->state.network == FAIR_LINKS) stir_fair_links(columns, digest);
}

/* -- an interval is kept ---------------------------------------------------------------------------------------------------- */

/* Nothing from before is of use: somebody changed what no digest tells. */
static void forget_repeats(struct engine *engine, struct core *core) {
  struct repeats *repeats = engine->repeats;
  if (repeats == NULL) return;
  repeats->state.num_seen = repeats->state.away = repeats->state.is_whole = 0;
  core->kept->on = 0;
}

/* An iteration ended on all ranks of some jobs: count anew. */
static void count_ended(struct engine *engine) {
  struct repeats *repeats = engine->repeats;
  for (int64_t j = 0; j < repeats->jobs_len; j++) {
    struct repeated_job *job = &repeats->jobs[j];
    if (job->behind > 0) continue;
    const struct rank *ranks = engine->ranks + engine->jobs[j].rank0;
    int64_t count = engine->jobs[j].ranks, ended = count > 0 ? ranks[0].oldest : 0;
    for (int64_t k = 0; k < count; k++) ended = least(ended, ranks[k].oldest);
    job->ended = ended;
    for (int64_t k = 0; k < count; k++) job->behind += ranks[k].oldest == ended;
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

/* Write down what has been so far, and, called again, how much more it is by then: `sign` 1, then -1. */
static void take_marks(struct engine *engine, const struct core *core, const void *columns, int64_t sign) {
  struct repeats *repeats = engine->repeats;
  struct repeats_state *state = &repeats->state;
  int64_t links = core->link_busy_cols;
  RESERVE(repeats, link_bytes, links);
  RESERVE(repeats, oldest, state->ranks);
#define MARK(to, value) (to) = sign > 0 ? (value) : (value) - (to)
  MARK(state->time, engine->state.now);
  MARK(state->num_collectives, engine->state.num_collective_log);
  MARK(state->num_messages, engine->state.num_kept);
  MARK(state->started, core->state.num_started);
  MARK(state->completed, core->state.num_completed);
  MARK(state->events, core->state.num_events);
  MARK(state->advances, engine->state.num_advances);
  MARK(state->next_change, next_change_of(repeats, columns));
  for (int64_t j = 0; j < repeats->jobs_len; j++) MARK(repeats->jobs[j].step, repeats->jobs[j].ended);
  for (int64_t k = 0; k < links; k++) MARK(repeats->link_bytes[k], core->link_bytes[k]);
  for (int64_t k = 0; k < state->ranks; k++) MARK(repeats->oldest[k], engine->ranks[k].oldest);
#undef MARK
}

static void begin_interval(struct engine *engine, struct core *core, const void *columns, const uint64_t *digest,
                           int64_t period) {
  struct repeats_state *state = &engine->repeats->state;
  memcpy(state->begin, digest, sizeof state->begin);
  state->away = state->period = period;
  state->is_whole = state->num_ops = state->num_flows = core->kept->count = 0;
  core->kept->on = 1;
  take_marks(engine, core, columns, 1);
}

/* The state at which the interval that is kept should end. */
static void end_interval(struct engine *engine, struct core *core, const void *columns, const uint64_t *digest) {
  struct repeats_state *state = &engine->repeats->state;
  core->kept->on = 0;
  take_marks(engine, core, columns, -1);
  bool is_same = memcmp(state->begin, digest, sizeof state->begin) == 0;
  state->is_whole = is_same && state->next_change == 0 && state->time > 0;
}

/* Whether some job has so many iterations to come that one can be repeated. */
static bool is_worth_it(const struct engine *engine) {
  const struct repeats *repeats = engine->repeats;
  for (int64_t j = 0; j < repeats->jobs_len; j++)
    if (engine->jobs[j].iterations - repeats->jobs[j].ended > 3) return true;
  return false;
}

/* -- and repeated --------------------------------------------------------------------------------------------------------- */

/* Whether nothing else comes before the interval would have ended again. */
static bool may_repeat(const struct engine *engine, const void *columns, int64_t until) {
  const struct repeats *repeats = engine->repeats;
  int64_t length = repeats->state.time, now = engine->state.now;
  if (length > until - now || length >= time_of_change(repeats, columns) - now) return false;
  for (int64_t r = 0; r < repeats->state.ranks; r++) {
    const struct rank *rank = &engine->ranks[r];
    int64_t step = repeats->jobs[rank->job].step;
    /* A rank that has begun its last iteration finds no other: nothing was as it is then. */
    if (step > 0 && rank->iteration + 1 + step >= engine->jobs[rank->job].iterations) return false;
  }
  return true;
}

static void repeat_operations(struct engine *engine) {
  struct repeats *repeats = engine->repeats;
  for (int64_t k = 0; k < repeats->state.num_ops; k++) {
    struct ended_operation *row = &repeats->ops[k];
    row->start += repeats->state.time;
    row->end += repeats->state.time;
    row->iteration += (int32_t)repeats->jobs[engine->ranks[row->rank].job].step;
    log_row(engine, *row);
  }
}

static void repeat_flows(struct engine *engine) {
  struct repeats *repeats = engine->repeats;
  for (int64_t k = 0; k < repeats->state.num_flows; k++) {
    struct repeated_flow *one = &repeats->flows[k];
    one->key_high += repeats->jobs[one->key_high >> 51].step << 31;
    one->time += repeats->state.time;
    fold_flow(&engine->state, one->key_high, one->key_low, one->time);
    if (one->pair != NONE) count_arrival(engine, one->pair, one->bytes, one->time, one->took, one->bin);
  }
}

/* Collectives and messages that were written down. */
static void repeat_rows(struct engine *engine) {
  struct repeats *repeats = engine->repeats;
  struct engine_state *state = &engine->state;
  int64_t length = repeats->state.time;
  state->serial += repeats->state.num_collectives;
  RESERVE(engine, collective_log, state->num_collective_log + repeats->state.num_collectives);
  for (int64_t k = 0; k < repeats->state.num_collectives; k++) {
    struct ended_collective row = engine->collective_log[state->num_collective_log - repeats->state.num_collectives];
    row.start += length;
    row.ready += length;
    row.end += length;
    row.iteration += (int32_t)repeats->jobs[engine->ranks[row.rank].job].step;
    engine->collective_log[state->num_collective_log++] = row;
  }
  RESERVE(engine, kept, state->num_kept + repeats->state.num_messages);
  for (int64_t k = 0; k < repeats->state.num_messages; k++) {
    struct kept_message row = engine->kept[state->num_kept - repeats->state.num_messages];
    row.key_high += repeats->jobs[row.key_high >> 51].step << 31;
    row.start += length;
    row.end += length;
    engine->kept[state->num_kept++] = row;
  }
}

static void repeat_uses(const struct repeats *repeats, struct core *core, void *columns) {
  struct link_uses *kept = core->kept;
  if (repeats->state.num_flows == 0) return; /* links may be many */
  for (int64_t k = 0; k < kept->count; k++) {
    struct link_use *use = &kept->uses[k];
    use->start += repeats->state.time;
    use->end += repeats->state.time;
    if (repeats->state.network == FAIR_LINKS)
      add_share(core, use->link, use->start, use->end, use->part);
    else if (repeats->state.network == LINKS_IN_TURN)
      add_busy(core, use->link, use->start, use->end - use->start);
    else
      add_whole_bins(core, columns, use->link, use->start, use->end - use->start);
  }
  for (int64_t k = 0; k < core->link_busy_cols; k++) core->link_bytes[k] += repeats->link_bytes[k];
}

/* Ranks are as many iterations on. */
static void move_ranks(struct engine *engine) {
  struct repeats *repeats = engine->repeats;
  int64_t length = repeats->state.time;
  for (int64_t r = 0; r < repeats->state.ranks; r++) {
    struct rank *rank = &engine->ranks[r];
    const struct program *program = &engine->programs[rank->program];
    const struct job *job = &engine->jobs[rank->job];
    int64_t step = repeats->jobs[rank->job].step, slots = 2 * (int64_t)job->open - 1;
    int64_t *ends = engine->iteration_ends + job->end0 + rank->number;
    for (int64_t k = rank->oldest - repeats->oldest[r]; k < rank->oldest; k++)
      ends[(k + step) * job->ranks] = ends[k * job->ranks] + length;
    if (step > 0) rank->finish += length;
    rank->cause += length;
    rank->iteration += (int32_t)step;
    rank->oldest += (int32_t)step;
    for (int64_t k = 0; k < slots; k++) engine->slots[rank->slot0 + k].iteration += (int32_t)step;
    for (int64_t op = 0; op < slots * program->ops; op++) {
      struct rank_cell *cell = &engine->cells[rank->cell0 + op];
      if (cell->started != NONE) cell->started += length;
    }
  }
  for (int64_t c = 0; c < engine->channels_len; c++)
    for (int64_t at = engine->channels[c].head; at != NONE; at = engine->messages[at].next) {
      struct message *one = &engine->messages[at];
      int64_t step = repeats->jobs[engine->ranks[one->send_rank != NONE ? one->send_rank : one->recv_rank].job].step;
      one->send_iteration += (int32_t)step;
      one->recv_iteration += (int32_t)step;
    }
  for (int64_t k = 0; k < engine->groups_len; k++)
    if (repeats->group_jobs[k] != NONE)
      engine->groups[k].iteration += (int32_t)repeats->jobs[repeats->group_jobs[k]].step;
}

/* All that happened in the interval happens again, and time goes on to its end. */
static void repeat_interval(struct engine *engine, struct core *core, void *columns) {
  struct repeats *repeats = engine->repeats;
  struct engine_state *state = &engine->state;
  int64_t length = repeats->state.time;
  repeat_operations(engine);
  repeat_flows(engine);
  repeat_rows(engine);
  repeat_uses(repeats, core, columns);
  move_ranks(engine);
  for (int64_t k = 0; k < state->num_agenda; k++) {
    engine->agenda[k].time += length;
    engine->agenda[k].cause += length;
  }
  for (int64_t k = 0; k < engine->free_at_len; k++)
    if (engine->free_at[k] > state->now) engine->free_at[k] += length;
  for (int64_t j = 0; j < repeats->jobs_len; j++) {
    repeats->jobs[j].ended += repeats->jobs[j].step;
    repeats->jobs[j].taken += repeats->jobs[j].step;
  }
  state->now += length;
  state->granted += length;
  state->num_advances += repeats->state.advances;
  core->state.instant += length;
  core->state.grant += length;
  core->state.num_started += repeats->state.started;
  core->state.num_completed += repeats->state.completed;
  core->state.num_events += repeats->state.events;
  repeats->state.taken++;
}

/* After an iteration ended on all ranks of a job, once nothing is under way on the network: keep the interval that
 * begins here if it is to be repeated, or repeat it; whether others are to have a word. */
static bool repeat(struct engine *engine, struct core *core, void *columns, int64_t until) {
  struct repeats *repeats = engine->repeats;
  struct repeats_state *state = &repeats->state;
  if (state->away > 0 && state->num_ops + state->num_flows + core->kept->count > MOST_KEPT) {
    forget_repeats(engine, core);
    engine->repeats = NULL;
    return false;
  }
  if (!state->due || !is_quiet(engine, core, columns)) return false;
  count_ended(engine);
  state->due = 0;
  if (!is_worth_it(engine)) return false;
  uint64_t digest[2] = {0, 0};
  digest_state(engine, columns, digest);
  if (state->away > 0 && --state->away == 0) end_interval(engine, core, columns, digest);
  if (state->is_whole && memcmp(state->begin, digest, sizeof digest) == 0) {
    int64_t each = 1 + state->num_ops + state->num_flows + core->kept->count, left = SOME;
    for (; left > 0 && may_repeat(engine, columns, until); left -= each) repeat_interval(engine, core, columns);
    state->due = left <= 0;
    return left <= 0;
  }
  for (int64_t back = 1; state->away == 0 && back <= least(state->num_seen, MOST_SEEN); back++)
    if (memcmp(repeats->seen[(state->num_seen - back) % MOST_SEEN].digest, digest, sizeof digest) == 0)
      begin_interval(engine, core, columns, digest, back);
  RESERVE(repeats, seen, MOST_SEEN);
  memcpy(repeats->seen[state->num_seen++ % MOST_SEEN].digest, digest, sizeof digest);
  return false;
}
