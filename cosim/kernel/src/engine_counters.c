/* What completions add up to: digest, completion times, traffic, who reacts.
 *
 * The digest is a sum, modulo 2^64 and twice with different mixing, of a hash of each (key, time): equal multisets of
 * completions give equal digests however they were cut into batches or ordered. Hashes are built with splitmix64's
 * finalizer (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).
 */
#include "kernel.h"

#define FCT_CARRY ((int64_t)1 << 62) /* more than any time: a sum below it takes one more without leaving 64 bits */

enum { FEWEST_BINS = 8 };

static inline uint64_t mix_in(uint64_t hashed, int64_t value) { return mix(hashed + (uint64_t)value + GOLDEN); }

static inline void add_to_digest(uint64_t *digest, uint64_t hashed) {
  digest[0] += hashed;
  digest[1] += mix(hashed ^ GOLDEN);
}

/* -- traffic: bytes between endpoints over time --------------------------------------------------------------------- */

/* Sixteen neighbours share a cache line: rows mostly go through destinations in order. */
static inline int64_t pair_place(const struct traffic *traffic, int64_t code) {
  return (int64_t)((mix((uint64_t)code >> 4) << 4 | ((uint64_t)code & 15)) & (uint64_t)(traffic->hashes_len - 1));
}

/* Room for one more pair: the hash table has at least twice as many places as there are pairs. */
static void make_room_for_pair(struct traffic *traffic) {
  int64_t need = traffic->state.num_pairs + 1, size = 64;
  RESERVE(traffic, codes, need);
  if (2 * need <= traffic->hashes_len) return;
  while (size < 2 * need) size *= 2;
  RESERVE(traffic, hashes, size);
  traffic->hashes_len = size;
  memset(traffic->hashes, 0, (size_t)size * sizeof *traffic->hashes);
  for (int64_t pair = 0; pair < traffic->state.num_pairs; pair++) {
    int64_t place = pair_place(traffic, traffic->codes[pair]);
    while (traffic->hashes[place] != 0) place = (place + 1) & (size - 1);
    traffic->hashes[place] = (int32_t)pair + 1;
  }
}

static int64_t number_pair(struct traffic *traffic, int64_t code) {
  make_room_for_pair(traffic);
  int64_t place = pair_place(traffic, code);
  for (; traffic->hashes[place] != 0; place = (place + 1) & (traffic->hashes_len - 1))
    if (traffic->codes[traffic->hashes[place] - 1] == code) return traffic->hashes[place] - 1;
  traffic->codes[traffic->state.num_pairs] = code;
  traffic->hashes[place] = (int32_t)++traffic->state.num_pairs;
  return traffic->state.num_pairs - 1;
}

/* However long a run lasts it has as many bins: twice as wide, half of them are free again. */
static void widen_traffic(struct traffic *traffic) {
  struct traffic_state *state = &traffic->state;
  state->bin_bits++;
  for (int64_t k = 0; k < state->num_arrivals; k++) traffic->arrivals[k].bin >>= 1;
  if (traffic->bytes_len == 0) return;
  int64_t *bytes = traffic->bytes, pairs = state->pairs, half = state->bins / 2;
  for (int64_t b = 0; b < half; b++)
    for (int64_t pair = 0; pair < pairs; pair++)
      bytes[b * pairs + pair] = bytes[2 * b * pairs + pair] + bytes[(2 * b + 1) * pairs + pair];
  memset(bytes + half * pairs, 0, (size_t)((state->bins - half) * pairs) * sizeof *bytes);
}

/* Have bins for all pairs; where these are many, fewer and wider ones. */
static void make_room_for_traffic(struct traffic *traffic) {
  struct traffic_state *state = &traffic->state;
  if (state->num_pairs <= state->pairs) return;
  /* Doubled: pairs come a few at a time, and each time all would be copied. */
  int64_t before = state->pairs, pairs = most(2 * before, state->num_pairs), bins = state->bins;
  while (bins > FEWEST_BINS && bins * pairs > state->most_cells) {
    bins /= 2;
    widen_traffic(traffic);
  }
  state->bins = bins;
  state->pairs = pairs;
  if (traffic->bytes_len == 0) return;
  RESERVE(traffic, bytes, bins * pairs);
  /* From the last bin on, so that none is written over before it is moved. */
  for (int64_t b = bins - 1; b >= 0; b--) {
    int64_t *to = traffic->bytes + b * pairs;
    memmove(to, traffic->bytes + b * before, (size_t)before * sizeof *to);
    memset(to + before, 0, (size_t)(pairs - before) * sizeof *to);
  }
}

/* Bytes of a bound row, as they are kept below the number of its pair. */
static int64_t kept_size(struct traffic *traffic, int64_t size) {
  if (size >> LONG_BIT == 0) return size;
  RESERVE(traffic, long_sizes, traffic->state.num_long + 1);
  traffic->long_sizes[traffic->state.num_long] = size;
  return ((int64_t)1 << LONG_BIT) + traffic->state.num_long++;
}

static inline int64_t size_of_row(const struct traffic *traffic, int64_t info) {
  int64_t kept = info & (((int64_t)1 << SIZE_BITS) - 1);
  return kept >> LONG_BIT == 0 ? kept : traffic->long_sizes[kept - ((int64_t)1 << LONG_BIT)];
}

/* Bind rows: their bytes, and the number of each one's pair of endpoints, -1 where it goes to itself. */
int64_t number_rows(struct traffic *traffic, int64_t count, const int32_t *src, const int32_t *dst,
                    const int64_t *size, int64_t *info) {
  CATCH_OUT_OF_MEMORY;
  for (int64_t k = 0; k < count; k++) {
    int64_t pair = src[k] == dst[k] ? -1 : number_pair(traffic, (int64_t)src[k] << 32 | dst[k]);
    info[k] = pair * ((int64_t)1 << SIZE_BITS) + kept_size(traffic, size[k]);
  }
  make_room_for_traffic(traffic);
  return DONE;
}

/* Put what is listed into bins. */
static void make_bins(struct traffic *traffic) {
  struct traffic_state *state = &traffic->state;
  RESERVE(traffic, bytes, state->bins * state->pairs);
  for (int64_t k = 0; k < state->num_arrivals; k++) {
    const struct arrival *one = &traffic->arrivals[k];
    traffic->bytes[one->bin * state->pairs + one->pair] += one->bytes;
  }
  state->num_arrivals = 0;
}

/* Bytes of a pair arrived. */
static inline void add_traffic(struct traffic *traffic, int64_t pair, int64_t bytes, int64_t time) {
  struct traffic_state *state = &traffic->state;
  while (time >> state->bin_bits >= state->bins) widen_traffic(traffic);
  int64_t bin = time >> state->bin_bits;
  if (traffic->bytes_len > 0) {
    traffic->bytes[bin * state->pairs + pair] += bytes;
    return;
  }
  RESERVE(traffic, arrivals, state->num_arrivals + 1);
  traffic->arrivals[state->num_arrivals++] = (struct arrival){bytes, (int32_t)pair, (int32_t)bin};
  /* A list takes twice as much memory for each: it is worth it where most bins of most pairs would be empty. */
  if (4 * state->num_arrivals >= state->bins * state->pairs) make_bins(traffic);
}

/* -- messages --------------------------------------------------------------------------------------------------------- */

/* The bin of a completion time: exact below 64, then 64 to each power of two. */
static inline int64_t fct_bin(int64_t value) {
  if (value < 64) return value;
  int shift = 0;
  /* By bisection: how far to shift until seven bits are left, the first of them set. */
  for (int step = 32; step > 0; step /= 2)
    if (value >> (shift + step) >= 64) shift += step;
  return 64 + shift * 64 + (value >> shift) - 64;
}

/* Add to a sum of times, which is *sum + *carries * FCT_CARRY. */
static inline void add_times(int64_t *sum, int64_t *carries, int64_t time) {
  *sum += time;
  if (*sum >= FCT_CARRY) {
    *sum -= FCT_CARRY;
    ++*carries;
  }
}

/* Count a message that took so long, but for its bin. */
static inline void count_time(struct engine_state *state, int64_t took) {
  state->fct_min = least(state->fct_min, took);
  state->fct_max = most(state->fct_max, took);
  add_times(&state->fct_sum, &state->fct_carries, took);
  state->messages++;
}

/* The block that a flow of a binding lies in; `near`: where the flow before it was found. */
static int64_t find_block(const struct engine *engine, const struct binding *bound, int64_t flow, int64_t near) {
  const struct flow_block *blocks = engine->blocks;
  int64_t low = bound->block, high = low + bound->blocks;
  /* Neighbours mostly complete together: look where the last one was before searching. */
  if (low <= near && near < high && blocks[near].base <= flow && (near + 1 == high || blocks[near + 1].base > flow))
    return near;
  while (high - low > 1) {
    int64_t middle = (low + high) >> 1;
    if (blocks[middle].base <= flow)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void keep_message(struct engine *engine, const struct flow_group *group, int64_t flow, int64_t info,
                         int64_t start, int64_t time) {
  RESERVE(engine, kept, engine->state.num_kept + 1);
  engine->kept[engine->state.num_kept++] = (struct kept_message){
      group->key_high, group->key_low + flow, info >> SIZE_BITS, size_of_row(engine->traffic, info), start, time};
}

/* The completion before: its group, the first flow of its repetition, how many rows that has, and where they are; how
 * long it took, and the bin of that. Neighbours mostly share them. */
struct neighbour {
  int64_t handle, block, first, rows, info;
  int64_t took, bin;
};

/* The bound row of a flow of a group. */
static inline int64_t info_of_flow(const struct engine *engine, struct neighbour *near, int64_t handle, int64_t flow) {
  if (handle != near->handle || flow < near->first || flow >= near->first + near->rows) {
    const struct binding *bound = &engine->bindings[engine->handles[handle].binding];
    near->block = find_block(engine, bound, flow, near->block);
    const struct flow_block *block = &engine->blocks[near->block];
    near->handle = handle;
    near->rows = block->rows;
    near->first = flow - (flow - block->base) % block->rows;
    near->info = bound->info + block->row;
  }
  return engine->info[near->info + flow - near->first];
}

static const struct neighbour no_neighbour = {.handle = NONE, .block = NONE, .took = NONE};

/* Fold a completion into a digest of flows. */
static inline void fold_flow(uint64_t *digest, int64_t key_high, int64_t key_low, int64_t time) {
  add_to_digest(digest, mix_in(mix_in(mix_in(0, key_high), key_low), time));
}

/* Count a message that arrived, after so long, in all statistics. */
static inline void count_arrival(struct engine *engine, int64_t pair, int64_t bytes, int64_t time, int64_t took,
                                 int64_t bin) {
  engine->fct[bin]++;
  count_time(&engine->state, took);
  add_traffic(engine->traffic, pair, bytes, time);
}

/* Whether an interval is kept that a job takes part in. */
static inline bool is_recorded(const struct repeats *repeats, int64_t job) {
  return repeats != NULL && repeats->state.recorder != NONE && repeats->jobs[job].part == repeats->state.recorder;
}

/* Keep a completion, where its interval may be repeated. */
static inline void keep_flow(struct repeats *repeats, int64_t key_high, int64_t key_low, int64_t time,
                             int64_t took, int64_t bytes, int64_t pair, int64_t bin) {
  if (!is_recorded(repeats, key_high >> 51)) return;
  RESERVE(repeats, flows, repeats->state.num_flows + 1);
  repeats->flows[repeats->state.num_flows++] =
      (struct repeated_flow){key_high, key_low, time, took, bytes, (int32_t)pair, (int32_t)bin};
}

/* Count the completion of a flow that is under way; one that the engine waits for becomes a reaction. */
static inline void count_flow(struct engine *engine, struct neighbour *near, int64_t handle, int64_t flow,
                              int64_t start, int64_t time, int64_t cause) {
  struct engine_state *state = &engine->state;
  struct flow_group *group = &engine->handles[handle];
  fold_flow(state->digest, group->key_high, group->key_low + flow, time);
  /* A network reports in no particular order, but queues are first come: so by key. */
  int64_t exit = flow - engine->bindings[group->binding].react_from;
  if (exit >= 0)
    PUSH_DUE(engine, reactions, time, group->key_high, group->key_low + flow, cause, (int32_t)handle, (int32_t)exit);
  int64_t info = info_of_flow(engine, near, handle, flow);
  if (--group->left == 0) let_flows_go(engine, handle);
  /* A mark carries no bytes between endpoints: it is in the digest, and in no statistics. */
  if (info < 0) {
    keep_flow(engine->repeats, group->key_high, group->key_low + flow, time, 0, 0, NONE, 0);
    return;
  }
  int64_t took = time - start;
  /* Equal messages of a collective take equally long: their bin is searched for once. */
  if (took != near->took) {
    near->took = took;
    near->bin = fct_bin(took);
  }
  int64_t bytes = size_of_row(engine->traffic, info);
  count_arrival(engine, info >> SIZE_BITS, bytes, time, took, near->bin);
  keep_flow(engine->repeats, group->key_high, group->key_low + flow, time, took, bytes, info >> SIZE_BITS, near->bin);
  if (state->keeps_messages) keep_message(engine, group, flow, info, start, time);
}

/* Count completions of a network that is not in this process, which went `from` one time `to` another and may report
 * anything.
 *
 * NONE, or the number of a row whose group has ended or never began, whose index is negative, which ends before it
 * starts or not in that time, or starts before 0.
 */
int64_t count_completions(struct engine *engine, int64_t from, int64_t to, int64_t count, const int32_t *handle,
                          const int64_t *index, const int64_t *start, const int64_t *time, const int64_t *cause) {
  CATCH_OUT_OF_MEMORY;
  struct neighbour near = no_neighbour;
  for (int64_t k = 0; k < count; k++) {
    if (handle[k] < 0 || handle[k] >= engine->state.handles_used || engine->handles[handle[k]].left <= 0) return k;
    if (index[k] < 0 || start[k] < 0 || start[k] > time[k] || time[k] < from || time[k] > to) return k;
    count_flow(engine, &near, handle[k], index[k], start[k], time[k], cause[k]);
  }
  return NONE;
}

/* -- operations --------------------------------------------------------------------------------------------------------- */

/* What operations of one iteration of a job have in common in the digest, and what one of them is there. */
static inline uint64_t hash_iteration(int64_t job, int64_t iteration) { return mix_in(mix_in(0, job), iteration); }

static inline uint64_t hash_operation(uint64_t of_iteration, int64_t number, int64_t op, int64_t start, int64_t end) {
  return mix_in(mix_in(mix_in(mix_in(of_iteration, number), op), start), end);
}

/* Log an operation that ended, where its rank's are kept. */
static inline void log_row(struct engine *engine, struct ended_operation row) {
  struct engine_state *state = &engine->state;
  state->ops_done++;
  state->last_end = most(state->last_end, row.end);
  if (engine->is_kept_len > 0 && !engine->is_kept[row.rank]) return;
  RESERVE(engine, log, state->num_log + 1);
  engine->log[state->num_log++] = row;
}

/* Fold an operation that ended into the digest of operations, and log it. */
static void log_operation(struct engine *engine, int64_t number, int32_t op, int32_t iteration, int64_t start,
                          int64_t end) {
  struct ended_operation row = {start, end, (int32_t)number, op, iteration, 0};
  const struct rank *rank = &engine->ranks[number];
  log_row(engine, row);
  add_to_digest(engine->state.op_digest,
                hash_operation(hash_iteration(rank->job, iteration), rank->number, op, start, end));
  struct repeats *repeats = engine->repeats;
  if (!is_recorded(repeats, rank->job)) return;
  RESERVE(repeats, ops, repeats->state.num_ops + 1);
  repeats->ops[repeats->state.num_ops++] = row;
}

static inline bool ended_before(const struct ended_operation *one, const struct ended_operation *other) {
  if (one->end != other->end) return one->end < other->end;
  return one->rank != other->rank ? one->rank < other->rank : one->op < other->op;
}

/* Where the rows from `at` on that are in order end. */
static int64_t end_of_run(const struct ended_operation *rows, int64_t at, int64_t count) {
  for (at++; at < count && !ended_before(&rows[at], &rows[at - 1]);) at++;
  return at;
}

/* Sort operations by (end, rank, operation). Those of an instant come in rounds, each of which is in order; mostly there
 * is one. */
static void sort_rounds(struct kept_operations *to, struct ended_operation *rows, int64_t count) {
  while (end_of_run(rows, 0, count) < count) {
    RESERVE(to, spare, count);
    for (int64_t at = 0, out = 0; at < count;) {
      int64_t middle = end_of_run(rows, at, count), a = at, b = middle;
      int64_t end = middle < count ? end_of_run(rows, middle, count) : count;
      while (a < middle || b < end)
        to->spare[out++] = b == end || (a < middle && !ended_before(&rows[b], &rows[a])) ? rows[a++] : rows[b++];
      at = end;
    }
    memcpy(rows, to->spare, (size_t)count * sizeof *rows);
  }
}

static void write_operation(struct kept_operations *to, const struct ended_operation *row) {
  int64_t k = to->count++;
  to->job[k] = to->jobs[row->rank];
  to->iteration[k] = row->iteration;
  to->rank[k] = to->numbers[row->rank];
  to->op[k] = row->op;
  to->start[k] = row->start;
  to->end[k] = row->end;
}

/* Write down logged operations that ended before `settled`, by time, those of an instant by job, rank and operation. What
 * ended later may be followed by what ended sooner: its rows are left, at the beginning. How many are left. */
int64_t keep_operations(struct kept_operations *to, int64_t count, struct ended_operation *rows, int64_t settled) {
  CATCH_OUT_OF_MEMORY;
  int64_t begin = 0;
  for (int64_t end; begin < count; begin = end) {
    for (end = begin + 1; end < count && rows[end].end == rows[begin].end;) end++;
    sort_rounds(to, rows + begin, end - begin);
  }
  /* They come by time, but for those that were repeated. */
  sort_rounds(to, rows, count);
  for (begin = 0; begin < count && rows[begin].end < settled; begin++) write_operation(to, &rows[begin]);
  memmove(rows, rows + begin, (size_t)(count - begin) * sizeof *rows);
  return count - begin;
}
