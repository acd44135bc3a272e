/* congestion_aware and congestion_unaware where links fail, slow down and come back: cosim/network/analytical.py.
 *
 * A message is sent in legs: under congestion_aware each link of its path is one, which sends one message at a time;
 * under congestion_unaware the whole path is, and any number at once are on it. On a leg a message has the rate of the
 * slowest link there. Where that changes, what has been sent counts, and the rest goes at the new rate; at rate 0 it
 * waits.
 *
 * Without changes this gives what the models' own loops give, which know of no drains: there, when a message arrives is
 * known when it is sent. At an instant, first what has been sent, then what changes, then what starts or comes to its
 * next link.
 */
#include "kernel.h"

/* -- legs ----------------------------------------------------------------------------------------------------------- */

/* Where in path_link a message's leg begins. */
static inline int64_t first_of_leg(const struct core *core, const struct leg_message *one) {
  return core->path_ptr[one->path] + one->hop;
}

/* Where it ends. */
static inline int64_t past_leg(const struct core *core, const struct legs *legs, const struct leg_message *one) {
  return legs->in_turn ? first_of_leg(core, one) + 1 : core->path_ptr[one->path + 1];
}

static bool is_on_leg(const struct core *core, const struct legs *legs, const struct leg_message *one, int64_t link) {
  for (int64_t k = first_of_leg(core, one); k < past_leg(core, legs, one); k++)
    if (core->path_link[k] == link) return true;
  return false;
}

static inline double in_ns(int64_t ps) { return (double)ps / PS_PER_NS; }

/* Bytes that a message that is sending still has to send on its leg. */
static inline double left_to_send(const struct leg_message *one, int64_t now) {
  return most_of(one->left - one->rate * in_ns(now - one->touched), 0.0);
}

/* Count what was sent, but for `left` bytes, on the leg's links, before any of them changes. */
static void count_sent(struct core *core, struct legs *legs, struct leg_message *one, double left, int64_t now) {
  double sent = (double)core->store->rows[one->row].size - left;
  int64_t more = (int64_t)sent - (int64_t)one->counted;
  for (int64_t k = first_of_leg(core, one); k < past_leg(core, legs, one); k++) {
    int64_t link = core->path_link[k];
    core->link_bytes[link] += more;
    if (sent <= one->counted) continue;
    int64_t busy = (int64_t)((sent - one->counted) / legs->lanes[link].rate * PS_PER_NS);
    add_busy(core, link, one->since, least(busy, now - one->since)); /* it is free at a whole nanosecond */
  }
  one->counted = sent;
  one->since = now;
}

/* How long a message takes on its leg from the first byte to the last, as things are. */
static inline double takes_ns(const struct leg_message *one) {
  return in_ns(one->touched - one->begin) + one->left / one->rate;
}

/* Whether what begins at `begin` and takes so long ends before times do: as an integer it would be any number. */
static inline bool ends_in_time(struct core *core, int64_t begin, double takes) {
  if (takes < MOST_NS - in_ns(begin)) return true;
  core->state.too_late = 1;
  return false;
}

/* Have a message go on at the rate that its leg has now. */
static void set_leg_rate(struct core *core, struct legs *legs, int64_t m, int64_t now) {
  struct leg_message *one = &legs->messages[m];
  double rate = (double)INFINITY;
  for (int64_t k = first_of_leg(core, one); k < past_leg(core, legs, one); k++)
    rate = least_of(rate, legs->lanes[core->path_link[k]].rate);
  if (rate == one->rate) return; /* what doesn't touch it must not round it anew */
  one->left = left_to_send(one, now);
  one->touched = now;
  one->rate = rate;
  int64_t time = NEVER;
  if (rate > 0.0) {
    double takes = takes_ns(one);
    if (!ends_in_time(core, one->begin, takes)) return;
    /* Whole nanoseconds, cut off as ASTRA-sim does, but for a change within the last one. */
    time = one->begin + (int64_t)takes * PS_PER_NS;
    if (time < now) time += PS_PER_NS;
  }
  set_drain(legs->drains, m, time);
}

/* A message that is whole at the beginning of its leg is sent. */
static void begin_leg(struct core *core, struct legs *legs, int64_t m, int64_t now) {
  struct leg_message *one = &legs->messages[m];
  one->sending = 1;
  one->begin = one->touched = one->since = now;
  one->left = (double)core->store->rows[one->row].size;
  one->counted = one->rate = 0.0;
  set_leg_rate(core, legs, m, now);
}

/* A message is at the beginning of its leg: it is sent, or waits for its turn. */
static void reach_leg(struct core *core, struct legs *legs, int64_t m, int64_t now) {
  struct leg_message *one = &legs->messages[m];
  one->next = NONE;
  if (legs->in_turn) {
    struct leg_link *lane = &legs->lanes[core->path_link[first_of_leg(core, one)]];
    bool is_free = lane->head == NONE;
    if (is_free)
      lane->head = (int32_t)m;
    else
      legs->messages[lane->tail].next = (int32_t)m;
    lane->tail = (int32_t)m;
    if (!is_free) return;
  }
  begin_leg(core, legs, m, now);
}

/* A message comes to its next leg at a time that was certain since `cause`. */
static void push_message(struct core *core, const struct leg_message *one, int64_t m, int64_t time, int64_t cause) {
  push_event(core->calendar, time,
             (struct event){cause, one->origin, one->handle, one->rep, one->row, (int32_t)m + 1, NONE, 0});
}

/* -- routes that change --------------------------------------------------------------------------------------------- */

/* Whether routing knows a link to be dead that a message still has to pass. */
static bool is_avoided_ahead(const struct core *core, const struct legs *legs, const struct leg_message *one) {
  for (int64_t k = first_of_leg(core, one); k < core->path_ptr[one->path + 1]; k++)
    if (legs->lanes[core->path_link[k]].avoided) return true;
  return false;
}

/* Have a message that is whole at its hop go the way that its row goes now, from the last node that both ways share;
 * where it is past that, only if a link ahead of it is known to be dead. */
static void follow_route(const struct core *core, struct legs *legs, struct leg_message *one) {
  int64_t path = path_of(core, one->handle, one->row);
  if (path == one->path) return;
  const int32_t *old = &core->path_link[core->path_ptr[one->path]], *new = &core->path_link[core->path_ptr[path]];
  int64_t hops = least(one->hop, core->path_ptr[path + 1] - core->path_ptr[path]), shared = 0;
  while (shared < hops && old[shared] == new[shared]) shared++;
  if (shared < one->hop && !is_avoided_ahead(core, legs, one)) return;
  one->path = path;
  one->hop = (int32_t)shared;
}

/* A message leaves a lane for another way, which it has already. What was sent counts on the old one. */
static void leave_lane(struct core *core, struct legs *legs, int64_t m, int64_t old_path, int32_t old_hop,
                       int64_t now) {
  struct leg_message *one = &legs->messages[m];
  if (one->sending) {
    int64_t path = one->path;
    int32_t hop = one->hop;
    one->path = old_path;
    one->hop = old_hop;
    count_sent(core, legs, one, left_to_send(one, now), now);
    one->path = path;
    one->hop = hop;
    one->sending = 0;
  }
  push_message(core, one, m, now, now);
}

/* Have those at a link that go another way now leave it; the others stay, in their order. */
static void reroute_lane(struct core *core, struct legs *legs, int64_t link, int64_t now) {
  struct leg_link *lane = &legs->lanes[link];
  int32_t first = lane->head, after;
  lane->head = NONE;
  for (int32_t m = first; m != NONE; m = after) {
    struct leg_message *one = &legs->messages[m];
    int64_t path = one->path;
    int32_t hop = one->hop;
    after = one->next;
    /* What is on the wire of a link that works goes on there, and looks around at the next node. */
    if (!one->sending || one->rate == 0.0) follow_route(core, legs, one);
    if (core->path_link[first_of_leg(core, one)] != link) {
      leave_lane(core, legs, m, path, hop, now);
      continue;
    }
    if (lane->head == NONE)
      lane->head = m;
    else
      legs->messages[lane->tail].next = m;
    lane->tail = m;
    one->next = NONE;
  }
  if (lane->head != NONE && lane->head != first) begin_leg(core, legs, lane->head, now);
}

/* Routes have changed: those that go another way now do. */
int64_t move_messages(struct core *core, struct legs *legs) {
  CATCH_OUT_OF_MEMORY;
  int64_t now = core->state.instant;
  if (legs->in_turn) {
    for (int64_t link = 0; link < legs->lanes_len; link++) reroute_lane(core, legs, link, now);
    return DONE;
  }
  for (int64_t m = 0; m < legs->messages_used; m++) {
    struct leg_message *one = &legs->messages[m];
    if (!one->sending || path_of(core, one->handle, one->row) == one->path) continue;
    count_sent(core, legs, one, left_to_send(one, now), now);
    one->path = path_of(core, one->handle, one->row);
    set_leg_rate(core, legs, m, now);
  }
  return DONE;
}

/* -- the loop ------------------------------------------------------------------------------------------------------- */

/* A place for a message that starts. */
static int64_t new_leg_message(struct core *core, struct legs *legs, const struct event *event) {
  int64_t m = legs->free_message;
  if (m == NONE) {
    m = legs->messages_used++;
    RESERVE(legs, messages, legs->messages_used);
  } else {
    legs->free_message = legs->messages[m].next;
  }
  legs->under_way++;
  struct leg_message *one = &legs->messages[m];
  one->origin = core->state.instant;
  one->handle = event->handle;
  one->rep = event->rep;
  one->row = event->row;
  one->path = path_of(core, one->handle, one->row);
  one->hop = 0;
  one->sending = 0;
  return m;
}

/* The next message has been sent: the link takes the next one, and it is at the next node later. */
static void end_leg(struct core *core, struct legs *legs) {
  int64_t m = legs->drains->entries[0].flow, now = legs->drains->entries[0].time;
  set_drain(legs->drains, m, NEVER);
  core->state.instant = now;
  core->state.num_events++;
  struct leg_message *one = &legs->messages[m];
  count_sent(core, legs, one, 0.0, now);
  one->sending = 0;
  int64_t first = first_of_leg(core, one), past = past_leg(core, legs, one), latency = 0;
  for (int64_t k = first; k < past; k++) latency += legs->lanes[core->path_link[k]].latency;
  double takes = in_ns(latency) + takes_ns(one);
  if (!ends_in_time(core, one->begin, takes)) return;
  int64_t arrival = most(one->begin + (int64_t)takes * PS_PER_NS, now);
  if (legs->in_turn) {
    struct leg_link *lane = &legs->lanes[core->path_link[first]];
    lane->head = one->next;
    if (lane->head != NONE) begin_leg(core, legs, lane->head, now);
  }
  if (past < core->path_ptr[one->path + 1]) {
    one->hop++;
    push_message(core, one, m, arrival, one->touched);
    return;
  }
  complete(core, one->handle, one->rep, one->row, one->origin, arrival, one->touched);
  legs->under_way--;
  one->next = (int32_t)legs->free_message;
  legs->free_message = m;
}

/* The next event of the instant: a mark completes, a message starts, or comes to its next link. */
static void take_event(struct core *core, struct legs *legs) {
  struct core_state *state = &core->state;
  int64_t at = legs->instant[state->cursor++], now = state->instant;
  struct event event = core->calendar->events[at];
  free_event(core->calendar, at);
  state->num_events++;
  int64_t m = (int64_t)event.hop - 1;
  if (m != NONE) {
    follow_route(core, legs, &legs->messages[m]);
  } else {
    int64_t path = core->store->groups[event.handle].path + event.row;
    state->num_started++;
    if (core->path_ptr[path] == core->path_ptr[path + 1]) { /* a mark, or two participants on one endpoint */
      complete(core, event.handle, event.rep, event.row, now, now, event.cause);
      return;
    }
    m = new_leg_message(core, legs, &event);
  }
  reach_leg(core, legs, m, now);
}

/* Go to the next instant of the calendar: who comes first at a link is served first. */
static void open_leg_instant(struct core *core, struct legs *legs) {
  struct core_state *state = &core->state;
  RESERVE(legs, instant, core->calendar->state.num_events);
  state->instant = core->calendar->heap[0].time;
  state->cursor = state->instant_size = 0;
  for (int64_t at = take_instant(core->calendar); at != NONE; at = core->calendar->events[at].next)
    legs->instant[state->instant_size++] = (int32_t)at;
  if (!legs->in_turn) return;
  RESERVE(legs, spare, state->instant_size);
  RESERVE(legs, other, state->instant_size);
  sort_instant(core, legs->instant, legs->spare, legs->other, state->instant_size);
}

/* The next change: of a link's rate, at once; or of the routes, which are found outside of the loop. */
static int64_t take_lane_change(struct core *core, struct legs *legs) {
  const struct change *change = begin_change(core, legs->changes);
  if (change->link == ROUTES) return NEW_ROUTES;
  for (int64_t m = 0; m < legs->messages_used; m++) {
    struct leg_message *one = &legs->messages[m];
    if (one->sending && is_on_leg(core, legs, one, change->link))
      count_sent(core, legs, one, left_to_send(one, change->time), change->time);
  }
  legs->lanes[change->link].rate = change->rate / 8.0 / 1e9;
  for (int64_t m = 0; m < legs->messages_used; m++)
    if (legs->messages[m].sending && is_on_leg(core, legs, &legs->messages[m], change->link))
      set_leg_rate(core, legs, m, change->time);
  return end_change(legs->changes);
}

/* Run every instant before the horizon and before any completion's reaction could matter. */
int64_t run_changing(struct core *core, struct legs *legs, int64_t horizon) {
  struct core_state *state = &core->state;
  for (;;) {
    int64_t status = release_dependents(core);
    if (status != DONE) return status;
    if (state->cursor < state->instant_size) {
      take_event(core, legs);
      continue;
    }
    int64_t limit = least(horizon, state->bound);
    int64_t start = next_event_time(core->calendar), drain = next_drain_time(legs->drains);
    int64_t change = next_change_time(core, legs->changes, legs->under_way == 0);
    int64_t coming = least(start, change);
    state->next = least(coming, drain);
    if (state->num_pending >= state->report_at && state->next > state->instant) return DONE;
    /* A drain follows from the past, so it may lie at the limit; the caller may still give starts there. */
    if (drain != NEVER && drain <= coming && drain <= limit) {
      end_leg(core, legs);
      continue;
    }
    bool in_vain = is_in_vain(legs->changes, least(start, drain));
    if (coming >= limit || (limit == NEVER && in_vain)) {
      /* Nobody has to wait for it: of two networks in one run each would for the other, for ever. */
      if (in_vain) state->next = NEVER;
      return DONE;
    }
    if (change <= start) {
      status = take_lane_change(core, legs);
      if (status != DONE) return status;
      continue;
    }
    open_leg_instant(core, legs);
  }
}
