/* Weighted max-min rates with strict priorities, for what changed only.
 *
 * Class by class of priority (0 first; a class gets what those before it left), the level (rate per unit of weight) of
 * all flows rises until a link is full; its flows are frozen there, and the others go on (progressive filling). So a
 * moment of the filling is (class, level), moments are in order, and what happens at one depends only on those before
 * it.
 *
 * A start or a drain marks the links of its path. When time leaves the instant, share_marked fills anew, but only links
 * where something differs from the filling before: marked ones at first. On those, a flow comes to the moment at which
 * it was frozen before. Where a link of its path was full by then that has not become one of them, it is frozen there
 * again, and nothing else of it need be known. Otherwise it rises on, or it is frozen sooner: from that moment on the
 * other links of its path differ too. A link that never differs is not looked at, nor are the flows that cross no other;
 * nor is one with room to spare (fluid.c). The rates are those of filling all links from zero, bit by bit; but where
 * links are full at the same level within rounding, which one's level it is may depend on the fillings before.
 *
 * Order never matters: weights are whole numbers (billionths), so that their sums are exact; a link loses what was
 * frozen at a moment by one subtraction, moments in order. A link that would be full within 10^-12 of the level at which
 * flows on it were frozen is full there. A link that is full has zero left, not dust.
 *
 * Source: D. Bertsekas, R. Gallager, Data Networks, 2nd ed., section 6.5.2 (max-min flow control).
 */
#include "kernel.h"

/* What a flow gets; one that meets no other has just the rate of its slowest link. */
static double rate_of(const struct fluid *fluid, const struct fluid_flow *flow) {
  int64_t weight = fluid->classes[flow->traits].weight;
  double rate = (double)INFINITY;
  for (int64_t m = flow->member; m != NONE; m = fluid->members[m].sibling) {
    const struct fluid_member *member = &fluid->members[m];
    if (member->before != NONE || member->after != NONE) return flow->level * (double)weight;
    double most = fluid->links[member->link].capacity;
    int64_t part = weight_of(fluid, m, flow);
    if (part != weight) most = most / (double)part * (double)weight;
    rate = least_of(most, rate);
  }
  return rate;
}

/* Bytes that are left of a flow now. */
static inline double left_of(const struct fluid_flow *flow, int64_t now) {
  return most_of(flow->remaining - flow->rate * (double)(now - flow->touched), 0.0);
}

/* A flow has another rate from now on. */
static inline void change_rate(struct fluid *fluid, int64_t f, double rate, int64_t now) {
  struct fluid_flow *flow = &fluid->flows[f];
  flow->remaining = left_of(flow, now);
  flow->touched = now;
  flow->rate = rate;
  fluid->counts.num_changed++;
  set_drain(fluid->drains, f, drain_time(now, flow->remaining, rate));
}

/* A link carries something else from now on: what it carried so far is counted, once for all the time. */
static inline void change_use(struct core *core, struct fluid *fluid, int64_t number, double rate, int64_t now) {
  struct fluid_link *link = &fluid->links[number];
  if (rate == link->used) return;
  if (link->used > 0.0) add_share(core, number, link->since, now, link->used / link->capacity);
  link->used = rate;
  link->since = now;
}

/* Have what comes soon among the flows found come from memory. */
FETCHES void fetch_found(const struct fluid *fluid, int64_t k) {
  if (k + 8 >= fluid->counts.num_found) return;
  int64_t f = fluid->found[k + 4];
  __builtin_prefetch(&fluid->flows[fluid->found[k + 8]]);
  __builtin_prefetch(&fluid->members[fluid->flows[f].member]);
  if (f < fluid->drains->entries_len) __builtin_prefetch(&fluid->drains->entries[f]);
}

/* Bring new rates into force, where they differ from those before. */
static void apply_rates(struct core *core, struct fluid *fluid, int64_t now) {
  for (int64_t k = 0; k < fluid->counts.num_kept; k++) {
    struct fluid_link *link = &fluid->links[fluid->kept[k]];
    link->kept = 0;
    if (link->room == 0) update_headroom(link);
    change_use(core, fluid, fluid->kept[k], rate_in_use(link), now);
  }
  /* Only now, with all levels known: a level that rose and fell again is no change, and what is left of a flow is
   * rounded once for each change of its rate, however many fillings there were. */
  for (int64_t k = 0; k < fluid->counts.num_found; k++) {
    fetch_found(fluid, k);
    const struct fluid_flow *flow = &fluid->flows[fluid->found[k]];
    double rate = rate_of(fluid, flow);
    if (rate != flow->rate) change_rate(fluid, fluid->found[k], rate, now);
  }
}

/* Fill what was marked, and what differs for it. */
static void fill_anew(struct fluid *fluid) {
  struct fluid_counts *counts = &fluid->counts;
  counts->visit++;
  counts->num_rising = 0;
  counts->num_ahead = 0;
  /* Where flows only left, nothing differs before the first moment at which one of them was frozen. */
  bool left = only_left(fluid);
  int64_t priority = left ? counts->first_priority : NONE;
  double level = left ? counts->first_level : 0.0;
  for (int64_t d = 0; d < counts->num_dirty; d++) {
    int64_t number = fluid->dirty[d];
    struct fluid_link *link = &fluid->links[number];
    bool fits = link->dirty != CAME;
    link->dirty = 0;
    if (link->visit == counts->visit) continue;
    /* One flow that is left may have no company any more: then its rate is a link's (`rate_of`). And a link that was
     * full before that moment had nothing left for the classes that come later. */
    if (is_alone(fluid, link))
      let_differ(fluid, number, NONE, 0.0);
    else if (fits && link->room != 0)
      queue_recheck(fluid, number);
    else if (!is_before(link->full_priority, link->full_level, priority, level))
      let_differ(fluid, number, priority, level);
  }
  counts->num_dirty = 0;
  forget_who_left(fluid);
  fill_links(fluid);
  for (int64_t k = 0; k < counts->num_found; k++) {
    struct fluid_flow *flow = &fluid->flows[fluid->found[k]];
    flow->level = flow->new_level;
  }
}

/* Give every flow its rate from `now` on, where a link was marked. */
static void share_marked(struct core *core, struct fluid *fluid, int64_t now) {
  struct fluid_counts *counts = &fluid->counts;
  counts->num_kept = 0;
  counts->num_found = 0;
  counts->sharing = counts->visit + 1;
  do fill_anew(fluid);
  while (!is_sound(fluid));
  apply_rates(core, fluid, now);
}

int64_t share_links(struct core *core, struct fluid *fluid, int64_t now) {
  CATCH_OUT_OF_MEMORY;
  share_marked(core, fluid, now);
  return DONE;
}

/* Count the use of links up to `now`, for statistics. */
void settle_uses(struct core *core, struct fluid *fluid, int64_t now) {
  for (int64_t number = 0; number < fluid->links_len; number++) {
    const struct fluid_link *link = &fluid->links[number];
    if (link->used > 0.0) add_share(core, number, link->since, now, link->used / link->capacity);
  }
}
