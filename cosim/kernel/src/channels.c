/* Channels get small numbers, in the order in which they are first seen. */
#include "kernel.h"

enum { LEAST_HASHES = 128 };

static inline int64_t channel_hash(int64_t high, int64_t low) {
  uint64_t mixed = (uint64_t)high * 0x9E3779B97F4A7C15u + (uint64_t)low;
  mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9u;
  return (int64_t)(mixed >> 32);
}

/* Where in the hash table a name's number is, or is to be. */
static int64_t place_of_channel(const struct channel_numbers *numbers, int64_t high, int64_t low) {
  int64_t mask = numbers->hashes_len - 1;
  int64_t slot = channel_hash(high, low) & mask;
  for (; numbers->hashes[slot] != 0; slot = (slot + 1) & mask) {
    const struct channel_name *one = &numbers->names[numbers->hashes[slot] - 1];
    if (one->high == high && one->low == low) break;
  }
  return slot;
}

/* Room for one more name: at most half of the places in the hash table are taken. */
static void make_room_for_channel(struct channel_numbers *numbers) {
  RESERVE(numbers, names, numbers->used + 1);
  if (2 * (numbers->used + 1) <= numbers->hashes_len) return;
  int64_t size = LEAST_HASHES;
  while (size < 4 * numbers->used) size *= 2;
  RESERVE(numbers, hashes, size);
  /* Room may be more than is asked for: only a power of two can be masked. */
  numbers->hashes_len = size;
  memset(numbers->hashes, 0, (size_t)size * sizeof *numbers->hashes);
  for (int64_t one = 0; one < numbers->used; one++) {
    const struct channel_name *name = &numbers->names[one];
    numbers->hashes[place_of_channel(numbers, name->high, name->low)] = (int32_t)one + 1;
  }
}

/* Number each (job, source, destination, channel). */
int64_t number_channels(struct channel_numbers *numbers, int64_t job, int64_t count, const int32_t *src,
                        const int32_t *dst, const int32_t *channel, int32_t *found) {
  CATCH_OUT_OF_MEMORY;
  for (int64_t k = 0; k < count; k++) {
    make_room_for_channel(numbers);
    int64_t high = (int64_t)((uint64_t)job << 32 | (uint32_t)channel[k]);
    int64_t low = (int64_t)((uint64_t)src[k] << 32 | (uint64_t)dst[k]);
    int64_t slot = place_of_channel(numbers, high, low);
    if (numbers->hashes[slot] == 0) {
      numbers->names[numbers->used] = (struct channel_name){high, low};
      numbers->hashes[slot] = (int32_t)++numbers->used;
    }
    found[k] = numbers->hashes[slot] - 1;
  }
  return DONE;
}
