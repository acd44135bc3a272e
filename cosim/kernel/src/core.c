/* What the loops of all networks share: the way in, the way out, statistics of links. */
#include "kernel.h"

/* Completions after which a loop stops (or twice as many as stayed), so that reports stay small. */
enum { REPORT_LIMIT = 1 << 14 };

/* Turns of a network's loop that Python calls, up to its first stop. */
enum { TURNS_ALONE = 1 << 14 };

/* Put a start into the calendar; what waits for a start need not wait until the calendar gets there. */
static void give_start(struct core *core, int64_t handle, int64_t rep, int64_t row, int64_t start, int64_t cause) {
  push_event(core->calendar, start,
             (struct event){cause, start, (int32_t)handle, (int32_t)rep, (int32_t)row, 0, NONE, 0});
  if (core->store->groups[handle].release && is_awaited(&core->store->rows[row], STARTED))
    note(core->store, handle, rep, row, start, STARTED);
}

/* Put given starts into the calendar.
 *
 * None of them where one is before the grant or has dependencies that the network follows: that one's number is
 * returned; else NONE.
 */
int64_t give(struct core *core, int64_t count, const int32_t *handle, const int32_t *rep, const int32_t *row,
             const int64_t *start, const int64_t *cause) {
  CATCH_OUT_OF_MEMORY;
  struct store *store = core->store;
  /* All are looked at before any is taken: a batch that is refused leaves nothing behind. */
  for (int64_t k = 0; k < count; k++) {
    bool waits = store->groups[handle[k]].release && store->rows[row[k]].waits > 0;
    if (start[k] < core->state.grant || waits) return k;
  }
  for (int64_t k = 0; k < count; k++) give_start(core, handle[k], rep[k], row[k], start[k], cause[k]);
  return NONE;
}

/* Put a start of an open group's flow (its number in the group) into the calendar. */
static void give_one(struct core *core, int64_t handle, int64_t number, int64_t start, int64_t cause) {
  const struct store *store = core->store;
  int64_t rep = find_repetition(store, &store->groups[handle], number);
  give_start(core, handle, rep, store->reps[rep].row + number - store->reps[rep].base, start, cause);
}

/* Turns that loops of this thread may take before they stop, for Python to look after signals. */
static _Thread_local int64_t turns_left;

/* What each turn of a loop begins with: let dependents follow what is known; DONE, TOO_LATE, or PAUSED. */
static int64_t release_dependents(struct core *core) {
  if (core->state.too_late) return TOO_LATE;
  if (--turns_left < 0) return PAUSED;
  drain(core->store, core->calendar);
  return DONE;
}

/* The earliest that the caller may react to a completion. */
static inline int64_t reaction_time(const struct core *core, int64_t row, int64_t time) {
  return least(time + least(core->store->rows[row].reaction, NEVER), NEVER);
}

/* Keep a completion until it is reported; near ones stand before all others. */
static void add_pending(struct core *core, struct pending one) {
  struct core_state *state = &core->state;
  int64_t reaction = reaction_time(core, one.row, one.time), at = state->num_pending;
  RESERVE(core, pending, at + 1);
  state->num_pending++;
  if (one.time > state->near_end) {
    state->far_bound = least(state->far_bound, reaction);
  } else {
    core->pending[at] = core->pending[state->num_near];
    at = state->num_near++;
  }
  core->pending[at] = one;
  /* Beyond it, the caller may have something to say before what this loop would do next. */
  state->bound = least(state->bound, reaction);
}

/* A flow's completion at `time` is certain: report it when the grant gets there, tell dependents.
 *
 * On a copy that looks for the first completion, dependents need not be told: they start at `time` at the earliest,
 * and complete no sooner. (What waits for a start was told when that start was given.)
 */
static void complete(struct core *core, int64_t handle, int64_t rep, int64_t row, int64_t start, int64_t time,
                     int64_t cause) {
  struct core_state *state = &core->state;
  if (time >= NEVER) { /* a copy that looks ahead meets it, too */
    state->too_late = 1;
    return;
  }
  if (state->looking) {
    state->bound = least(state->bound, time);
    return;
  }
  add_pending(core, (struct pending){time, start, cause, (int32_t)handle, (int32_t)rep, (int32_t)row, 0});
  if (core->store->groups[handle].release && is_awaited(&core->store->rows[row], COMPLETED))
    note(core->store, handle, rep, row, time, COMPLETED);
}

/* Make bins twice as wide: memory is the same however long a run is. */
static void widen_bins(struct core *core) {
  int64_t *busy = core->link_busy, links = core->link_busy_cols, half = core->link_busy_rows / 2;
  for (int64_t b = 0; b < half; b++)
    for (int64_t link = 0; link < links; link++)
      busy[b * links + link] = busy[2 * b * links + link] + busy[(2 * b + 1) * links + link];
  memset(busy + half * links, 0, (size_t)((core->link_busy_rows - half) * links) * sizeof *busy);
  core->state.bin_bits++;
}

/* The time up to which there are bins. */
static inline int64_t bins_end(const struct core *core) { return core->link_busy_rows << core->state.bin_bits; }

/* Keep what a link carried, where it may be repeated. */
static inline void keep_use(struct core *core, int64_t link, int64_t start, int64_t end, double part) {
  struct link_uses *kept = core->kept;
  if (kept == NULL || kept->part == NONE || kept->users[link] != kept->part) return;
  RESERVE(kept, uses, kept->count + 1);
  kept->uses[kept->count++] = (struct link_use){start, end, part, link};
}

/* Count a link as busy in [start, start + duration). */
static inline void add_busy(struct core *core, int64_t link, int64_t start, int64_t duration) {
  keep_use(core, link, start, start + duration, 1.0);
  while (start + duration > bins_end(core)) widen_bins(core);
  int64_t bits = core->state.bin_bits;
  for (int64_t b = start >> bits; duration > 0; b++) {
    int64_t part = least(duration, ((b + 1) << bits) - start);
    core->link_busy[b * core->link_busy_cols + link] += part;
    start += part;
    duration -= part;
  }
}

/* A fraction of a time, to the nearest picosecond. */
static inline int64_t share_of_time(int64_t time, double fraction) { return (int64_t)((double)time * fraction + 0.5); }

/* Count a fraction of a link as busy in [start, end), to the nearest picosecond at each bin's end. */
static void add_share(struct core *core, int64_t link, int64_t start, int64_t end, double fraction) {
  keep_use(core, link, start, end, fraction);
  while (end > bins_end(core)) widen_bins(core);
  int64_t bits = core->state.bin_bits, counted = 0, stop = start;
  for (int64_t b = start >> bits; stop < end; b++) {
    stop = least(end, (b + 1) << bits);
    /* Rounded from the start on, not bin by bin, so that bins add up to the whole. */
    int64_t total = share_of_time(stop - start, fraction);
    core->link_busy[b * core->link_busy_cols + link] += total - counted;
    counted = total;
  }
}

/* Make room for so many completions. */
static void reserve_reports(struct reported *to, int64_t count) {
  RESERVE(to, handle, count);
  RESERVE(to, rep, count);
  RESERVE(to, row, count);
  RESERVE(to, number, count);
  RESERVE(to, start, count);
  RESERVE(to, time, count);
  RESERVE(to, cause, count);
  RESERVE(to, closed, count);
}

/* Whether a loop may have stopped before its limit, as there was so much to report. */
static inline bool stopped_to_report(const struct core *core) {
  return core->state.num_pending >= core->state.report_at;
}

/* How far the network may be said to have gone after its loop was done: not past the first completion that may be reacted
 * to, nor up to what a loop left undone that stopped to report, for something may complete right then; and never back. */
static inline int64_t may_grant(const struct core *core, int64_t horizon) {
  const struct core_state *state = &core->state;
  int64_t grant = least(horizon, state->bound);
  return stopped_to_report(core) ? least(grant, most(state->next - 1, state->grant)) : grant;
}

/* So many are looked at to tell near ones from others. */
enum { PENDING_SAMPLE = 64 };

/* Tell near ones from others anew: where many are pending, looking through all of them for each few that come would take
 * the square of their number. */
static void part_pending(struct core *core) {
  struct core_state *state = &core->state;
  int64_t count = state->num_pending, near = 0;
  state->near_end = state->far_bound = NEVER;
  for (int64_t k = 0; count > PENDING_SAMPLE && k < PENDING_SAMPLE; k++)
    state->near_end = least(state->near_end, core->pending[k * (count / PENDING_SAMPLE)].time);
  for (int64_t k = 0; k < count; k++) {
    struct pending one = core->pending[k];
    if (one.time > state->near_end) {
      state->far_bound = least(state->far_bound, reaction_time(core, one.row, one.time));
      continue;
    }
    core->pending[k] = core->pending[near];
    core->pending[near++] = one;
  }
  state->num_near = near;
  state->most_near = 2 * (near + PENDING_SAMPLE);
}

/* Who goes through what is pending and near, of which what is later than `grant` stays. */
struct reporting {
  int64_t grant, at, kept, bound;
};

static inline struct reporting begin_reports(struct core *core, int64_t grant) {
  struct core_state *state = &core->state;
  if (grant > state->near_end) { /* all are, until this is over */
    state->num_near = state->num_pending;
    state->far_bound = NEVER;
  }
  return (struct reporting){grant, 0, 0, NEVER};
}

/* The next completion up to the grant, good until the one after it; NULL: none is left. */
static inline const struct pending *next_report(struct core *core, struct reporting *reporting) {
  while (reporting->at < core->state.num_near) {
    const struct pending *one = &core->pending[reporting->at++];
    if (one->time <= reporting->grant) return one;
    reporting->bound = least(reporting->bound, reaction_time(core, one->row, one->time));
    core->pending[reporting->kept++] = *one; /* never ahead of where it was */
  }
  return NULL;
}

static void end_reports(struct core *core, const struct reporting *reporting) {
  struct core_state *state = &core->state;
  int64_t gone = state->num_near - reporting->kept, others = state->num_pending - state->num_near;
  /* The last of the others take the places that are free now. */
  for (int64_t k = 0; k < least(gone, others); k++)
    core->pending[reporting->kept + k] = core->pending[state->num_pending - 1 - k];
  state->num_completed += gone;
  state->num_pending -= gone;
  state->num_near = reporting->kept;
  /* Where many stay, looking through all of them for each few that came would take the square of their number. */
  state->report_at = most(REPORT_LIMIT, 2 * state->num_pending);
  state->bound = least(reporting->bound, state->far_bound);
  state->grant = reporting->grant;
  if (reporting->grant > state->near_end || state->num_near > state->most_near) part_pending(core);
}

/* A completion's number in its group. */
static inline int64_t number_in_group(const struct core *core, const struct pending *one) {
  const struct repetition *place = &core->store->reps[one->rep];
  return place->base + one->row - place->row;
}

static void write_report(struct core *core, const struct pending *one, struct reported *to) {
  int64_t k = to->count++;
  to->handle[k] = one->handle;
  to->rep[k] = one->rep;
  to->row[k] = one->row;
  to->number[k] = number_in_group(core, one);
  to->start[k] = one->start;
  to->time[k] = one->time;
  to->cause[k] = one->cause;
  if (--core->store->groups[one->handle].left == 0) to->closed[to->num_closed++] = one->handle;
}

/* Move completions up to `grant` out of the pending ones; their groups that ended are still to be closed. */
static void report_until(struct core *core, int64_t grant, struct reported *to) {
  struct reporting reporting = begin_reports(core, grant);
  reserve_reports(to, core->state.num_pending);
  to->count = to->num_closed = 0;
  for (const struct pending *one; (one = next_report(core, &reporting)) != NULL;) write_report(core, one, to);
  end_reports(core, &reporting);
}

int64_t report(struct core *core, int64_t grant, struct reported *to) {
  CATCH_OUT_OF_MEMORY;
  report_until(core, grant, to);
  return DONE;
}

typedef int64_t (*network_loop)(struct core *core, void *columns, int64_t horizon);

int64_t run_network(int64_t loop, struct core *core, int64_t columns, int64_t horizon) {
  CATCH_OUT_OF_MEMORY;
  turns_left = TURNS_ALONE;
  return ((network_loop)(intptr_t)loop)(core, (void *)(intptr_t)columns, horizon);
}

/* -- the order of flows that reach something at the same instant --------------------------------------------------- */

/* Whether event a comes before event b: by cause, endpoint they come from, key.
 *
 * `cause` is when it became certain that they would; so they are in the order in which an event list that serves events
 * of one time first come, first served would hold them, but independent of the order in which they were given.
 */
static bool comes_before(const struct core *core, int64_t a, int64_t b) {
  const struct store *store = core->store;
  const struct event *one = &core->calendar->events[a], *other = &core->calendar->events[b];
  if (one->cause != other->cause) return one->cause < other->cause;
  const struct group *mine = &store->groups[one->handle], *theirs = &store->groups[other->handle];
  int32_t from = core->path_source[mine->path + one->row], from_other = core->path_source[theirs->path + other->row];
  if (from != from_other) return from < from_other;
  if (mine->key_high != theirs->key_high) return mine->key_high < theirs->key_high;
  const struct repetition *here = &store->reps[one->rep], *there = &store->reps[other->rep];
  return mine->key_low + here->base + one->row - here->row < theirs->key_low + there->base + other->row - there->row;
}

/* Sort `instant[0..count)` by comes_before: bottom-up merges, stable, none where it is sorted. `source` and `target`
 * have as much room. */
static void sort_instant(const struct core *core, int32_t *instant, int32_t *source, int32_t *target, int64_t count) {
  int64_t sorted = 1;
  while (sorted < count && !comes_before(core, instant[sorted], instant[sorted - 1])) sorted++;
  if (sorted >= count) return;
  memcpy(source, instant, (size_t)count * sizeof *instant);
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t low = 0; low < count; low += 2 * width) {
      int64_t middle = least(low + width, count), high = least(low + 2 * width, count);
      int64_t a = low, b = middle;
      for (int64_t k = low; k < high; k++) {
        bool first = a < middle && (b >= high || !comes_before(core, source[b], source[a]));
        target[k] = first ? source[a++] : source[b++];
      }
    }
    int32_t *swap = source;
    source = target;
    target = swap;
  }
  memcpy(instant, source, (size_t)count * sizeof *instant);
}
