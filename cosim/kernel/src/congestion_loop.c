/* The loop of `congestion`: begin, start, ask, apply, drain.
 *
 * Each turn does one thing and goes round, so that it may stop anywhere, to have a control asked, or a balancer. Time
 * leaves an instant only when all that happened in it is in force (congestion_apply.c).
 */
#include "kernel.h"

enum {
  GO_ROUND = -1, /* there is more to do */
  ROWS_AT_ONCE = 64, /* of a batch */
};

/* -- flows begin and end ------------------------------------------------------------------------------------------- */

/* A connection takes its next flow. */
static void begin_flow(struct core *core, struct congestion_state *fluid, int64_t c) {
  struct connection *one = &fluid->conns[c];
  int64_t size = take_flow(core, fluid, c), now = core->state.instant;
  one->remaining = one->size;
  one->sent = 0;
  one->counted = 0;
  /* A message without bytes takes its turn, too: it arrives when those before it have been sent. */
  if (size == 0 && !is_cut(fluid, c))
    set_drain(fluid->drains, c, now);
  else if (fluid->settings.balanced)
    choose_at_end(fluid->balance, c, true); /* and sends when it has chosen */
  else
    send_flow(core, fluid, c, now);
}

/* A row for a flow that starts. */
static int64_t new_sent_flow(struct congestion_state *fluid) {
  struct congestion_counts *counts = &fluid->counts;
  int64_t f = counts->free_flow;
  if (f == NONE) {
    f = counts->flows_used++;
    RESERVE(fluid, flows, counts->flows_used);
  } else {
    counts->free_flow = fluid->flows[f].next;
  }
  return f;
}

/* A flow starts: a mark completes, any other goes to the end of its connection. */
static void start_flow(struct core *core, struct congestion_state *fluid, struct event e) {
  int64_t now = core->state.instant, path = core->store->groups[e.handle].path + e.row;
  core->state.num_started++;
  if (core->path_ptr[path] == core->path_ptr[path + 1]) { /* a mark, or two participants on one endpoint */
    complete(core, e.handle, e.rep, e.row, now, now, now);
    return;
  }
  expect_flow(core, fluid, path, now);
  int64_t f = new_sent_flow(fluid);
  fluid->flows[f] =
      (struct sent_flow){.origin = now, .handle = e.handle, .rep = e.rep, .row = e.row, .next = NONE};
  int64_t c = fluid->channel_of[path];
  struct connection *one = &fluid->conns[c];
  /* Flows of a connection go one after another, as on a queue pair or a socket. */
  if (one->flow == NONE) {
    one->flow = (int32_t)f;
    fluid->counts.begin = c + 1;
  } else {
    fluid->flows[one->tail].next = (int32_t)f;
  }
  one->tail = (int32_t)f;
}

/* Whether a flow has drained: neither is its window used up, nor was a part of it lost. */
static bool is_sent(struct congestion_state *fluid, int64_t c, int64_t size, int64_t now) {
  const struct congestion_settings *settings = &fluid->settings;
  struct connection *one = &fluid->conns[c];
  if (one->budget <= 0.5 && one->remaining > 0.5) {
    /* The window is used up: nothing more before the round ends. */
    if (settings->trims) {
      /* So much was cut of the burst that it was, not of the silence after it. */
      send_again(one, (double)count_losses(fluid, c, now) * settings->mss);
    }
    fall_silent(fluid, c, now);
    change_conn(fluid, c);
    return false;
  }
  if (size == 0) return true;
  if (!settings->lossless) {
    int64_t lost = count_losses(fluid, c, now);
    /* Packets are sent again when the round ends and the loss is known; less than one at once, as nothing is heard of
     * it. */
    double again = lost > 0 ? (double)lost * settings->mss : one->owed;
    if (again > LEAST_OWED) {
      one->remaining = 0.0;
      send_again(one, again);
      if (lost > 0) fall_silent(fluid, c, now);
      change_conn(fluid, c);
      return false;
    }
  }
  if (one->coflow >= 0) fluid->coflows[one->coflow].sent += size - one->sent;
  one->sent = size;
  one->round_sent += one->remaining;
  one->remaining = 0.0;
  return true;
}

/* A connection has nothing more to send. */
static void fall_idle(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  if (one->settled && met_nothing(fluid, one)) {
    /* There is nothing to tell the control when the round ends: it ends here. */
    fluid->counts.num_asleep -= one->asleep;
    one->asleep = 0;
    one->due = NONE;
  } else if (one->asleep) {
    wake(fluid, c, now);
  }
  one->active = 0;
  if (fluid->settings.credits) ask_for_credit(fluid, c);
  change_conn(fluid, c);
  fluid->counts.num_active--;
}

/* The next drain: all that a connection has, or may send, has left. */
static void drain_conn(struct core *core, struct congestion_state *fluid) {
  struct congestion_counts *counts = &fluid->counts;
  int64_t now = fluid->drains->entries[0].time, c = fluid->drains->entries[0].flow;
  set_drain(fluid->drains, c, NEVER);
  core->state.instant = now;
  core->state.num_events++;
  struct connection *one = &fluid->conns[c];
  int64_t f = one->flow;
  settle_conn(fluid, c, now);
  look_ahead(core, fluid, c, now);
  int64_t size = core->store->rows[fluid->flows[f].row].size;
  if (!is_sent(fluid, c, size, now)) return;
  count_bytes(core, fluid, c, (int64_t)one->size);
  int64_t arrives = arrival(fluid, c, size, now);
  if (fluid->settings.balanced) end_choice(fluid, c, now);
  struct sent_flow *flow = &fluid->flows[f];
  one->flow = flow->next;
  if (one->flow != NONE)
    counts->begin = c + 1;
  else if (one->active)
    fall_idle(fluid, c, now);
  if (arrives == NEVER) {
    send_last(core, fluid, f, c, now);
    return;
  }
  end_flow(core, fluid, f, c, arrives, now);
}

/* -- events -------------------------------------------------------------------------------------------------------- */

/* A port's queue is expected to be gone. */
static void look_at_end(struct core *core, struct congestion_state *fluid, int64_t p, int64_t now) {
  struct port *port = &fluid->ports[p];
  if (port->empties != now) return;
  port->empties = 0;
  settle_queues(core, fluid, port->link, now);
  tell_port(fluid, p);
  look_after(fluid, p);
}

/* The connection whose round ends by an event that is `ahead` in the instant; NULL: there is none. */
static inline const struct connection *round_ahead(const struct core *core, const struct congestion_state *fluid,
                                                   int64_t ahead) {
  int64_t at = core->state.cursor + ahead;
  if (at >= core->state.instant_size) return NULL;
  const struct event *event = &core->calendar->events[fluid->instant[at]];
  return event->hop == ROUND_ENDS ? &fluid->conns[event->row] : NULL;
}

/* Have connections whose rounds end soon in this instant, and their paths, come from memory while others are looked at:
 * where there are tens of thousands, nearly nothing of them is in a cache, and a round would wait for one after another.
 */
FETCHES void fetch_rounds(const struct core *core, const struct congestion_state *fluid) {
  const struct connection *far = round_ahead(core, fluid, 9), *near = round_ahead(core, fluid, 6),
                          *next = round_ahead(core, fluid, 3);
  if (far != NULL) {
    const char *begin = (const char *)far;
    for (size_t k = 0; k < sizeof *far; k += 64) __builtin_prefetch(begin + k);
  }
  if (near != NULL && near->subflow != NONE) __builtin_prefetch(&fluid->subflows[near->subflow]);
  if (next != NULL && next->subflow != NONE) fetch_hops(fluid, &fluid->subflows[next->subflow], 0);
}

/* The next event of the instant. One whose connection or port expects another time by now is stale. */
static void serve_event(struct core *core, struct congestion_state *fluid) {
  struct core_state *state = &core->state;
  int64_t now = state->instant, at = fluid->instant[state->cursor];
  struct event e = core->calendar->events[at];
  if (e.hop == MAY_CROSS && fluid->ports[e.row].check == now && has_left(core, fluid, e.row, now))
    return; /* and again: others may leave with it */
  state->cursor++;
  state->num_events++;
  free_event(core->calendar, at);
  switch (e.hop) {
    case FLOW_STARTS:
      start_flow(core, fluid, e);
      break;
    case ROUND_ENDS:
      fetch_rounds(core, fluid);
      if (fluid->conns[e.row].due != now) break;
      fluid->conns[e.row].due = NONE;
      /* Over a dead link nothing comes back that its control could be told. */
      if (!fluid->conns[e.row].held) end_round(core, fluid, e.row, now);
      break;
    case CHOOSES_AGAIN:
      if (fluid->balance->routes[e.row].due == now) choose_at_end(fluid->balance, e.row, false);
      break;
    case QUEUE_EMPTIES:
      look_at_end(core, fluid, e.row, now);
      break;
    case BOUNDARY_PASSES:
      if (fluid->lines[e.row].due == now) pass_boundaries(core, fluid, e.row, least_queue(fluid), now);
      break;
    default: /* MAY_CROSS */
      if (fluid->ports[e.row].check != now) break;
      fluid->ports[e.row].check = 0;
      at_threshold(core, fluid, e.row, now);
  }
}

/* Whether another flow of the same connection starts in this instant. */
static bool starts_again(const struct core *core, struct congestion_state *fluid, const struct event *e) {
  const struct row *row = &core->store->rows[e->row];
  if (row->src == row->dst) return false;
  struct connection *one = &fluid->conns[fluid->channel_of[core->store->groups[e->handle].path + e->row]];
  bool again = one->seen == core->state.serial;
  one->seen = core->state.serial;
  return again;
}

/* Go to the next events: rounds end before flows start; flows of one connection start in their order. */
static void take_events(struct core *core, struct congestion_state *fluid) {
  struct core_state *state = &core->state;
  const struct event *events = core->calendar->events;
  RESERVE(fluid, instant, core->calendar->state.num_events);
  RESERVE(fluid, starts, core->calendar->state.num_events);
  state->instant = core->calendar->heap[0].time;
  state->serial++; /* tells connections that were seen in this instant, without clearing marks */
  int64_t found = 0, starts = 0;
  bool clash = false;
  for (int64_t at = take_instant(core->calendar); at != NONE; at = events[at].next) {
    if (events[at].hop == FLOW_STARTS) {
      fluid->starts[starts++] = (int32_t)at;
      /* Only flows of one connection have an order to keep, and most instants have no two of one. */
      clash = starts_again(core, fluid, &events[at]) || clash;
    } else {
      fluid->instant[found++] = (int32_t)at;
    }
  }
  if (clash) {
    RESERVE(fluid, spare, starts);
    RESERVE(fluid, other, starts);
    sort_instant(core, fluid->starts, fluid->spare, fluid->other, starts);
  }
  memcpy(fluid->instant + found, fluid->starts, (size_t)starts * sizeof *fluid->instant);
  state->cursor = 0;
  state->instant_size = found + starts;
}

/* -- turns --------------------------------------------------------------------------------------------------------- */

static bool is_amount(double value) { return isfinite(value) && value >= 0.0; }

/* Whether what a compiled control wrote are numbers: somebody's plug-in may write anything. */
static bool are_answers_numbers(const struct congestion_state *fluid, int64_t first, int64_t count) {
  const struct congestion_settings *settings = &fluid->settings;
  for (int64_t n = first; n < first + count; n++) {
    const struct control_row *row = &fluid->rows[n];
    if (!is_amount(settings->gives_rate ? row->rate : row->window) || !is_amount(row->wait)) return false;
    for (int64_t k = 0; k < settings->num_states; k++)
      if (!isfinite(fluid->state[row->conn * MOST_STATES + k])) return false;
  }
  return true;
}

/* Ask a compiled control about rows of a batch, until all their rounds are told: GO_ROUND, or WRONG_ANSWER. */
static int64_t ask_compiled(struct congestion_state *fluid, int64_t first, int64_t count, int64_t now) {
  control_kernel ask = (control_kernel)(intptr_t)fluid->counts.kernel;
  while (count > 0) {
    ask(count, fluid->rows + first, fluid->telemetry, fluid->state, fluid->parameters);
    if (!are_answers_numbers(fluid, first, count)) {
      fluid->counts.num_waiting = first + count; /* for Python to find which */
      return WRONG_ANSWER;
    }
    count = show_next_rounds(fluid, first, count, now);
  }
  return GO_ROUND;
}

/* A batch is answered: the instant goes on. */
static void end_control_batch(struct congestion_state *fluid) {
  fluid->counts.batch_size = 0;
  fluid->counts.num_sights = 0;
  fluid->counts.open = 1;
}

/* Ask the control about a batch: GO_ROUND, or ASK_CONTROL where Python has it, and comes back with its answers. */
static int64_t ask_control(struct congestion_state *fluid, int64_t now) {
  struct congestion_counts *counts = &fluid->counts;
  if (counts->kernel == 0) {
    fill_batch(fluid, 0, counts->batch_size, now);
    counts->num_waiting = counts->batch_size;
    return ASK_CONTROL;
  }
  /* By so few that they stay in the cache, from the first of their rounds to the last. */
  for (int64_t first = 0; first < counts->batch_size; first += ROWS_AT_ONCE) {
    int64_t count = least(ROWS_AT_ONCE, counts->batch_size - first);
    fill_batch(fluid, first, count, now);
    if (ask_compiled(fluid, first, count, now) != GO_ROUND) return WRONG_ANSWER;
    take_answers(fluid, first, count, now);
  }
  end_control_batch(fluid);
  return GO_ROUND;
}

/* Take what Python has answered: GO_ROUND, or ASK_CONTROL where some rows have further rounds to tell. */
static int64_t take_from_python(struct congestion_state *fluid, int64_t now) {
  struct congestion_counts *counts = &fluid->counts;
  counts->num_waiting = show_next_rounds(fluid, 0, counts->num_waiting, now);
  if (counts->num_waiting > 0) return ASK_CONTROL;
  take_answers(fluid, 0, counts->batch_size, now);
  end_control_batch(fluid);
  return GO_ROUND;
}

/* One thing of the instant that is left to do: GO_ROUND, where nothing is DONE, else why the loop stops. Controls are
 * asked when all rounds have ended, about all of them. */
static int64_t go_on_with_instant(struct core *core, struct congestion_state *fluid) {
  struct congestion_counts *counts = &fluid->counts;
  if (counts->num_waiting > 0) return take_from_python(fluid, core->state.instant);
  if (counts->begin != 0) {
    int64_t c = counts->begin - 1;
    counts->begin = 0;
    begin_flow(core, fluid, c);
  } else if (core->state.cursor < core->state.instant_size) {
    serve_event(core, fluid);
  } else {
    if (counts->batch_size == 0) return DONE;
    return ask_control(fluid, core->state.instant);
  }
  return GO_ROUND;
}

static bool anyone_chooses(const struct congestion_state *fluid) {
  return fluid->settings.balanced && fluid->balance->counts.num_choosing > 0;
}

/* Bring into force what happened in the instant: GO_ROUND, or why the loop stops. */
static int64_t close_instant(struct core *core, struct congestion_state *fluid) {
  if (anyone_chooses(fluid)) {
    int64_t status = choose_paths(core, fluid, core->state.instant);
    return status == DONE ? GO_ROUND : status;
  }
  apply_changes(core, fluid, core->state.instant);
  return GO_ROUND;
}

/* Time leaves the instant: what changed in it comes into force, once, then the next drain or event is taken. GO_ROUND,
 * or why the loop stops. */
static int64_t leave_instant(struct core *core, struct congestion_state *fluid, int64_t horizon) {
  struct core_state *state = &core->state;
  const struct congestion_counts *counts = &fluid->counts;
  int64_t limit = least(horizon, state->bound), coming = NEVER;
  if (fluid->settings.changing) coming = next_change_time(core, fluid->changes, counts->num_active == 0);
  int64_t event = next_event_time(core->calendar), next = least(event, coming);
  int64_t drain = next_drain_time(fluid->drains);
  state->next = least(next, drain);
  if (state->next > state->instant) {
    if (counts->open || anyone_chooses(fluid)) {
      if (limit > state->instant) return close_instant(core, fluid);
      state->next = state->instant;
      return DONE;
    }
    if (state->num_pending >= state->report_at) return DONE;
  }
  /* A drain follows from the past, so it may lie at the limit; the caller may still give starts there. */
  if (drain < NEVER && drain <= next && drain <= limit) {
    drain_conn(core, fluid);
    return GO_ROUND;
  }
  bool in_vain = is_in_vain(fluid->changes, least(event, drain));
  if (next >= limit || (limit == NEVER && in_vain)) {
    if (in_vain) state->next = NEVER;
    return DONE;
  }
  if (coming <= event) {
    int64_t status = pass_change(core, fluid);
    return status == DONE ? GO_ROUND : status;
  }
  take_events(core, fluid);
  return GO_ROUND;
}

/* Run every instant before the horizon and before any completion's reaction could matter. */
int64_t run_congestion(struct core *core, struct congestion_state *fluid, int64_t horizon) {
  for (;;) {
    /* First what follows from the turn before: dependents that it released may start in this instant. */
    int64_t status = release_dependents(core);
    if (status == DONE && fluid->counts.stuck) status = DEADLOCK;
    if (status == DONE) status = go_on_with_instant(core, fluid);
    if (status == DONE) status = leave_instant(core, fluid, horizon);
    if (status != GO_ROUND) return status;
  }
}
