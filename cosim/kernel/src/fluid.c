/* The state of fair_share: flows that transfer, on links that share by max-min; and links with room to spare.
 *
 * A link that is never full holds nobody back, and has no part in anybody's level: rates that other links allow, and
 * that fit on it with room to spare, are max-min fair with it, too. So where levels change it is not looked at, but only
 * counts what its flows take of it: parts of WHOLE, rounded once for each flow and level, so that their sum is exact,
 * and the same in whatever order they come and go. When all levels are known, each link that was left alone has to have
 * room still. Where one has none, it is filled next, as if all its flows had just come, and what differs for that.
 *
 * Nor is a link with room looked at where a flow comes that another link of its path will hold back before it takes that
 * room, as far as can be said beforehand.
 *
 * A link's flows are in the order in which they were frozen, but for those of a link that has room: it may only differ
 * from the beginning of a filling, which orders them anew, and never within one.
 */
#include "kernel.h"

/* A link's capacity: so fine that a million roundings are below what NEARLY leaves, and so coarse that two million flows
 * that take all of it each are less than 2^63. */
#define WHOLE ((int64_t)1 << 42)
/* A millionth is left: a link is full at a level that is so much higher than any on it, where links that are full at the
 * same level, but for rounding, are within 10^-12. */
#define NEARLY (WHOLE - ((int64_t)1 << 22))

enum {
  /* So often a link is looked at after it was full, before it is taken to have room. */
  RECHECKS = 1,
  /* The same of one that had none after all: filling twice costs more than looking a few times. */
  RECHECKS_AFTER_OVERLOAD = 2,
};

#define BPS_PER_BYTE_PS 8e12 /* bits per second of a byte in a picosecond */

/* -- what happened since the last filling -------------------------------------------------------------------------- */

/* Whether a moment comes before another one. */
static inline bool is_before(int64_t priority, double level, int64_t other_priority, double other_level) {
  return priority < other_priority || (priority == other_priority && level < other_level);
}

/* A flow CAME to this link, where perhaps it FITS, or LEFT it. */
static inline void mark_link(struct fluid *fluid, int64_t number, int what) {
  struct fluid_link *link = &fluid->links[number];
  if (link->dirty == 0) {
    RESERVE(fluid, dirty, fluid->counts.num_dirty + 1);
    fluid->dirty[fluid->counts.num_dirty++] = (int32_t)number;
  }
  if (link->dirty < what) link->dirty = (int16_t)what;
}

/* Whether flows only left links since the last filling: none came, and no link changed. */
static bool only_left(const struct fluid *fluid) {
  for (int64_t d = 0; d < fluid->counts.num_dirty; d++)
    if (fluid->links[fluid->dirty[d]].dirty != LEFT) return false;
  return true;
}

/* What flows that have left had is in the filling now. */
static void forget_who_left(struct fluid *fluid) {
  fluid->counts.first_priority = NO_CLASS;
  fluid->counts.first_level = (double)INFINITY;
}

/* What a flow weighs on the link of its membership. */
static inline int64_t weight_of(const struct fluid *fluid, int64_t m, const struct fluid_flow *flow) {
  return fluid->parts_len > 0 ? fluid->parts[m] : fluid->classes[flow->traits].weight;
}

/* Have a membership's flow come from memory while others are looked at. */
FETCHES void fetch_flow(const struct fluid *fluid, int64_t m) {
  if (m != NONE) __builtin_prefetch(&fluid->flows[fluid->members[m].flow]);
}

/* -- links with room ----------------------------------------------------------------------------------------------- */

/* What a flow takes of a link of that capacity, of WHOLE. */
static inline int64_t taken_part(double capacity, double level, int64_t weight) {
  if (level <= 0.0 || capacity == 0.0) return 0;
  /* More than all is only met before a link that has no room after all is filled, or after one slowed down. */
  return (int64_t)(least_of(level * (double)weight / capacity, 1.0) * (double)WHOLE + 0.5);
}

/* About what a flow that comes to a link gets there at most, bytes per ps.
 *
 * Where the link was full, it was so at a level that is hardly higher with one flow more. Else it is full with what it
 * has left, or where two flows at least are frozen, which then have half of it each.
 */
static inline double most_rate(const struct fluid_link *link, int64_t priority, int64_t weight) {
  if (link->full_priority == priority) return link->full_level * (double)weight;
  if (link->full_priority != NO_CLASS) return (double)INFINITY;
  return link->capacity * most_of(1.0 - (double)link->load / (double)WHOLE, 0.5);
}

/* Whether a link that has room seems to have some for another flow, at such a rate, too. */
static inline bool has_room_for(const struct fluid_link *link, double rate) {
  return link->room != 0 && (double)(NEARLY - link->load) * link->capacity >= rate * (double)WHOLE;
}

/* Whether a flow is the only one on all its links. */
static inline bool meets_nobody(const struct fluid *fluid, const struct fluid_flow *flow) {
  for (int64_t m = flow->member; m != NONE; m = fluid->members[m].sibling)
    if (fluid->members[m].before != NONE || fluid->members[m].after != NONE) return false;
  return true;
}

/* Whether a link has one flow only, which meets no other on its other links either. */
static inline bool is_alone(const struct fluid *fluid, const struct fluid_link *link) {
  if (link->first == NONE || fluid->members[link->first].after != NONE) return false;
  return meets_nobody(fluid, &fluid->flows[fluid->members[link->first].flow]);
}

/* Bytes per ps that a link carries. */
static inline double rate_in_use(const struct fluid_link *link) {
  if (link->full_priority != NO_CLASS) return link->capacity;
  return least_of((double)link->load / (double)WHOLE, 1.0) * link->capacity;
}

/* Whether a link has room from now on: all its flows have their levels.
 *
 * To say that it was not full is not enough: where flows cross two links that are full at the same level, one freezes
 * them, and the other is found with nothing that rises. A dead one is full with no load.
 */
static inline void update_headroom(struct fluid_link *link) {
  bool some = link->capacity > 0.0 && link->load <= NEARLY;
  link->room = some && link->full_priority == NO_CLASS && link->rechecks == 0;
}

/* What a link carries may be another part of it when all levels are known. */
static inline void queue_recheck(struct fluid *fluid, int64_t number) {
  struct fluid_link *link = &fluid->links[number];
  if (link->kept) return;
  link->kept = 1;
  RESERVE(fluid, kept, fluid->counts.num_kept + 1);
  fluid->kept[fluid->counts.num_kept++] = (int32_t)number;
}

/* What flows take of a link is another part of it, for its capacity has changed. */
static void recount_load(struct fluid *fluid, struct fluid_link *link) {
  link->load = 0;
  for (int64_t m = link->first; m != NONE; m = fluid->members[m].after) {
    const struct fluid_flow *flow = &fluid->flows[fluid->members[m].flow];
    link->load += taken_part(link->capacity, flow->level, weight_of(fluid, m, flow));
  }
}

/* Whether all links that a filling left alone have room still; those that have none are to be filled. */
static bool is_sound(struct fluid *fluid) {
  for (int64_t k = 0; k < fluid->counts.num_kept; k++) {
    struct fluid_link *link = &fluid->links[fluid->kept[k]];
    if (link->room == 0 || link->load <= NEARLY) continue;
    link->room = 0;
    if (link->rechecks < RECHECKS_AFTER_OVERLOAD) link->rechecks = RECHECKS_AFTER_OVERLOAD;
    mark_link(fluid, fluid->kept[k], CAME);
  }
  return fluid->counts.num_dirty == 0;
}

/* -- flows join links, and leave them ------------------------------------------------------------------------------ */

/* Put a flow on a link, to which this happens by it; its membership, before `sibling` among the flow's. */
static inline int64_t join_link(struct fluid *fluid, int64_t f, int64_t number, int64_t sibling, int what) {
  struct fluid_counts *counts = &fluid->counts;
  int64_t m = counts->free_member;
  if (m != NONE) {
    counts->free_member = fluid->members[m].after;
  } else {
    RESERVE(fluid, members, counts->members_used + 1);
    m = counts->members_used++;
  }
  counts->num_members++;
  struct fluid_link *link = &fluid->links[number];
  fluid->members[m] = (struct fluid_member){(int32_t)f, (int32_t)number, NONE, link->first, (int32_t)sibling};
  if (link->first != NONE)
    fluid->members[link->first].before = (int32_t)m;
  else
    link->last = (int32_t)m;
  link->first = (int32_t)m;
  mark_link(fluid, number, what);
  return m;
}

/* Take a flow off a link, by its membership, of which it took a part. */
static inline void leave_link(struct fluid *fluid, int64_t m, int64_t part) {
  struct fluid_member *member = &fluid->members[m];
  struct fluid_link *link = &fluid->links[member->link];
  int32_t before = member->before, after = member->after;
  if (before != NONE)
    fluid->members[before].after = after;
  else
    link->first = after;
  if (after != NONE)
    fluid->members[after].before = before;
  else
    link->last = before;
  member->after = (int32_t)fluid->counts.free_member;
  fluid->counts.free_member = m;
  fluid->counts.num_members--;
  link->load -= part;
  mark_link(fluid, member->link, LEFT);
}

/* Whether no link of a path is dead. */
static bool is_path_alive(const struct core *core, const struct fluid *fluid, int64_t path) {
  for (int64_t k = core->path_ptr[path]; k < core->path_ptr[path + 1]; k++)
    if (fluid->links[core->path_link[k]].capacity == 0.0) return false;
  return true;
}

/* Put a flow on the links of a path. */
static void join_path(const struct core *core, struct fluid *fluid, int64_t f, int64_t path) {
  const struct fluid_class *class = &fluid->classes[fluid->flows[f].traits];
  int64_t first = core->path_ptr[path], past = core->path_ptr[path + 1];
  double rate = (double)INFINITY;
  for (int64_t k = first; k < past; k++)
    rate = least_of(most_rate(&fluid->links[core->path_link[k]], class->priority, class->weight), rate);
  int64_t last = NONE;
  for (int64_t k = first; k < past; k++) {
    int64_t number = core->path_link[k];
    const struct fluid_link *link = &fluid->links[number];
    /* Who has had no company had just the rate of a link (`rate_of`): that is looked at. */
    bool fits = has_room_for(link, rate) && !is_alone(fluid, link);
    last = join_link(fluid, f, number, last, fits ? FITS : CAME);
  }
  fluid->flows[f].member = (int32_t)last;
}

/* Take a flow off the links that it is on. */
static void leave_path(struct fluid *fluid, int64_t f) {
  struct fluid_counts *counts = &fluid->counts;
  struct fluid_flow *flow = &fluid->flows[f];
  int64_t priority = fluid->classes[flow->traits].priority;
  if (is_before(priority, flow->level, counts->first_priority, counts->first_level)) {
    counts->first_priority = priority;
    counts->first_level = flow->level;
  }
  int64_t part = 0, weight = 0;
  double capacity = -1.0;
  for (int64_t m = flow->member; m != NONE; m = fluid->members[m].sibling) {
    const struct fluid_link *link = &fluid->links[fluid->members[m].link];
    int64_t mine = weight_of(fluid, m, flow);
    /* Links of a path are mostly alike: what it takes of one is worked out once for all of them. */
    if (link->capacity != capacity || mine != weight) {
      capacity = link->capacity;
      weight = mine;
      part = taken_part(capacity, flow->level, weight);
    }
    leave_link(fluid, m, part);
  }
  flow->member = NONE;
}
