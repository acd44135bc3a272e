/* The calendar of a network: events by instant, in constant time for instants that recur.
 *
 * Symmetric traffic puts thousands of events on the same instant, irregular traffic one on each. So events hang in
 * buckets, one for each distinct time; a hash table finds the bucket of a time, and a binary heap orders the buckets.
 * An event at an instant that is known costs no heap operation. Within an instant, events are taken in the order in
 * which they came; what that order means is the model's affair.
 */
#include "kernel.h"

static inline int64_t hash_of_time(const struct calendar *calendar, int64_t time) {
  return (int64_t)(((uint64_t)time * 0x9E3779B97F4A7C15u) >> calendar->state.hash_shift);
}

/* Room for one more instant: the hash table has at least twice as many places as there are instants. */
static void make_room_for_instant(struct calendar *calendar) {
  int64_t need = calendar->state.buckets_used + 1;
  RESERVE(calendar, buckets, need);
  RESERVE(calendar, heap, need);
  if (2 * need <= calendar->hashes_len) return;
  int64_t size = 64;
  while (size < 4 * need) size *= 2;
  RESERVE(calendar, hashes, size);
  /* Room is never less than asked for, and may be more: only a power of two can be masked. */
  calendar->hashes_len = size;
  memset(calendar->hashes, 0, (size_t)size * sizeof *calendar->hashes);
  calendar->state.hash_shift = 64;
  for (int64_t k = size; k > 1; k /= 2) calendar->state.hash_shift--;
  for (int64_t place = 0; place < calendar->state.num_instants; place++) {
    int64_t slot = hash_of_time(calendar, calendar->heap[place].time);
    while (calendar->hashes[slot] != 0) slot = (slot + 1) & (size - 1);
    calendar->hashes[slot] = (int32_t)calendar->heap[place].bucket + 1;
  }
}

static inline int64_t new_event(struct calendar *calendar) {
  struct calendar_state *state = &calendar->state;
  int64_t at = state->free_event;
  if (at != NONE) {
    state->free_event = calendar->events[at].next;
  } else {
    RESERVE(calendar, events, state->events_used + 1);
    at = state->events_used++;
  }
  state->num_events++;
  return at;
}

/* A bucket for a time that no event had, `at` the first in it, and its place in the heap. */
static void open_instant(struct calendar *calendar, int64_t slot, int64_t time, int64_t at) {
  struct calendar_state *state = &calendar->state;
  int64_t bucket = state->free_bucket;
  if (bucket != NONE)
    state->free_bucket = calendar->buckets[bucket].head;
  else
    bucket = state->buckets_used++;
  calendar->hashes[slot] = (int32_t)bucket + 1;
  calendar->buckets[bucket] = (struct bucket){time, (int32_t)at, (int32_t)at};
  struct instant *heap = calendar->heap;
  int64_t place = state->num_instants++;
  while (place > 0) {
    int64_t parent = (place - 1) >> 1;
    if (heap[parent].time <= time) break;
    heap[place] = heap[parent];
    place = parent;
  }
  heap[place] = (struct instant){time, bucket};
}

/* Add an event. */
static inline void push_event(struct calendar *calendar, int64_t time, struct event event) {
  int64_t at = new_event(calendar);
  event.next = NONE;
  calendar->events[at] = event;
  make_room_for_instant(calendar);
  int64_t mask = calendar->hashes_len - 1;
  int64_t slot = hash_of_time(calendar, time);
  for (; calendar->hashes[slot] != 0; slot = (slot + 1) & mask) {
    struct bucket *bucket = &calendar->buckets[calendar->hashes[slot] - 1];
    if (bucket->time != time) continue;
    calendar->events[bucket->tail].next = (int32_t)at;
    bucket->tail = (int32_t)at;
    return;
  }
  open_instant(calendar, slot, time, at);
}

/* Take a time out of the hash table, closing the gap (linear probing without tombstones). */
static void forget_time(struct calendar *calendar, int64_t time) {
  const struct bucket *buckets = calendar->buckets;
  int32_t *hashes = calendar->hashes;
  int64_t mask = calendar->hashes_len - 1;
  int64_t gap = hash_of_time(calendar, time);
  while (buckets[hashes[gap] - 1].time != time) gap = (gap + 1) & mask;
  for (int64_t probe = (gap + 1) & mask; hashes[probe] != 0; probe = (probe + 1) & mask) {
    int64_t home = hash_of_time(calendar, buckets[hashes[probe] - 1].time);
    /* What is nearer to its home than to the gap stays: a search for it does not pass the gap. */
    if (((probe - home) & mask) < ((probe - gap) & mask)) continue;
    hashes[gap] = hashes[probe];
    gap = probe;
  }
  hashes[gap] = 0;
}

/* Remove the earliest instant; its first event, chained by `next`. Give each back by free_event. */
static int64_t take_instant(struct calendar *calendar) {
  struct calendar_state *state = &calendar->state;
  struct instant *heap = calendar->heap;
  int64_t bucket = heap[0].bucket;
  int64_t head = calendar->buckets[bucket].head;
  forget_time(calendar, heap[0].time);
  calendar->buckets[bucket].head = (int32_t)state->free_bucket;
  state->free_bucket = bucket;
  /* The last of the heap fills the gap at its head, and sinks to where it belongs. */
  int64_t last = --state->num_instants;
  struct instant moved = heap[last];
  int64_t place = 0;
  for (;;) {
    int64_t child = 2 * place + 1;
    if (child >= last) break;
    if (child + 1 < last && heap[child + 1].time < heap[child].time) child++;
    if (heap[child].time >= moved.time) break;
    heap[place] = heap[child];
    place = child;
  }
  heap[place] = moved;
  return head;
}

static inline void free_event(struct calendar *calendar, int64_t at) {
  calendar->events[at].next = (int32_t)calendar->state.free_event;
  calendar->state.free_event = at;
  calendar->state.num_events--;
}

/* When the next event comes; NEVER where there is none. */
static inline int64_t next_event_time(const struct calendar *calendar) {
  return calendar->state.num_instants > 0 ? calendar->heap[0].time : NEVER;
}
