/* The prover's loops: a template's messages moved on chunk values, in one of two extreme orders.
 *
 * Every dependency points back, so flow numbers are an order in which everything can run. In the early order each
 * message is written at its receiver as soon as it is read. In the late one it is read at its start, and written only
 * when a flow that waits for its completion starts; one that nobody waits for is not written at all. What reads data
 * before it must have arrived finds it in the early order and misses it in the late one. Dependencies are looked at in
 * the late order only; the early one is that of the numbers, whatever they say.
 */
#include "kernel.h"

enum { REDUCES = 2 }; /* an action: the receiver adds what it gets to what it had; 0: the row carries no data */

/* Where a rank's copy of a chunk is. Where there are tags, what is neither at the rank where the chunk starts nor at
 * the one rank that has another copy is not kept: its place is that of what was never written. */
static inline uint64_t *cell_of(const struct chunk_replay *r, int64_t rank, int64_t chunk) {
  if (r->tag == NULL) return &r->values[rank * r->stride + chunk];
  if (chunk / r->per_rank == rank) return &r->values[chunk];
  return &r->values[r->tag[chunk] == rank ? r->stride + chunk : 2 * r->stride];
}

/* Write a cell of a flow's receiver, or reduce into it. */
static inline void write_cell(struct chunk_replay *r, int64_t row, int64_t chunk, uint64_t value, int64_t flow) {
  int64_t rank = r->dst[row];
  uint64_t *cell = cell_of(r, rank, chunk);
  if (r->action[row] == REDUCES) {
    uint64_t had = *cell;
    if (!r->bits)
      value += had;
    else /* the top bit marks what is counted twice, or holds what was never written */
      value = had | value | (had & value ? (uint64_t)1 << 63 : 0);
  }
  if (r->tag != NULL && chunk / r->per_rank != rank) {
    r->tag[chunk] = (int32_t)rank;
    cell = &r->values[r->stride + chunk];
  }
  *cell = value;
  if (rank == r->watch_rank && chunk == r->watch_chunk) r->writer = flow;
}

static inline int64_t next_place(int64_t place, int64_t size) { return place + 1 < size ? place + 1 : 0; }

/* `by` places further in a ring of `size`; both are within it. */
static inline int64_t further(int64_t place, int64_t by, int64_t size) {
  int64_t moved = place + by;
  return moved >= size ? moved - size : moved;
}

/* A row's next repetition carries the chunks `chunk_step` further round. */
static inline void step_on(struct chunk_replay *r, int64_t row) {
  r->chunk[row] = further(r->chunk[row], r->chunk_step[row], r->places);
}

static inline void move_at_once(struct chunk_replay *r, int64_t row, int64_t flow) {
  int64_t chunk = r->chunk[row], to = further(chunk, r->shift[row], r->places);
  for (int64_t k = r->chunk_count[row]; k > 0; k--) {
    write_cell(r, row, to, *cell_of(r, r->src[row], chunk), flow);
    chunk = next_place(chunk, r->places);
    to = next_place(to, r->places);
  }
  step_on(r, row);
}

/* Each message is written as soon as it is read. */
void replay_early(struct chunk_replay *given) {
  /* A copy, which nothing that is written can be a part of: its fields stay in registers. */
  struct chunk_replay r = *given;
  int64_t flow = 0;
  for (int64_t block = 0; block < r.block_repeat_len; block++)
    for (int64_t k = 0; k < r.block_repeat[block]; k++)
      for (int64_t row = r.block_row[block]; row < r.block_row[block + 1]; row++, flow++)
        if (r.action[row] != 0) move_at_once(&r, row, flow);
  given->writer = r.writer;
}

/* Something waits for a message's completion: now it must have arrived, the latest at which it can be written. */
static inline void write_carried(struct chunk_replay *r, struct carried *message, int64_t flow) {
  int64_t at = message->payload, chunk = message->chunk;
  for (int64_t k = r->chunk_count[message->row]; k > 0; k--) {
    write_cell(r, message->row, chunk, r->payload[at], flow);
    at = next_place(at, r->payload_len);
    chunk = next_place(chunk, r->places);
  }
  message->chunk = NONE;
}

/* A message starts: read now, for what its sender writes later isn't in it any more. `payload` is where its words go;
 * returns where those of the next one do. */
static inline int64_t read_message(struct chunk_replay *r, int64_t row, struct carried *message, int64_t payload) {
  message->payload = (int32_t)payload;
  message->chunk = (int32_t)further(r->chunk[row], r->shift[row], r->places);
  int64_t chunk = r->chunk[row];
  for (int64_t k = r->chunk_count[row]; k > 0; k--) {
    r->payload[payload] = *cell_of(r, r->src[row], chunk);
    payload = next_place(payload, r->payload_len);
    chunk = next_place(chunk, r->places);
  }
  step_on(r, row);
  return payload;
}

/* What a flow waits for is met, and what has to be there is written; DONE, or what is wrong with `dependency`. */
static inline int64_t meet_dependencies(struct chunk_replay *r, int64_t row, int64_t flow) {
  int64_t rank = r->src[row], mask = r->window_len - 1;
  for (int64_t d = r->dep_ptr[row]; d < r->dep_ptr[row + 1]; d++) {
    int64_t before = r->dependency = flow - r->dep_distance[d];
    if (before < 0) return BEFORE_FIRST;
    struct carried *message = &r->window[before & mask];
    bool completes = r->dep_kind[d] == COMPLETED;
    /* A rank sees what arrives at it and its own messages, no others. */
    if (r->src[message->row] != rank && !(completes && r->dst[message->row] == rank)) return NOT_LOCAL;
    if (completes && message->chunk != NONE) write_carried(r, message, before);
  }
  return DONE;
}

static inline int64_t replay_block_late(struct chunk_replay *r, int64_t block, int64_t *payload) {
  for (int64_t row = r->block_row[block]; row < r->block_row[block + 1]; row++, r->flow++) {
    /* Only those of block 0 are started by their rank's arrival. */
    if (block > 0 && r->dep_ptr[row] == r->dep_ptr[row + 1]) return NEVER_RELEASED;
    int64_t fault = meet_dependencies(r, row, r->flow);
    if (fault != DONE) return fault;
    /* What stood in this place is out of reach of all that follow: it is never written. */
    struct carried *message = &r->window[r->flow & (r->window_len - 1)];
    *message = (struct carried){0, (int32_t)row, NONE};
    if (r->action[row] != 0) *payload = read_message(r, row, message, *payload);
  }
  return DONE;
}

/* Each message is read at its start, and written when a flow that waits for its completion starts. */
int64_t replay_late(struct chunk_replay *given) {
  struct chunk_replay r = *given;
  int64_t payload = 0, fault = DONE;
  for (int64_t block = 0; block < r.block_repeat_len && fault == DONE; block++)
    for (int64_t k = 0; k < r.block_repeat[block] && fault == DONE; k++) fault = replay_block_late(&r, block, &payload);
  given->writer = r.writer;
  given->flow = r.flow;
  given->dependency = r.dependency;
  return fault;
}
