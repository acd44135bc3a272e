/* The loop over instants: all that ended, then all starts, in rounds until neither is left.
 *
 * Starts of a round go by (job, rank, stream, operation). Each turn of the loop does one thing and goes round, so that
 * it may stop for something that only Python can make, anywhere.
 *
 * A network of this process is asked in the same loop. For any other, what it is to be given waits in `opened` and
 * `starts`.
 */
#include "kernel.h"

/* -- one instant -------------------------------------------------------------------------------------------------------- */

/* The place of the next in a list; NONE: none is left, and it is filled from its beginning again. Most turns find a
 * list empty, and write nothing. */
static inline int64_t next_in_list(int64_t *at, int64_t *count) {
  if (*count == 0) return NONE;
  if (*at < *count) return (*at)++;
  *at = *count = 0;
  return NONE;
}

/* One of the things that an end or a start called for; false: none is left. */
static inline bool do_at_once(struct engine *engine) {
  struct engine_state *state = &engine->state;
  int64_t place = next_in_list(&state->enters_at, &state->num_enters);
  if (place != NONE) {
    struct task task = engine->enters[place];
    enter_part(engine, task.owner, task.part, task.position, state->now);
    return true;
  }
  place = next_in_list(&state->pumps_at, &state->num_pumps);
  if (place != NONE) {
    struct task task = engine->pumps[place];
    pump(engine, task.owner, task.part, task.position);
    return true;
  }
  place = next_in_list(&state->dispatches_at, &state->num_dispatches);
  if (place != NONE) {
    struct task task = engine->dispatches[place];
    send_out(engine, task.owner, task.part, state->now, task.cause);
    return true;
  }
  return false;
}

/* A rank that may go on begins its next iterations; DONE, or what has to be said before. */
static int64_t begin_next(struct engine *engine) {
  struct engine_state *state = &engine->state;
  int64_t number = engine->begins[state->begins_at], now = state->now;
  const struct rank *rank = &engine->ranks[number];
  const struct job *job = &engine->jobs[rank->job];
  /* Iterations may overlap, and an empty one ends as it begins: as many as may. */
  while (may_begin(engine, rank)) {
    if (rank->pace0 != NONE && rank->paced <= rank->iteration + 1) return NEED_PACE; /* of the one that begins */
    if (job->directed > 1) {
      int64_t start = state->start_at;
      if (start == NONE) return NEED_START;
      state->start_at = NONE;
      if (start > now) {
        state->begins_at++;
        PUSH_DUE(engine, agenda, start, number, NONE, now, (int32_t)number, NONE);
        return DONE;
      }
    }
    begin_iteration(engine, number, now);
  }
  if (job->directed && rank->oldest == job->iterations) { /* it is through, which is told */
    if (state->start_at == NONE) return NEED_START;
    state->start_at = NONE;
  }
  state->begins_at++;
  return DONE;
}

/* The next rank of this round of starts, or of the next round if this one is over; or NONE. */
static void next_rank(struct engine *engine) {
  struct engine_state *state = &engine->state;
  state->at_rank = NONE;
  if (state->num_touched == 0) return;
  int64_t number = engine->touched[0].a, op = engine->touched[0].b;
  state->round = engine->touched[0].time;
  state->num_touched = pop_due(engine->touched, state->num_touched);
  /* What it starts now may touch it again: that is another round. */
  struct rank *rank = &engine->ranks[number];
  rank->touched = 0;
  /* Ends of other rounds have let nothing start in this one. */
  if (rank->cause_round != state->round) rank->cause = 0;
  state->at_rank = number;
  state->at_lane = 0;
  if (engine->programs[rank->program].lanes > 0) return;
  state->at_op = op; /* a driven rank starts what it was given, one at a time */
  engine->cells[rank->cell0 + op].started = state->now;
}

/* at_op: the next that a rank starts, the lowest of each idle stream, then all without one; or NONE. */
static void choose_operation(struct engine *engine) {
  struct engine_state *state = &engine->state;
  const struct rank *rank = &engine->ranks[state->at_rank];
  int64_t last = engine->programs[rank->program].lanes - 1;
  for (; state->at_lane <= last; state->at_lane++) {
    struct lane *lane = &engine->lanes[rank->lane0 + state->at_lane];
    /* A stream does one thing at a time; the last lane is of what is in no stream, and is emptied. */
    if (lane->count == 0 || (state->at_lane < last && lane->busy != NONE)) continue;
    if (!takes_its_turn(engine, rank, state->at_lane)) continue;
    state->at_op = take_ready(engine, rank, state->at_lane);
    engine->cells[rank->cell0 + state->at_op].started = state->now;
    if (state->at_lane < last) {
      lane->busy = (int32_t)state->at_op;
      state->at_lane++;
    }
    return;
  }
}

/* An operation will end `duration` after `began`; DONE or AFTER_TIME. */
static int64_t end_later(struct engine *engine, int64_t number, int64_t op, int64_t began, int64_t duration) {
  /* Not began + duration >= NEVER: the sum might leave 64 bits. */
  if (duration >= NEVER - began) return AFTER_TIME;
  PUSH_DUE(engine, agenda, began + duration, number, op, engine->state.now, (int32_t)number, (int32_t)op);
  return DONE;
}

/* Start an access to memory: who comes first is served first, and how long that takes is known, so no queue is kept. */
static int64_t access_memory(struct engine *engine, int64_t number, int64_t op, int64_t duration) {
  int64_t now = engine->state.now, device = engine->ranks[number].device;
  if (device == NONE) return end_later(engine, number, op, now, duration);
  int64_t began = most(now, engine->free_at[device]);
  int64_t status = end_later(engine, number, op, began, duration);
  if (status == DONE) engine->free_at[device] = began + duration;
  return status;
}

/* Open the flows of an operation that has no others, and start the first; it ends when the last is there. */
static void carry(struct engine *engine, int64_t number, int64_t op, int64_t binding, int64_t traits) {
  const struct rank *rank = &engine->ranks[number];
  const struct operation *one = operation_of(engine, number, op);
  int64_t key_high = key_high_of(rank->job, iteration_of(engine, number, one), one->number);
  /* As a message of this operation would be named. */
  int64_t handle = open_flows(engine, binding, key_high, key_low_of(rank->number, MESSAGE_PART), OF_ACCESS, number,
                              traits);
  engine->handles[handle].part = (int32_t)op;
  hand_over_start(engine, handle, 0, engine->state.now, rank->cause);
}

/* Start an access to a memory node; DONE, or that its flows are not known. */
static int64_t ask_node(struct engine *engine, int64_t number, int64_t op, const struct operation *one) {
  const struct rank *rank = &engine->ranks[number];
  int64_t binding = engine->ports[rank->port0 + one->ref].binding;
  if (binding == NONE) return NEED_ACCESS;
  carry(engine, number, op, binding, iteration_of(engine, number, one));
  return DONE;
}

/* Start an operation; DONE, or what stands in the way. Where it needs what Python makes, nothing was changed: the same
 * turn comes again. */
static int64_t start_operation(struct engine *engine, int64_t number, int64_t op) {
  const struct rank *rank = &engine->ranks[number];
  const struct operation *one = operation_of(engine, number, op);
  int64_t now = engine->state.now;
  switch (one->kind) {
    case OP_COMPUTE:
      return end_later(engine, number, op, now,
                       rank->pace0 == NONE ? one->duration : engine->pace[rank->pace0 + op]);
    case OP_ACCESS:
      return access_memory(engine, number, op, one->duration);
    case OP_COLLECTIVE:
      return meet(engine, number, op, now);
    case OP_REMOTE:
      return ask_node(engine, number, op, one);
    case OP_TRANSFER:
      carry(engine, number, op, one->ref, one->last);
      return DONE;
    default:
      if (engine->ports[rank->port0 + one->ref].channel == NONE) return NO_PEER;
      return post(engine, number, op, now);
  }
}

/* Tell the owner of a flow that it has come; DONE, or TOO_EARLY. */
static int64_t react(struct engine *engine) {
  struct engine_state *state = &engine->state;
  struct due event = engine->reactions[0];
  state->num_reactions = pop_due(engine->reactions, state->num_reactions);
  struct flow_group one = engine->handles[event.a];
  if (one.kind == OF_COLLECTIVE) return leave(engine, event.a, event.b, state->now, event.cause);
  let_flows_go(engine, event.a);
  if (one.kind == OF_CARRIER)
    tear_off(engine, one.owner);
  else if (one.kind == OF_ACCESS)
    end_now(engine, one.owner, one.part, state->now, event.cause);
  else
    reach(engine, one.kind, one.owner, state->now, event.cause);
  return DONE;
}

/* The first of what ends now: an operation, or a rank's wait for its next iteration. */
static void end_next(struct engine *engine) {
  struct engine_state *state = &engine->state;
  bool is_due = state->num_agenda > 0 && engine->agenda[0].time == state->now;
  bool from_agenda =
      is_due && (state->num_ending == 0 || is_due_before(&engine->agenda[0], &engine->ending[0]));
  struct due event = from_agenda ? engine->agenda[0] : engine->ending[0];
  if (from_agenda)
    state->num_agenda = pop_due(engine->agenda, state->num_agenda);
  else
    state->num_ending = pop_due(engine->ending, state->num_ending);
  if (event.b == WAKE) {
    engine->repeats->state.due = 1;
    return;
  }
  /* Without an operation, it is the time at which a rank was told to go on. */
  if (event.b != NONE) {
    if (!end_operation(engine, event.a, event.b, state->now, event.cause)) return;
    int64_t job = engine->ranks[event.a].job;
    if (engine->jobs[job].watched) pass_on(engine, NONE, job);
  }
  RESERVE(engine, begins, state->num_begins + 1);
  engine->begins[state->num_begins++] = event.a;
}

/* Do the next thing of the instant under way; DONE if there was one, NONE: it is over; or why not. */
static int64_t one_turn(struct engine *engine) {
  struct engine_state *state = &engine->state;
  /* What an end or a start called for, before anything else ends or starts: queues of collectives depend on the order
   * in which phases come to them, and that is the order of what they follow from. */
  if (do_at_once(engine)) return DONE;
  if (state->num_begins > 0) {
    if (state->begins_at < state->num_begins) return begin_next(engine);
    state->begins_at = state->num_begins = 0;
  }
  /* A rank starts all it may, one operation a turn, and the ranks of a round after one another. Only then is looked at
   * what these starts made end at this instant: it may let ranks start again, in the next round. */
  if (state->at_rank != NONE) {
    if (state->at_op == NONE) choose_operation(engine);
    if (state->at_op != NONE) {
      int64_t status = start_operation(engine, state->at_rank, state->at_op);
      if (status == DONE) state->at_op = NONE;
      return status;
    }
    state->at_rank = NONE;
    if (state->num_touched > 0 && engine->touched[0].time == state->round) {
      next_rank(engine);
      return DONE;
    }
  }
  /* All that ended, whoever says so, before any start: a rank sees the whole instant when it chooses. */
  if (state->num_reactions > 0 && engine->reactions[0].time == state->now) return react(engine);
  if (state->num_ending > 0 || (state->num_agenda > 0 && engine->agenda[0].time == state->now)) {
    end_next(engine);
    return DONE;
  }
  if (state->num_told > 0 || state->hold == state->now) return TELL;
  if (state->num_touched > 0) {
    next_rank(engine);
    return DONE;
  }
  /* What ends from here on is of another round, even where nothing was to be started in this one. */
  state->round++;
  return NONE;
}

/* When something ends next, as far as is known here; NEVER: nothing will. */
int64_t next_engine_instant(const struct engine *engine) {
  const struct engine_state *state = &engine->state;
  int64_t time = NEVER;
  if (state->num_agenda > 0) time = least(time, engine->agenda[0].time);
  if (state->num_reactions > 0) time = least(time, engine->reactions[0].time);
  return time;
}

/* Have ranks begin at an instant that is to be run next. */
int64_t begin_ranks(struct engine *engine, int64_t first, int64_t count, int64_t now) {
  CATCH_OUT_OF_MEMORY;
  engine->state.now = now;
  forget_repeats(engine);
  RESERVE(engine, begins, engine->state.num_begins + count);
  for (int64_t k = 0; k < count; k++) engine->begins[engine->state.num_begins++] = (int32_t)(first + k);
  return DONE;
}

/* -- the network between two instants ----------------------------------------------------------------------------------- */

/* Give the network the groups opened and flows started; DONE, or what it needs first. */
static int64_t hand_over(struct engine *engine, struct core *core) {
  struct engine_state *state = &engine->state;
  /* Groups before starts, which are of groups that are open. They go on where they stopped. */
  for (; state->opened_at < state->num_opened; state->opened_at++) {
    const struct opened *one = &engine->opened[state->opened_at];
    const struct flow_group *group = &engine->handles[one->handle];
    int64_t at = engine->jobs[group->key_high >> 51].trait0 + one->iteration;
    if (engine->traits[at] == NONE) {
      state->which = at;
      return NEED_TRAITS;
    }
    const struct binding *bound = &engine->bindings[group->binding];
    open_known_group(core->store, one->handle, bound->table, group->key_high, group->key_low, bound->path,
                     engine->traits[at], group->kind >= OF_COLLECTIVE);
  }
  for (; state->starts_at < state->num_starts; state->starts_at++) {
    const struct flow_start *one = &engine->starts[state->starts_at];
    give_one(core, one->handle, one->index, one->start, one->cause);
  }
  state->given += state->num_starts;
  state->opened_at = state->num_opened = state->starts_at = state->num_starts = 0;
  return DONE;
}

/* Count what the network completed up to `grant`; its groups that ended with that are closed. */
static void count_reports(struct engine *engine, struct core *core, int64_t grant) {
  struct reporting reporting = begin_reports(core, grant);
  struct neighbour near = no_neighbour;
  for (const struct pending *one; (one = next_report(core, &reporting)) != NULL;) {
    count_flow(engine, &near, one->handle, number_in_group(core, one), one->start, one->time, one->cause);
    if (--core->store->groups[one->handle].left == 0) close_group(core->store, one->handle);
  }
  end_reports(core, &reporting);
}

/* Have the network go on, at most to `horizon` and for so many of its turns, and count what it reports; DONE, or what it
 * needs. */
static int64_t advance(struct engine *engine, network_loop loop, struct core *core, void *columns, int64_t horizon,
                       int64_t *turns) {
  struct engine_state *state = &engine->state;
  int64_t status = hand_over(engine, core);
  if (status != DONE) return status;
  turns_left = most(*turns, 1);
  status = loop(core, columns, horizon);
  *turns = turns_left;
  if (status != DONE) return status;
  int64_t grant = may_grant(core, horizon), completed = core->state.num_completed;
  bool goes_on = stopped_to_report(core);
  count_reports(engine, core, grant);
  state->num_advances++;
  /* It got nowhere, said nothing and was given nothing: the next time would be the same. */
  bool stands = grant == state->granted && core->state.num_completed == completed && state->given == 0 && !goes_on;
  state->granted = grant;
  state->given = 0;
  return stands ? NO_PROGRESS : DONE;
}

/* Run every instant up to `until`, and the network up to just after it; DONE, or why not: PAUSED after so many `turns`
 * of this loop and the network's. */
static int64_t run_instants(struct engine *engine, network_loop loop, struct core *core, void *columns, int64_t until,
                            int64_t turns) {
  struct engine_state *state = &engine->state;
  for (;;) {
    if (turns-- <= 0 || state->num_log >= state->most_log) return PAUSED;
    if (engine->repeats != NULL) repeat(engine, core, columns, until);
    int64_t status = one_turn(engine);
    if (status == DONE) continue;
    if (status != NONE) return status;
    /* The instant is over: the network goes on to the next, unless it has been there. */
    int64_t time = next_engine_instant(engine), horizon = least(time, until + 1);
    /* What would start after the end of time is for a network elsewhere to refuse. */
    bool is_left = loop == NULL && state->num_starts > 0 && horizon == NEVER;
    if (state->granted >= horizon && !is_left) {
      if ((time > until && time != state->hold) || time == NEVER) return DONE;
      state->now = time;
      continue;
    }
    if (state->may_go_on && horizon == NEVER && state->under_way == 0 && state->num_starts == 0) return DONE;
    state->horizon = horizon;
    if (loop == NULL) return ASK_NETWORK;
    status = advance(engine, loop, core, columns, horizon, &turns);
    if (status != DONE) return status;
  }
}

/* The same for Python. `loop` is where the loop of a network of this process is, with its core and columns; 0: Python
 * asks it. */
int64_t run_engine(struct engine *engine, int64_t loop, int64_t core, int64_t columns, int64_t until, int64_t turns) {
  CATCH_OUT_OF_MEMORY;
  struct core *own = (struct core *)(intptr_t)core;
  int64_t status = run_instants(engine, (network_loop)(intptr_t)loop, own, (void *)(intptr_t)columns, until, turns);
  /* Whoever is asked for anything else may change what goes where. */
  if (status != DONE && status != PAUSED && status != TELL && status != NEED_TRAITS && status != MORE_CHANGES)
    forget_repeats(engine);
  return status;
}
