/* The next drain: a binary heap that knows where each flow sits, so that a changed rate moves one entry.
 *
 * As many flows as there are may be in it, so that a row of its column is two things: an entry of the heap, and where
 * the flow of that number is. So what an entry's way through the heap touches lies close together.
 */
#include "kernel.h"

#define DUST_PS 1e-3 /* what rounding may have added to a time: not another picosecond */
#define DUST 1e-14   /* the same, in proportion: some 50 units in the last place of a double */

/* When `remaining` bytes are gone at `rate` bytes per ps: a whole picosecond, rounded up.
 *
 * What sticks out over a picosecond by less than a thousandth of one, or by less than 10^-14 of the time it takes, is
 * floating-point dust and not rounded up; so volumes that take a whole number of picoseconds take just that, at a third
 * of a rate too. At least 1 ps: what is left at `now` does not drain at `now`. NEVER at rate 0, and where it lies
 * beyond NEVER.
 */
static inline int64_t drain_time(int64_t now, double remaining, double rate) {
  if (rate <= 0.0 || remaining >= rate * (double)NEVER) return NEVER;
  double exact = remaining / rate;
  int64_t whole = (int64_t)exact; /* neither is below 0: what is cut off is the fraction */
  if (exact - (double)whole > DUST_PS + exact * DUST) whole++;
  return least(now + most(whole, 1), NEVER);
}

/* The same for Python. */
int64_t when_drained(int64_t now, double remaining, double rate) { return drain_time(now, remaining, rate); }

/* When the next flow drains; NEVER where none is to. */
static inline int64_t next_drain_time(const struct drain_heap *drains) {
  return drains->count > 0 ? drains->entries[0].time : NEVER;
}

/* Whether one entry comes before another: of two at a time, the flow with the lower number. */
static inline bool drains_before(int64_t time, int64_t flow, int64_t other_time, int64_t other_flow) {
  return (time < other_time) | ((time == other_time) & (flow < other_flow));
}

/* Move an entry to where a flow at `time` belongs: up from place `at`, or down. */
static inline void sift_drain(struct drain_heap *drains, int64_t at, int64_t flow, int64_t time) {
  struct drain *entries = drains->entries;
  int64_t count = drains->count;
  while (at > 0) {
    int64_t parent = (at - 1) >> 1;
    if (drains_before(entries[parent].time, entries[parent].flow, time, flow)) break;
    entries[at].time = entries[parent].time;
    entries[at].flow = entries[parent].flow;
    entries[entries[at].flow].place = (int32_t)at + 1;
    at = parent;
  }
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) break;
    /* Which one is as good as random: chosen without a jump. */
    if (child + 1 < count)
      child += drains_before(entries[child + 1].time, entries[child + 1].flow, entries[child].time, entries[child].flow);
    if (!drains_before(entries[child].time, entries[child].flow, time, flow)) break;
    entries[at].time = entries[child].time;
    entries[at].flow = entries[child].flow;
    entries[entries[at].flow].place = (int32_t)at + 1;
    at = child;
  }
  entries[at].time = time;
  entries[at].flow = (int32_t)flow;
  entries[flow].place = (int32_t)at + 1;
}

/* Put a flow at `time`, from wherever it was; NEVER takes it out. */
static void set_drain(struct drain_heap *drains, int64_t flow, int64_t time) {
  RESERVE(drains, entries, flow + 1);
  int64_t at = (int64_t)drains->entries[flow].place - 1;
  if (time != NEVER) {
    sift_drain(drains, at >= 0 ? at : drains->count++, flow, time);
    return;
  }
  if (at < 0) return;
  drains->entries[flow].place = 0;
  int64_t last = --drains->count;
  /* What is last fills the gap; it may belong above or below it. */
  if (at != last) sift_drain(drains, at, drains->entries[last].flow, drains->entries[last].time);
}
