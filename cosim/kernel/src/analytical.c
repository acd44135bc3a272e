/* ASTRA-sim's analytical models: congestion_unaware, congestion_aware. What they are: cosim/network/{unaware,aware}.py.
 */
#include "kernel.h"

/* -- congestion_aware ------------------------------------------------------------------------------------------- */

/* Go on to the next instant: its events, in order where two of them reach the same link. */
static void open_aware_instant(struct core *core, struct link_queues *queues) {
  struct core_state *state = &core->state;
  const struct event *events = core->calendar->events;
  RESERVE(queues, instant, core->calendar->state.num_events);
  state->instant = core->calendar->heap[0].time;
  state->serial++;
  int64_t found = 0;
  bool clash = false;
  for (int64_t at = take_instant(core->calendar); at != NONE; at = events[at].next) {
    queues->instant[found++] = (int32_t)at;
    int64_t path = core->store->groups[events[at].handle].path + events[at].row;
    if (core->path_ptr[path] == core->path_ptr[path + 1]) continue;
    struct aware_link *link = &queues->links[core->path_link[core->path_ptr[path] + events[at].hop]];
    /* Sorting is dear and seldom needed: only who comes first at a link matters. */
    clash = clash || link->seen == state->serial;
    link->seen = state->serial;
  }
  state->cursor = 0;
  state->instant_size = found;
  if (!clash) return;
  RESERVE(queues, spare, found);
  RESERVE(queues, other, found);
  sort_instant(core, queues->instant, queues->spare, queues->other, found);
}

/* A message reaches its next link, and queues there; or has reached its last one, and completes. */
static void reach_link(struct core *core, struct link_queues *queues, int64_t at) {
  struct core_state *state = &core->state;
  struct event e = core->calendar->events[at];
  free_event(core->calendar, at);
  state->num_started += e.hop == 0;
  int64_t path = core->store->groups[e.handle].path + e.row;
  int64_t first = core->path_ptr[path], past = core->path_ptr[path + 1];
  if (first == past) { /* a mark, or two participants on one endpoint */
    complete(core, e.handle, e.rep, e.row, e.origin, state->instant, e.cause);
    return;
  }
  int64_t number = core->path_link[first + e.hop], size = core->store->rows[e.row].size;
  struct aware_link *link = &queues->links[number];
  double transfer = (double)size / link->rate;
  if (transfer >= MOST_NS) { /* as an integer it would be any number */
    state->too_late = 1;
    return;
  }
  int64_t start = most(state->instant, link->free);
  int64_t serialization = (int64_t)transfer * PS_PER_NS;
  int64_t arrival = start + (int64_t)(link->latency + transfer) * PS_PER_NS;
  if (arrival >= NEVER) {
    state->too_late = 1;
    return;
  }
  /* Store and forward: the link takes the next message when the last byte has left it, this one is at the next link a
   * latency later. */
  link->free = start + serialization;
  core->link_bytes[number] += size;
  add_busy(core, number, start, serialization);
  if (first + e.hop + 1 == past) {
    complete(core, e.handle, e.rep, e.row, e.origin, arrival, start);
    return;
  }
  e.cause = start;
  e.hop++;
  push_event(core->calendar, arrival, e);
}

/* Run every instant before the horizon and before any completion's reaction could matter. */
int64_t run_aware(struct core *core, struct link_queues *queues, int64_t horizon) {
  struct core_state *state = &core->state;
  for (;;) {
    /* First what follows from the turn before: dependents that it released may start in this instant. */
    int64_t status = release_dependents(core);
    if (status != DONE) return status;
    if (state->cursor == state->instant_size) {
      state->next = next_event_time(core->calendar);
      if (state->next >= least(horizon, state->bound)) return DONE;
      /* Enough to hand on, and the instant is whole: reports never part one. */
      if (state->num_pending >= state->report_at && state->next > state->instant) return DONE;
      open_aware_instant(core, queues);
    }
    state->num_events++;
    reach_link(core, queues, queues->instant[state->cursor++]);
  }
}

/* -- congestion_unaware ----------------------------------------------------------------------------------------- */

/* Add to each bin the messages that fill it; `whole` says where they begin to, and where they end. */
void spread(struct core *core, struct link_rates *rates) {
  int64_t links = core->link_busy_cols, bins = core->link_busy_rows;
  for (int64_t b = 0; b < bins; b++) {
    int32_t *whole = rates->whole + b * links, *after = whole + links;
    for (int64_t link = 0; link < links; link++) {
      core->link_busy[b * links + link] += (int64_t)whole[link] << core->state.bin_bits;
      after[link] += whole[link];
      whole[link] = 0;
    }
  }
  memset(rates->whole + bins * links, 0, (size_t)links * sizeof *rates->whole);
}

/* Count a link as busy in [start, start + duration), in a time that does not grow with the duration. */
static void add_whole_bins(struct core *core, struct link_rates *rates, int64_t link, int64_t start,
                           int64_t duration) {
  keep_use(core, link, start, start + duration, 1.0);
  int64_t end = start + duration, links = core->link_busy_cols;
  while (end > bins_end(core)) {
    spread(core, rates);
    widen_bins(core);
  }
  int64_t bits = core->state.bin_bits, first = start >> bits, last = end >> bits;
  if (first == last) {
    core->link_busy[first * links + link] += duration;
    return;
  }
  core->link_busy[first * links + link] += ((first + 1) << bits) - start;
  /* Bins that it fills are counted where they begin and end, and added up when somebody looks. */
  rates->whole[(first + 1) * links + link]++;
  rates->whole[last * links + link]--;
  if (last < core->link_busy_rows) core->link_busy[last * links + link] += end - (last << bits);
}

/* A message starts, and completes when all of it has crossed its path, whatever else is there. */
static void cross(struct core *core, struct link_rates *rates, int64_t at) {
  struct core_state *state = &core->state;
  struct event e = core->calendar->events[at];
  free_event(core->calendar, at);
  int64_t time = state->instant, arrival = time;
  int64_t path = core->store->groups[e.handle].path + e.row;
  int64_t first = core->path_ptr[path], past = core->path_ptr[path + 1];
  if (first != past) { /* neither a mark nor two participants on one endpoint */
    int64_t size = core->store->rows[e.row].size;
    double slowest = (double)INFINITY, wait = 0.0;
    double longest = MOST_NS - (double)time / PS_PER_NS;
    for (int64_t k = first; k < past; k++) {
      int64_t link = core->path_link[k];
      slowest = least_of(slowest, rates->rate[link]);
      wait += rates->latency[link];
      double transfer = (double)size / rates->rate[link];
      if (transfer >= longest) { /* as an integer it would be any number */
        state->too_late = 1;
        return;
      }
      core->link_bytes[link] += size;
      add_whole_bins(core, rates, link, time, (int64_t)transfer * PS_PER_NS);
    }
    /* Whole picoseconds add up exactly, in any order; the division by 1000 comes last. */
    e.cause = time;
    arrival = time + (int64_t)(wait / PS_PER_NS + (double)size / slowest) * PS_PER_NS;
  }
  complete(core, e.handle, e.rep, e.row, time, arrival, e.cause);
}

/* The same loop; `cursor` is the event that comes next in the instant under way, plus one; 0: none is. */
int64_t run_unaware(struct core *core, struct link_rates *rates, int64_t horizon) {
  struct core_state *state = &core->state;
  for (;;) {
    int64_t status = release_dependents(core);
    if (status != DONE) return status;
    if (state->cursor == 0) {
      state->next = next_event_time(core->calendar);
      if (state->next >= least(horizon, state->bound)) return DONE;
      if (state->num_pending >= state->report_at && state->next > state->instant) return DONE;
      state->instant = state->next;
      state->cursor = take_instant(core->calendar) + 1;
    }
    int64_t at = state->cursor - 1;
    /* Before the event is freed, and its place taken by another. */
    state->cursor = core->calendar->events[at].next + 1;
    state->num_events++;
    state->num_started++;
    cross(core, rates, at);
  }
}
