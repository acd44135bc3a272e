/* Programs and ranks as columns, written once, before a run: each operation's row once for each slot, successors
 * instead of dependencies, lanes, which operations have the same end of messages, and who is at the other end. */
#include "kernel.h"

static inline uint64_t hash_step(uint64_t hashed, int64_t value) {
  hashed = (hashed + (uint64_t)value) * GOLDEN;
  return hashed ^ (hashed >> 29);
}

/* -- programs --------------------------------------------------------------------------------------------------------- */

/* Number a program's streams, and say where each one's heap is in a rank's cells; how many lanes. */
static int64_t write_lanes(struct engine *engine, struct table_columns *source, int64_t program, int64_t lane0,
                           int64_t slots) {
  int64_t last = source->count_len - 1, lanes = 0, before = 0;
  memset(source->count, 0, (size_t)source->count_len * sizeof *source->count);
  for (int64_t row = source->first[program]; row < source->first[program + 1]; row++)
    source->count[source->stream[source->like[row]]]++;
  for (int64_t stream = 0; stream <= last; stream++) {
    /* The last is there in every program, if only for nothing. */
    if (source->count[stream] == 0 && stream < last) continue;
    source->lane[stream] = (int32_t)lanes;
    /* All slots of a rank are ready in one lane: it has room for each operation once a slot. */
    engine->lane_base[lane0 + lanes] = (int32_t)(slots * before);
    before += source->count[stream];
    lanes++;
  }
  return lanes;
}

/* The number among all ends of that of a row, whose program has those from `begin` up to `used`; that is the number of
 * a new one. */
static int64_t find_end(struct table_columns *source, int64_t row, int64_t begin, int64_t used) {
  int64_t mask = source->hashes_len - 1, end = source->end[source->like[row]];
  uint64_t hashed = hash_step(hash_step((uint64_t)begin, end), source->peer[row]);
  hashed = hash_step(hash_step(hashed, source->tag[row]), source->size[row]);
  int64_t place = (int64_t)(hashed >> 32) & mask;
  for (; source->hashes[place] != NONE; place = (place + 1) & mask) {
    int64_t found = source->hashes[place], other = source->end_row[found];
    if (found >= begin && source->peer[other] == source->peer[row] && source->tag[other] == source->tag[row] &&
        source->size[other] == source->size[row] && source->end[source->like[other]] == end)
      return found;
  }
  source->hashes[place] = (int32_t)used;
  source->end_row[used] = (int32_t)row;
  return used;
}

/* Write a program's operations, but for what waits for what; how many ends there are now. */
static int64_t write_rows(struct engine *engine, struct table_columns *source, int64_t program, int64_t op0,
                          int64_t used) {
  int64_t begin = used, base = source->first[program];
  for (int64_t row = base; row < source->first[program + 1]; row++) {
    int64_t like = source->like[row];
    struct operation *one = &engine->ops[op0 + row - base];
    one->kind = source->kind[like];
    one->ahead = source->ahead[like];
    one->duration = source->duration[row];
    one->size = source->size[row];
    one->lane = source->lane[source->stream[like]];
    one->number = (int32_t)(row - base);
    if (source->end[like] == NONE) continue;
    int64_t number = find_end(source, row, begin, used);
    used = most(used, number + 1);
    one->ref = (int32_t)(number - begin);
  }
  return used;
}

/* Count what each operation waits for (`waits`) and what waits for it (`last`) in an iteration; NONE, or which
 * dependency is none. */
static int64_t count_waits(struct engine *engine, struct table_columns *source, int64_t program, int64_t op0) {
  int64_t base = source->first[program], length = source->first[program + 1] - base;
  for (int64_t number = 0; number < length; number++) {
    int64_t row = base + number;
    for (int64_t k = source->dep_first[row]; k < source->dep_first[row + 1]; k++) {
      int64_t other = source->dep[k];
      if (other < 0 || other >= length || other == number) return k;
      if (source->seen[base + other] == row + 1) continue; /* each once, however often it is said */
      source->seen[base + other] = (int32_t)(row + 1);
      engine->ops[op0 + number].waits++;
      engine->ops[op0 + other].last++;
    }
  }
  return NONE;
}

/* Find what depends on nothing, and has it wait for its iteration; how many these are. */
static int64_t write_roots(struct engine *engine, int64_t op0, int64_t length, int64_t root0) {
  int64_t roots = 0;
  for (int64_t number = 0; number < length; number++) {
    struct operation *one = &engine->ops[op0 + number];
    if (one->waits > 0) continue;
    one->waits = 1;
    engine->roots[root0 + roots++] = (int32_t)number;
  }
  return roots;
}

/* Count dependencies on iterations before, from `lagged` on, of a program whose rows end at `end`; where the next
 * program's begin. */
static int64_t count_lagged(struct engine *engine, const struct table_columns *source, int64_t lagged, int64_t base,
                            int64_t end, int64_t op0) {
  for (; lagged < source->lagged_rows && source->lagged[3 * lagged] < end; lagged++) {
    engine->ops[op0 + source->lagged[3 * lagged] - base].waits++;
    engine->ops[op0 + source->lagged[3 * lagged + 1]].last++;
  }
  return lagged;
}

static inline void add_successor(struct engine *engine, struct operation *one, int64_t op) {
  engine->successors[one->last++] = (int32_t)op;
}

/* Write what follows each operation, in every slot; where the next program's successors begin. */
static int64_t write_successors(struct engine *engine, struct table_columns *source, int64_t program, int64_t op0,
                                int64_t lagged, int64_t slots, int64_t successor0) {
  int64_t base = source->first[program], length = source->first[program + 1] - base;
  struct operation *ops = engine->ops + op0;
  for (int64_t op = length; op < slots * length; op++) {
    ops[op] = ops[op % length];
    ops[op].slot = (int32_t)(op / length);
  }
  for (int64_t op = 0; op < slots * length; op++) {
    ops[op].first = (int32_t)successor0;
    successor0 += ops[op].last;
    ops[op].last = ops[op].first;
  }
  for (int64_t number = 0; number < length; number++) {
    int64_t row = base + number;
    for (int64_t k = source->dep_first[row]; k < source->dep_first[row + 1]; k++) {
      int64_t other = source->dep[k];
      if (source->seen[base + other] == -1 - row) continue;
      source->seen[base + other] = (int32_t)(-1 - row);
      for (int64_t slot = 0; slot < slots; slot++)
        add_successor(engine, &ops[slot * length + other], slot * length + number);
    }
  }
  for (; lagged < source->lagged_rows && source->lagged[3 * lagged] < base + length; lagged++) {
    int64_t number = source->lagged[3 * lagged] - base, other = source->lagged[3 * lagged + 1];
    int64_t lag = source->lagged[3 * lagged + 2];
    for (int64_t slot = 0; slot < slots; slot++) {
      add_successor(engine, &ops[slot * length + other], (slot + lag) % slots * length + number);
      /* What lies before the first iteration has ended, as it were, when that is new. */
      if (lag > slot) ops[slot * length + number].early++;
    }
  }
  return successor0;
}

/* Write a job's programs from these rows of the columns on, which are zeros; NONE, or which dependency is not another
 * operation of its program. */
int64_t write_programs(struct engine *engine, struct table_columns *source, const struct first_rows *first,
                       int64_t slots) {
  struct first_rows at = *first;
  int64_t lagged = 0, ends = 0;
  for (int64_t program = 0; program < source->first_len - 1; program++) {
    int64_t base = source->first[program], length = source->first[program + 1] - base;
    int64_t lanes = write_lanes(engine, source, program, at.lane, slots);
    ends = write_rows(engine, source, program, at.op, ends);
    int64_t wrong = count_waits(engine, source, program, at.op);
    if (wrong != NONE) return wrong;
    int64_t roots = write_roots(engine, at.op, length, at.root);
    int64_t later = count_lagged(engine, source, lagged, base, base + length, at.op);
    at.successor = write_successors(engine, source, program, at.op, lagged, slots, at.successor);
    int32_t ahead = 0;
    for (int64_t op = at.op; op < at.op + length; op++) ahead += engine->ops[op].ahead > 0;
    engine->programs[at.program + program] = (struct program){
        .op0 = (int32_t)at.op, .ops = (int32_t)length, .lanes = (int32_t)lanes, .lane0 = (int32_t)at.lane,
        .roots = (int32_t)roots, .root0 = (int32_t)at.root, .ahead = ahead};
    lagged = later;
    at.op += slots * length;
    at.lane += lanes;
    at.root += roots;
    source->end_first[program + 1] = (int32_t)ends;
  }
  return NONE;
}

/* -- ranks -------------------------------------------------------------------------------------------------------------- */

/* Add up the rows of a job's ranks. `program0` is the first of its programs. For each of them, `groups` says how many
 * groups its collectives name, and its ends of messages begin at `end_first[program]`. */
void count_rank_rows(const struct engine *engine, int64_t program0, int64_t ranks, const int32_t *program_of,
                     int64_t slots, const int32_t *groups, const int32_t *end_first, int64_t *counts) {
  for (int64_t rank = 0; rank < ranks; rank++) {
    int64_t program = program_of[rank];
    counts[ROWS_OF_CELLS] += slots * engine->programs[program0 + program].ops;
    counts[ROWS_OF_SLOTS] += slots;
    counts[ROWS_OF_LANES] += engine->programs[program0 + program].lanes;
    counts[ROWS_OF_MEMBERS] += groups[program];
    counts[ROWS_OF_PORTS] += end_first[program + 1] - end_first[program];
  }
}

/* Write a job's ranks, whose rows of tables begin at `first`; the job's own row is there. What no rank has met yet is
 * unknown, not row 0 of a table. */
void write_ranks(struct engine *engine, int64_t job_number, int64_t program0, int64_t ranks, const int32_t *program_of,
                 int64_t slots, const int32_t *groups, const int32_t *end_first, const int64_t *first, int64_t paced) {
  const struct job *job = &engine->jobs[job_number];
  int64_t cell = first[ROWS_OF_CELLS], slot = first[ROWS_OF_SLOTS], lane = first[ROWS_OF_LANES];
  int64_t member = first[ROWS_OF_MEMBERS], port = first[ROWS_OF_PORTS];
  for (int64_t number = 0; number < ranks; number++) {
    int64_t program = program_of[number];
    const struct program *its = &engine->programs[program0 + program];
    struct rank *rank = &engine->ranks[job->rank0 + number];
    rank->program = (int32_t)(program0 + program);
    rank->job = (int32_t)job_number;
    rank->number = (int32_t)number;
    rank->iteration = NONE;
    rank->finish = NONE;
    rank->cell0 = cell;
    rank->pace0 = paced ? cell : NONE;
    rank->slot0 = (int32_t)slot;
    rank->lane0 = (int32_t)lane;
    rank->ref0 = (int32_t)member;
    rank->port0 = (int32_t)port;
    slot += slots;
    port += end_first[program + 1] - end_first[program];
    for (int64_t k = 0; k < slots * its->ops; k++) engine->cells[cell++].started = NONE;
    for (int64_t k = 0; k < its->lanes; k++) engine->lanes[lane++].busy = NONE;
    for (int64_t k = 0; k < its->ops && its->ahead > 0; k++) {
      const struct operation *one = &engine->ops[its->op0 + k];
      if (one->ahead == 0) continue;
      engine->lanes[rank->lane0 + one->lane].owed = one->ahead;
      engine->lanes[rank->lane0 + one->lane].ahead += job->iterations;
    }
    for (int64_t k = 0; k < groups[program]; k++) engine->members[member++] = (struct member){NONE, NONE};
  }
  for (int64_t k = 0; k < job->iterations; k++) engine->traits[job->trait0 + k] = NONE;
}

/* -- ports -------------------------------------------------------------------------------------------------------------- */

/* Who is at the other end of a rank's operation; NONE: nobody. */
static int64_t find_peer(const struct table_columns *source, const struct meetings *found, int64_t row, int64_t rank) {
  int64_t peer = source->peer[row], like = source->like[row];
  if (peer < 0 && found->axis_size[like] > 0) {
    int64_t place = rank / found->stride[like] % found->axis_size[like] + found->offset[like];
    if (place >= 0 && place < found->axis_size[like]) peer = rank + found->offset[like] * found->stride[like];
  }
  return peer >= 0 && peer < found->program_of_len && peer != rank ? peer : NONE;
}

/* The number of where messages meet, of `used` that are known; that is the number of a new one. */
static int64_t find_channel(struct meetings *found, int64_t sender, int64_t receiver, int64_t tag, int64_t used) {
  int64_t mask = found->hashes_len - 1;
  uint64_t hashed = hash_step(hash_step(hash_step(0, sender), receiver), tag);
  int64_t place = (int64_t)(hashed >> 32) & mask;
  for (; found->hashes[place] != NONE; place = (place + 1) & mask) {
    int64_t one = found->hashes[place];
    if (found->tag[one] == tag && found->sender[one] == sender && found->receiver[one] == receiver) return one;
  }
  found->hashes[place] = (int32_t)used;
  found->sender[used] = (int32_t)sender;
  found->receiver[used] = (int32_t)receiver;
  found->tag[used] = tag;
  return used;
}

/* Write a job's ports, of ranks from `rank0` on; `counts`: how many channels it has, from `channel0` on, and how many
 * flows go out. */
void write_ports(struct engine *engine, struct table_columns *source, struct meetings *found, int64_t rank0,
                 int64_t channel0, int64_t rendezvous, int64_t *counts) {
  int64_t channels = 0, flows = 0;
  for (int64_t rank = 0; rank < found->program_of_len; rank++) {
    int64_t program = found->program_of[rank], begin = source->end_first[program];
    for (int64_t end = begin; end < source->end_first[program + 1]; end++) {
      int64_t port = engine->ranks[rank0 + rank].port0 + end - begin, row = source->end_row[end];
      int64_t peer = find_peer(source, found, row, rank), like = source->like[row];
      struct rank_port *one = &engine->ports[port];
      *one = (struct rank_port){NONE, NONE, (int32_t)peer, 0};
      /* Without a peer it stays without a channel: a rank that reaches it is told so then, if it ever does. */
      if (peer == NONE) continue;
      bool sends = source->kind[like] == OP_SEND;
      int64_t number =
          find_channel(found, sends ? rank : peer, sends ? peer : rank, source->tag[row], channels);
      channels = most(channels, number + 1);
      one->channel = (int32_t)(channel0 + number);
      if (!sends && !rendezvous) continue;
      found->port[flows] = (int32_t)port;
      found->source[flows] = (int32_t)rank;
      found->target[flows] = (int32_t)peer;
      found->size_bytes[flows] = sends ? source->size[row] : REQUEST_BYTES;
      found->channel[flows] = sends ? found->channel_of[like] : 0;
      flows++;
    }
  }
  counts[0] = channels;
  counts[1] = flows;
}
