/* The loop of fair_share: begin, start, share, drain, in the order that cosim/network/fair_share.py gives. */
#include "kernel.h"

/* The channel of a row that has links. */
static inline int64_t channel_of(const struct core *core, const struct fluid *fluid, int64_t handle, int64_t row) {
  return fluid->channel_of[core->store->groups[handle].path + row];
}

/* -- links that change --------------------------------------------------------------------------------------------- */

/* The next change: a link's rate, at once; or the routes, which Python finds. */
static int64_t take_change(struct core *core, struct fluid *fluid) {
  const struct change *one = begin_change(core, fluid->changes);
  if (one->link == ROUTES) return NEW_ROUTES;
  struct fluid_link *link = &fluid->links[one->link];
  change_use(core, fluid, one->link, 0.0, one->time);
  link->since = one->time;
  link->capacity = one->rate / BPS_PER_BYTE_PS;
  recount_load(fluid, link);
  mark_link(fluid, one->link, CAME);
  return end_change(fluid->changes);
}

/* A flow under way goes on by another path.
 *
 * What was sent has arrived, and counts where it went; the rest counts on its last links when it drains.
 */
static void move_flow(struct core *core, struct fluid *fluid, int64_t f, int64_t from, int64_t to) {
  struct fluid_flow *flow = &fluid->flows[f];
  flow->remaining = left_of(flow, core->state.instant);
  flow->touched = core->state.instant;
  struct fluid_message *message = &fluid->messages[f];
  int64_t sent = core->store->rows[message->row].size - (int64_t)ceil(flow->remaining);
  for (int64_t k = core->path_ptr[from]; k < core->path_ptr[from + 1]; k++)
    core->link_bytes[core->path_link[k]] += sent - message->counted;
  message->counted = sent;
  leave_path(fluid, f);
  flow->level = -1.0;
  join_path(core, fluid, f, to);
}

/* Flows under way go on where paths are now. Where they were so far is known by row. */
int64_t move_flows(struct core *core, struct fluid *fluid, const int64_t *so_far) {
  CATCH_OUT_OF_MEMORY;
  for (int64_t f = 0; f < fluid->counts.flows_used; f++) {
    if (fluid->flows[f].member == NONE) continue;
    const struct fluid_message *message = &fluid->messages[f];
    int64_t from = so_far[core->store->groups[message->handle].path + message->row];
    int64_t to = path_of(core, message->handle, message->row);
    if (from != to) move_flow(core, fluid, f, from, to);
  }
  return DONE;
}

/* -- the life of a flow -------------------------------------------------------------------------------------------- */

/* The first flow of a channel begins to transfer. */
static void begin_transfer(struct core *core, struct fluid *fluid) {
  int64_t f = fluid->counts.begin - 1, now = core->state.instant;
  const struct fluid_message *message = &fluid->messages[f];
  struct fluid_flow *flow = &fluid->flows[f];
  int64_t path = path_of(core, message->handle, message->row);
  fluid->counts.begin = 0;
  flow->touched = now;
  /* Nothing to transfer: it needs no place on its links, only its turn in the channel. */
  if (flow->remaining == 0.0 && (has_balancer(fluid) || is_path_alive(core, fluid, path)))
    set_drain(fluid->drains, f, now);
  else if (has_balancer(fluid)) /* its path is chosen when time leaves the instant */
    begin_on_route(fluid, channel_of(core, fluid, message->handle, message->row));
  else
    join_path(core, fluid, f, path);
}

/* A place for a flow. */
static int64_t new_flow(struct fluid *fluid) {
  struct fluid_counts *counts = &fluid->counts;
  int64_t f = counts->free_flow;
  if (f != NONE) {
    counts->free_flow = fluid->messages[f].next;
    return f;
  }
  RESERVE(fluid, flows, counts->flows_used + 1);
  RESERVE(fluid, messages, counts->flows_used + 1);
  return counts->flows_used++;
}

/* The next start of the instant: a mark completes, a flow goes to the end of its channel. */
static void start_next(struct core *core, struct fluid *fluid) {
  struct core_state *state = &core->state;
  int64_t at = fluid->instant[state->cursor++], now = state->instant;
  struct event event = core->calendar->events[at];
  state->num_started++;
  state->num_events++;
  free_event(core->calendar, at);
  int64_t path = core->store->groups[event.handle].path + event.row;
  if (core->path_ptr[path] == core->path_ptr[path + 1]) { /* a mark, or two participants on one endpoint */
    complete(core, event.handle, event.rep, event.row, now, now, now);
    return;
  }
  int64_t f = new_flow(fluid);
  fluid->messages[f] = (struct fluid_message){now, 0, event.handle, event.rep, event.row, NONE};
  fluid->flows[f] = (struct fluid_flow){
      .level = -1.0, /* none yet: a filling knows by it that the flow is new */
      .remaining = (double)core->store->rows[event.row].size,
      .touched = now,
      .member = NONE,
      .traits = core->store->groups[event.handle].traits,
  };
  /* A channel transfers one message at a time, in the order of their starts; the others wait behind it. */
  struct fluid_channel *channel = &fluid->channels[fluid->channel_of[path]];
  if (channel->head == NONE) {
    channel->head = (int32_t)f;
    fluid->counts.begin = f + 1;
  } else {
    fluid->messages[channel->tail].next = (int32_t)f;
  }
  channel->tail = (int32_t)f;
}

/* A flow's bytes count on its links; when its last one arrives. */
static int64_t end_on_path(struct core *core, struct fluid *fluid, const struct fluid_message *message) {
  int64_t path = path_of(core, message->handle, message->row), arrival = core->state.instant;
  for (int64_t k = core->path_ptr[path]; k < core->path_ptr[path + 1]; k++) {
    int64_t link = core->path_link[k];
    core->link_bytes[link] += core->store->rows[message->row].size - message->counted;
    arrival += fluid->links[link].latency;
  }
  return arrival;
}

/* The next drain: the flow leaves its links, and the next one of its channel begins. */
static void drain_next(struct core *core, struct fluid *fluid) {
  int64_t f = fluid->drains->entries[0].flow, now = fluid->drains->entries[0].time;
  set_drain(fluid->drains, f, NEVER);
  core->state.instant = now;
  core->state.num_events++;
  struct fluid_message message = fluid->messages[f];
  int64_t c = channel_of(core, fluid, message.handle, message.row);
  bool chosen = has_balancer(fluid) && fluid->flows[f].member != NONE;
  int64_t arrival = chosen ? end_on_route(core, fluid, f, c) : end_on_path(core, fluid, &message);
  leave_path(fluid, f);
  fluid->channels[c].head = message.next;
  /* Next of the channel, or 0: nobody. It begins in the next turn of the loop, at this very instant. */
  fluid->counts.begin = message.next + 1;
  fluid->messages[f].next = (int32_t)fluid->counts.free_flow;
  fluid->counts.free_flow = f;
  complete(core, message.handle, message.rep, message.row, message.origin, arrival, now);
}

/* Go to the next starts; those of one channel in their order. */
static void take_starts(struct core *core, struct fluid *fluid) {
  struct core_state *state = &core->state;
  struct calendar *calendar = core->calendar;
  RESERVE(fluid, instant, calendar->state.num_events);
  state->instant = calendar->heap[0].time;
  state->serial++;
  int64_t found = 0, after;
  bool clash = false;
  for (int64_t at = take_instant(calendar); at != NONE; at = after) {
    const struct event *event = &calendar->events[at];
    after = event->next;
    if (event->hop == ROUTE_AGAIN) { /* a connection wanted to choose again, unless it did meanwhile */
      if (fluid->balance->routes[event->row].due == state->instant) choose_at_end(fluid->balance, event->row, false);
      free_event(calendar, at);
      continue;
    }
    fluid->instant[found++] = (int32_t)at;
    /* The order of starts is seen by channels only: where no channel has two, nothing is sorted. */
    const struct row *row = &core->store->rows[event->row];
    if (row->src == row->dst) continue;
    struct fluid_channel *channel = &fluid->channels[channel_of(core, fluid, event->handle, event->row)];
    clash = clash || channel->seen == state->serial;
    channel->seen = state->serial;
  }
  state->cursor = 0;
  state->instant_size = found;
  if (!clash) return;
  RESERVE(fluid, spare, found);
  RESERVE(fluid, other, found);
  sort_instant(core, fluid->instant, fluid->spare, fluid->other, found);
}

/* -- the loop ------------------------------------------------------------------------------------------------------ */

/* Time leaves the instant, which is over but for this: those that want to choose a path do so; then rates are worked
 * out, once for all that began and drained in it. DONE, or what Python has to do. */
static int64_t end_instant(struct core *core, struct fluid *fluid) {
  if (is_choosing(fluid)) return choose_routes(core, fluid, core->state.instant);
  share_marked(core, fluid, core->state.instant);
  return DONE;
}

/* Run every instant before the horizon and before any completion's reaction could matter. */
int64_t run_fair(struct core *core, struct fluid *fluid, int64_t horizon) {
  struct core_state *state = &core->state;
  for (;;) {
    int64_t status = release_dependents(core);
    if (status != DONE) return status;
    /* The rest of the instant, one flow a turn: where one begins, nothing follows that others wait for. */
    if (fluid->counts.begin != 0) begin_transfer(core, fluid);
    if (state->cursor < state->instant_size) {
      start_next(core, fluid);
      continue;
    }
    int64_t limit = least(horizon, state->bound);
    int64_t start = next_event_time(core->calendar), drain = next_drain_time(fluid->drains);
    int64_t change = next_change_time(core, fluid->changes, fluid->counts.num_members == 0);
    int64_t coming = least(start, change);
    state->next = least(coming, drain);
    if (state->next > state->instant && (fluid->counts.num_dirty > 0 || is_choosing(fluid))) {
      if (limit <= state->instant) { /* the caller may still give starts here */
        state->next = state->instant;
        return DONE;
      }
      status = end_instant(core, fluid);
      if (status != DONE) return status;
      continue;
    }
    if (state->num_pending >= state->report_at && state->next > state->instant) return DONE;
    /* A drain follows from the past, so it may lie at the limit; the caller may still give starts there. */
    if (drain != NEVER && drain <= coming && drain <= limit) {
      drain_next(core, fluid);
      continue;
    }
    bool in_vain = is_in_vain(fluid->changes, least(start, drain));
    if (coming >= limit || (limit == NEVER && in_vain)) {
      /* Nobody has to wait for it: of two networks in one run each would for the other, for ever. */
      if (in_vain) state->next = NEVER;
      return DONE;
    }
    if (change <= start) {
      status = take_change(core, fluid);
      if (status != DONE) return status;
      continue;
    }
    take_starts(core, fluid);
  }
}
