/* Two networks in one run: what starts goes to the one that carries it, what completes comes back.
 *
 * A part knows the whole's groups, but without dependencies: those are followed here, in the whole's store, whichever
 * part a dependent is in.
 *
 * How time goes: a part runs by itself up to the other's next event, for before that nothing can come from there; it
 * stops sooner at a completion that something may follow from. Where both have something at the same instant, they do
 * one round of it each (what starts then, and what completes at once) before either is given what follows: each is
 * given a mark of our own that starts then, at whose completion it stops. Where a round lets nothing more start, both
 * leave the instant. So two parts of a model do what one network of it would, order within an instant included.
 */
#include "kernel.h"

enum {
  MARK = 0, /* handle of the mark that ends a round: a part knows groups by the whole's handles plus one */
  STEPS = 4 /* of a round: a mark and a run of each part */
};

static inline struct core *core_of(const struct hybrid *pair, int64_t which) {
  return which == 0 ? pair->core0 : pair->core1;
}

/* -- starts in ------------------------------------------------------------------------------------------------------ */

/* Make the group of a start known to a part, where the flow has a row. */
static void open_in_part(const struct core *core, struct hybrid *pair, const struct event *event, int64_t which,
                         int64_t row) {
  struct store *inner = core_of(pair, which)->store;
  const struct group *group = &core->store->groups[event->handle];
  int64_t handle = (int64_t)event->handle + 1, first = group->path + core->store->tables[group->table].row;
  /* A part has paths for all rows of a binding, one after the other, whoever carries them. */
  int64_t path = pair->rows[group->path + event->row].path[which] - row;
  open_known_group(inner, handle, pair->tables[group->table].number[which], group->key_high, group->key_low, path,
                   pair->traits[group->traits].number[which], false);
  inner->groups[handle].left = pair->rows[first].flows[which];
}

/* Put a start into a part's calendar, its group opened there where it is not. */
static void hand_on(const struct core *core, struct hybrid *pair, const struct event *event, int64_t which) {
  struct core *inner = core_of(pair, which);
  int64_t number = core->store->groups[event->handle].table;
  const struct table *whole = &core->store->tables[number];
  const struct table *part = &inner->store->tables[pair->tables[number].number[which]];
  int32_t handle = event->handle + 1, rep = event->rep - whole->rep + part->rep;
  int32_t row = event->row - whole->row + part->row;
  if (handle >= inner->store->groups_len || inner->store->groups[handle].reps == 0)
    open_in_part(core, pair, event, which, row);
  int64_t start = core->state.instant;
  push_event(inner->calendar, start, (struct event){event->cause, start, handle, rep, row, 0, NONE, 0});
}

/* Give the parts all that is to start; DONE, or GIVEN_TOO_LATE. */
static int64_t hand_on_all(struct core *core, struct hybrid *pair) {
  struct core_state *state = &core->state;
  struct calendar *calendar = core->calendar;
  /* `cursor` is the next event of the instant that was taken, plus one. */
  while (state->cursor != 0 || calendar->state.num_instants > 0) {
    if (state->cursor == 0) {
      state->instant = calendar->heap[0].time;
      state->cursor = take_instant(calendar) + 1;
    }
    int64_t at = state->cursor - 1;
    struct event event = calendar->events[at];
    const struct hybrid_row *row = &pair->rows[core->store->groups[event.handle].path + event.row];
    int64_t which = row->path[0] == NONE;
    struct hybrid_part *part = &pair->parts[which];
    if (state->instant < part->granted) return GIVEN_TOO_LATE;
    hand_on(core, pair, &event, which);
    part->next = least(part->next, state->instant);
    /* It lets something start at an instant that both were about to leave: another round. */
    if (state->instant == pair->state.over) pair->state.over = NONE;
    state->cursor = (int64_t)event.next + 1;
    free_event(calendar, at);
  }
  return DONE;
}

/* -- time goes on --------------------------------------------------------------------------------------------------- */

/* Run a part; DONE, or PART_ASKS, after whose answer the same call goes on. */
static int64_t run_part(struct hybrid *pair, int64_t which, int64_t horizon) {
  struct hybrid_part *part = &pair->parts[which];
  struct core *inner = core_of(pair, which);
  int64_t status = ((network_loop)(intptr_t)part->loop)(inner, (void *)(intptr_t)part->columns, horizon);
  if (status == PAUSED) return PAUSED;
  if (status != DONE) {
    pair->state.which = which;
    pair->state.status = status;
    return PART_ASKS;
  }
  int64_t limit = least(horizon, inner->state.bound);
  /* It stopped sooner where it has much to report: what completes then is not all known. */
  part->granted = most(part->granted, inner->state.next >= limit ? limit : inner->state.next - 1);
  return DONE;
}

/* Have a part stop when it has done one round of an instant. */
static void put_mark(struct hybrid *pair, int64_t which, int64_t now) {
  struct core *inner = core_of(pair, which);
  const struct group *group = &inner->store->groups[MARK];
  int32_t row = inner->store->tables[group->table].row;
  push_event(inner->calendar, now, (struct event){now, now, MARK, group->rep, row, 0, NONE, 0});
  pair->parts[which].marks++;
}

/* One round of an instant in both parts, or their last of it; PART_ASKS: it goes on there. */
static int64_t go_round(struct hybrid *pair) {
  struct hybrid_state *both = &pair->state;
  bool leaves = both->over == both->round;
  for (; both->step < STEPS; both->step++) {
    int64_t which = both->step / 2;
    if (both->step % 2 == 0) {
      if (!leaves) put_mark(pair, which, both->round);
      continue;
    }
    int64_t status = run_part(pair, which, both->round + 1);
    if (status != DONE) return status;
    struct hybrid_part *part = &pair->parts[which];
    if (leaves) /* what the other completes now, where nothing has latency, may let something start here */
      part->granted = least(part->granted, both->round);
    else /* the mark was no event of its: changes of links would never seem to be in vain */
      core_of(pair, which)->state.num_events--;
  }
  return DONE;
}

/* -- completions out ------------------------------------------------------------------------------------------------ */

/* Take what a part has completed by now. */
static void take_completions(struct core *core, struct hybrid *pair, int64_t which) {
  struct core *inner = core_of(pair, which);
  struct reported *found = pair->reported;
  report_until(inner, pair->parts[which].granted, found);
  for (int64_t k = 0; k < found->count; k++) {
    int64_t handle = (int64_t)found->handle[k] - 1;
    if (handle < 0) continue; /* a mark */
    const struct table *whole = &core->store->tables[core->store->groups[handle].table];
    const struct table *part = &inner->store->tables[inner->store->groups[handle + 1].table];
    complete(core, handle, found->rep[k] - part->rep + whole->rep, found->row[k] - part->row + whole->row,
             found->start[k], found->time[k], found->cause[k]);
  }
  for (int64_t k = 0; k < found->num_closed; k++) close_group(inner->store, found->closed[k]);
  /* What it still has to report has to be taken before something follows from it. */
  pair->parts[which].next = least(inner->state.next, inner->state.bound);
}

/* -- the loop ------------------------------------------------------------------------------------------------------- */

/* Who runs by itself next, and how far; NONE: nobody, as both have come to that time. */
static int64_t in_turn(const struct hybrid *pair, int64_t limit, int64_t *until) {
  const struct hybrid_part *one = &pair->parts[0], *other = &pair->parts[1];
  int64_t now = least(one->next, other->next);
  if (now < limit && one->next != other->next) {
    *until = least(most(one->next, other->next), limit);
    return one->next < other->next ? 0 : 1;
  }
  /* What completes at an instant comes before what starts at it, in either: both are taken so far. */
  *until = least(now, limit);
  if (one->granted < *until) return 0;
  return other->granted < *until ? 1 : NONE;
}

/* Run every instant before the horizon and before any completion's reaction could matter. */
int64_t run_hybrid(struct core *core, struct hybrid *pair, int64_t horizon) {
  struct core_state *state = &core->state;
  for (;;) {
    int64_t status = release_dependents(core);
    if (status == DONE) status = hand_on_all(core, pair);
    if (status != DONE) return status;
    if (pair->state.step < STEPS) {
      status = go_round(pair);
      if (status != DONE) return status;
      pair->state.over = pair->state.round;
      /* Both are taken only now: what one has completed must not reach the other in its round. */
      take_completions(core, pair, 0);
      take_completions(core, pair, 1);
      continue;
    }
    state->next = least(pair->parts[0].next, pair->parts[1].next);
    if (state->num_pending >= state->report_at) return DONE;
    int64_t limit = least(horizon, state->bound), until;
    int64_t which = in_turn(pair, limit, &until);
    if (which != NONE) {
      status = run_part(pair, which, until);
      if (status != DONE) return status;
      take_completions(core, pair, which);
    } else if (until >= limit) {
      return DONE;
    } else {
      pair->state.round = until;
      pair->state.step = 0;
    }
  }
}
