/* Progressive filling of the links of fair_share that differ from the filling before: see sharing.c. */
#include "kernel.h"

/* -- moments in a heap: the next one at which something may be full ------------------------------------------------ */

static inline bool comes_sooner(const struct fluid_moment *one, const struct fluid_moment *other) {
  return is_before(one->priority, one->level, other->priority, other->level);
}

static void push_moment(struct fluid *fluid, int64_t priority, double level, int64_t what) {
  RESERVE(fluid, ahead, fluid->counts.num_ahead + 1);
  struct fluid_moment *heap = fluid->ahead;
  struct fluid_moment moment = {level, (int32_t)priority, (int32_t)what};
  int64_t at = fluid->counts.num_ahead++;
  while (at > 0) {
    int64_t parent = (at - 1) >> 1;
    if (!comes_sooner(&moment, &heap[parent])) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = moment;
}

/* Put a moment where the first one is, which it follows. */
static void replace_moment(struct fluid *fluid, struct fluid_moment moment) {
  struct fluid_moment *heap = fluid->ahead;
  int64_t at = 0, count = fluid->counts.num_ahead;
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && comes_sooner(&heap[child + 1], &heap[child])) child++;
    if (!comes_sooner(&heap[child], &moment)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moment;
}

static inline void pop_moment(struct fluid *fluid) {
  fluid->counts.num_ahead--;
  replace_moment(fluid, fluid->ahead[fluid->counts.num_ahead]);
}

/* -- what is left of a link while levels rise on it, and when it will be full: exact in any order of flows ---------- */

#define TOGETHER (1.0 + 1e-12) /* full within this of the level at which flows on it were frozen is full there */
#define EMPTY 1e-12            /* less than this of a link's capacity is dust */

/* Take what was frozen at the last moment from what is left. */
static inline void settle_level(struct fluid_link *link) {
  double left = link->left - link->level * (double)link->gone;
  link->left = left > link->capacity * EMPTY ? left : 0.0;
  link->gone = 0;
}

/* Levels of each class begin at 0, on what the classes before have left. */
static inline void begin_class(struct fluid_link *link) {
  settle_level(link);
  link->level = 0.0;
}

/* A flow on a link was frozen. */
static inline void lose_weight(struct fluid_link *link, double level, int64_t weight) {
  if (level != link->level) {
    settle_level(link);
    link->level = level;
  }
  link->gone += weight;
}

/* The level at which a link is full if all that rise on it go on. */
static inline double full_at(const struct fluid_link *link) {
  double left = link->left - link->level * (double)link->gone;
  double level = left > link->capacity * EMPTY ? left / (double)link->weight : 0.0;
  return level <= link->level * TOGETHER ? link->level : level;
}

/* A link is full, at the earliest, when what rises there now has filled it. */
static inline void expect_full(struct fluid *fluid, int64_t number) {
  const struct fluid_link *link = &fluid->links[number];
  push_moment(fluid, link->priority, full_at(link), -1 - number);
}

/* -- links that differ --------------------------------------------------------------------------------------------- */

/* The next class of flows rises on a link, if there is one. */
static void go_on_with_class(struct fluid *fluid, int64_t number) {
  struct fluid_link *link = &fluid->links[number];
  if (link->rising == 0) return;
  link->priority = NO_CLASS;
  for (int64_t m = link->first; m != NONE; m = fluid->members[m].after) {
    const struct fluid_flow *flow = &fluid->flows[fluid->members[m].flow];
    if (flow->new_level >= 0.0) continue;
    int32_t priority = (int32_t)fluid->classes[flow->traits].priority;
    if (priority < link->priority) {
      link->priority = priority;
      link->weight = 0;
    }
    if (priority == link->priority) link->weight += weight_of(fluid, m, flow);
  }
  begin_class(link);
  expect_full(fluid, number);
}

/* A flow is on a link that differs: it rises, to the moment where it was frozen before. */
static void find_flow(struct fluid *fluid, int64_t f) {
  struct fluid_counts *counts = &fluid->counts;
  struct fluid_flow *flow = &fluid->flows[f];
  if (flow->visit < counts->sharing) { /* else an earlier filling of this sharing found it */
    RESERVE(fluid, found, counts->num_found + 1);
    fluid->found[counts->num_found++] = (int32_t)f;
  }
  flow->visit = counts->visit;
  flow->new_level = -1.0;
  counts->num_looked++;
  counts->num_rising++;
  if (flow->level < 0.0) return;
  /* One moment is enough for all that a link froze there: a heap of links is smaller than one of flows. */
  struct fluid_link *link = &fluid->links[flow->by];
  if (link->chained != counts->visit) {
    link->chained = counts->visit;
    link->chain = NONE;
  }
  int64_t first = link->chain, priority = fluid->classes[flow->traits].priority;
  if (first == NONE || fluid->flows[first].level != flow->level ||
      fluid->classes[fluid->flows[first].traits].priority != priority)
    push_moment(fluid, priority, flow->level, flow->by);
  flow->chain = (int32_t)first;
  link->chain = (int32_t)f;
}

/* Nothing rises on a link yet, and nothing was frozen there. */
static inline void empty_link(struct fluid_link *link) {
  link->left = link->capacity;
  link->level = 0.0;
  link->gone = 0;
  link->rising = 0;
  link->weight = 0;
  link->full_priority = NO_CLASS;
}

/* A link differs from the filling before, from a moment on: look at its flows.
 *
 * Those that were frozen before that moment are so again, for it did not differ then. They come first, and in order: so
 * it loses what it did when it was looked at last, by the same subtractions.
 */
static void let_differ(struct fluid *fluid, int64_t number, int64_t priority, double level) {
  struct fluid_link *link = &fluid->links[number];
  int64_t visit = fluid->counts.visit, past = NONE, lowest = NO_CLASS;
  link->visit = visit;
  link->room = 0;
  queue_recheck(fluid, number);
  empty_link(link);
  if (link->rechecks > 0) link->rechecks--;
  for (int64_t m = link->first; m != NONE; m = fluid->members[m].after) {
    fetch_flow(fluid, fluid->members[m].after);
    int64_t f = fluid->members[m].flow;
    const struct fluid_flow *flow = &fluid->flows[f];
    int64_t class = fluid->classes[flow->traits].priority;
    double frozen = flow->new_level;
    /* Another link that differs may have found it, and have frozen it since: then its level is known. Else it has the
     * level of before, if that was reached before anything here was different. */
    if (flow->visit != visit) {
      if (flow->level >= 0.0 && is_before(class, flow->level, priority, level)) {
        frozen = flow->level;
      } else {
        find_flow(fluid, f);
        frozen = -1.0;
      }
    }
    if (frozen >= 0.0) {
      if (class != past) begin_class(link);
      past = class;
      lose_weight(link, frozen, weight_of(fluid, m, flow));
      continue;
    }
    link->rising++;
    /* Lower classes wait, so they weigh nothing yet: go_on_with_class weighs them when their turn comes. */
    if (class < lowest) {
      lowest = class;
      link->weight = 0;
    }
    if (class == lowest) link->weight += weight_of(fluid, m, flow);
  }
  link->priority = (int32_t)lowest;
  if (link->rising == 0) return;
  if (lowest != past) begin_class(link);
  expect_full(fluid, number);
}

/* Put a flow at the end of a link's. */
static inline void put_last(struct fluid_member *members, int64_t m, struct fluid_link *link) {
  struct fluid_member *member = &members[m];
  int32_t before = member->before, after = member->after;
  if (after == NONE) return;
  if (before != NONE)
    members[before].after = after;
  else
    link->first = after;
  members[after].before = before;
  members[link->last].after = (int32_t)m;
  member->before = link->last;
  member->after = NONE;
  link->last = (int32_t)m;
}

/* A link has a flow rise no further. Where that is another level than before, all its links differ but those that have
 * room. */
static void freeze_flow(struct fluid *fluid, int64_t f, double level, int64_t by) {
  struct fluid_flow *flow = &fluid->flows[f];
  flow->new_level = level;
  flow->by = (int32_t)by;
  fluid->counts.num_rising--;
  bool differs = level != flow->level;
  int64_t visit = fluid->counts.visit, more = 0, weight = 0;
  double capacity = -1.0;
  for (int64_t m = flow->member; m != NONE; m = fluid->members[m].sibling) {
    int64_t number = fluid->members[m].link, mine = weight_of(fluid, m, flow);
    struct fluid_link *link = &fluid->links[number];
    if (differs) {
      /* Links of a path are mostly alike: what it takes of one is worked out once for all of them. */
      if (link->capacity != capacity || mine != weight) {
        capacity = link->capacity;
        weight = mine;
        more = taken_part(capacity, level, weight) - taken_part(capacity, flow->level, weight);
      }
      link->load += more;
    }
    if (link->visit == visit) {
      lose_weight(link, level, mine);
      link->weight -= mine;
      link->rising--;
      /* In the order of freezing, so that the next filling that looks at the link takes its flows off it in the same
       * order: floats are subtracted alike, whatever else differed meanwhile. */
      put_last(fluid->members, m, link);
    } else if (differs && link->room != 0) {
      queue_recheck(fluid, number);
    } else if (differs) {
      let_differ(fluid, number, fluid->classes[flow->traits].priority, level);
    }
  }
}

/* Whether a link that does not differ is full at a moment, or was before. */
static inline bool still_holds(const struct fluid_link *link, int64_t visit, int64_t priority, double level) {
  return link->visit != visit && !is_before(priority, level, link->full_priority, link->full_level);
}

/* A flow comes to the moment where it was frozen before: again, or on.
 *
 * A link that is full here has never become one that differs: a flow on it would have had to be frozen at another level
 * before, or to rise past this one. So the order of flows within a moment doesn't matter.
 */
static void come_by(struct fluid *fluid, int64_t f, int64_t priority, double level) {
  const struct fluid_flow *flow = &fluid->flows[f];
  int64_t visit = fluid->counts.visit;
  /* All links are asked whether they still hold it before any is said to differ: to differ has a price, and one that
   * holds it spares the others. It is mostly the one that did before. */
  if (still_holds(&fluid->links[flow->by], visit, priority, level)) {
    freeze_flow(fluid, f, level, flow->by);
    return;
  }
  int64_t later = 0;
  for (int64_t m = flow->member; m != NONE; m = fluid->members[m].sibling) {
    int64_t number = fluid->members[m].link;
    const struct fluid_link *link = &fluid->links[number];
    if (still_holds(link, visit, priority, level)) {
      freeze_flow(fluid, f, level, number);
      return;
    }
    later += link->visit != visit && link->room == 0;
  }
  for (int64_t m = flow->member; later > 0; m = fluid->members[m].sibling) {
    int64_t number = fluid->members[m].link;
    if (fluid->links[number].visit == visit || fluid->links[number].room != 0) continue;
    let_differ(fluid, number, priority, level);
    later--;
  }
}

/* The flows found that a link froze at a moment before come to it again. */
static void come_again(struct fluid *fluid, int64_t number, int64_t priority, double level) {
  struct fluid_link *link = &fluid->links[number];
  int64_t f = link->chain;
  link->chain = NONE;
  while (f != NONE) {
    struct fluid_flow *flow = &fluid->flows[f];
    int64_t after = flow->chain;
    if (flow->new_level < 0.0) {
      if (fluid->classes[flow->traits].priority == priority && flow->level == level) {
        come_by(fluid, f, priority, level);
      } else { /* at a moment of its own */
        flow->chain = link->chain;
        link->chain = (int32_t)f;
      }
    }
    f = after;
  }
}

/* A link is full: what rises on it of the class at hand is frozen. */
static void fill_up(struct fluid *fluid, int64_t number, double level) {
  struct fluid_link *link = &fluid->links[number];
  int32_t priority = link->priority;
  if (link->full_priority == NO_CLASS) {
    link->full_priority = priority;
    link->full_level = level;
    if (link->rechecks < RECHECKS) link->rechecks = RECHECKS;
  }
  int64_t m = link->first;
  /* What is frozen goes to the end, behind all that the walk has yet to meet, and it ends where nothing of the class
   * rises: it never meets what it froze itself. */
  while (link->weight > 0) {
    int64_t f = fluid->members[m].flow;
    m = fluid->members[m].after;
    fetch_flow(fluid, m);
    if (fluid->flows[f].new_level < 0.0 && fluid->classes[fluid->flows[f].traits].priority == priority)
      freeze_flow(fluid, f, level, number);
  }
  link->left = 0.0;
  link->gone = 0;
  go_on_with_class(fluid, number);
}

/* Go from moment to moment until nothing rises. */
static void fill_links(struct fluid *fluid) {
  while (fluid->counts.num_rising > 0) {
    struct fluid_moment next = fluid->ahead[0];
    /* A link's moment only moves on while flows are frozen elsewhere, so it is not moved in the heap then, but looked
     * at when it comes up: once for many flows. */
    if (next.what < 0) {
      const struct fluid_link *link = &fluid->links[-1 - next.what];
      double at = link->weight != 0 ? full_at(link) : 0.0;
      if (at > next.level) { /* flows on it were frozen since: it comes later */
        next.level = at;
        replace_moment(fluid, next);
        continue;
      }
    }
    pop_moment(fluid);
    if (next.what >= 0)
      come_again(fluid, next.what, next.priority, next.level);
    else if (fluid->links[-1 - next.what].weight == 0)
      /* Other links have frozen all of the class that rose here: the link is not full, a class follows. */
      go_on_with_class(fluid, -1 - next.what);
    else
      fill_up(fluid, -1 - next.what, next.level);
  }
}
