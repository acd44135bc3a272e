/* Flows that a client gives to a simulator elsewhere (cosim/protocol/injector.py), and messages of an advance: what
 * protobuf's compiler would make of Advance, written and read without an object for each. (The protocol's file has the
 * numbers of fields.) */
#include "kernel.h"

/* -- flows out ---------------------------------------------------------------------------------------------------- */

static int compare_places(const void *one, const void *other) {
  const struct given_place *a = one, *b = other;
  if (a->handle != b->handle) return a->handle < b->handle ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

static inline struct given_flow *given_at(struct given_flows *given, int64_t id) {
  return &given->flows[given->place[id >> PAGE_BITS] + (id & ((1 << PAGE_BITS) - 1))];
}

/* Number flows from `id` on, by handle and index, not by how the engine found them, and put what they are behind the
 * first `already` of a request; NONE, or the place of one of a handle that isn't open, or beyond its group's flows.
 * `row` is each one's in its table. */
int64_t give_flows(struct given_flows *given, struct advance_request *request, int64_t already, int64_t id,
                   int64_t count, const int32_t *handle, const int64_t *index, const int64_t *row,
                   const int64_t *start, const int64_t *cause) {
  CATCH_OUT_OF_MEMORY;
  RESERVE(given, order, count);
  bool in_order = true;
  for (int64_t k = 0; k < count; k++) {
    if (handle[k] < 0 || handle[k] >= given->groups_len || given->groups[handle[k]].left == 0) return k;
    if (index[k] < 0 || index[k] >= given->groups[handle[k]].flows) return k;
    given->order[k] = (struct given_place){index[k], row[k], start[k], cause[k], handle[k], 0};
    in_order = in_order && (k == 0 || compare_places(&given->order[k - 1], &given->order[k]) < 0);
  }
  if (!in_order) qsort(given->order, (size_t)count, sizeof *given->order, compare_places);
  request->first_id = id - already;
  request->count = already + count;
  RESERVE(request, flows, already + count);
  for (int64_t k = 0; k < count; k++) {
    const struct given_place *one = &given->order[k];
    const struct open_group *group = &given->groups[one->handle];
    const struct given_row *what = &given->rows[group->row + one->row];
    request->flows[already + k] = (struct flat_flow){
        .key_high = group->key_high,
        .key_low = group->key_low + one->index,
        .size_bytes = what->size,
        .start_ps = one->start,
        .cause_ps = one->cause,
        .coflow = group->coflow,
        .coflow_bytes = group->coflow_bytes,
        .reaction_delay_ps = what->reaction,
        .delay_ps = what->delay,
        .weight = group->weight,
        .src = given->endpoints[group->endpoint + what->src],
        .dst = given->endpoints[group->endpoint + what->dst],
        .channel = what->channel + group->channel,
        .priority = group->priority,
        .job = group->job,
    };
    *given_at(given, id + k) = (struct given_flow){one->index, what->reaction, one->start, one->handle, 0};
  }
  return NONE;
}

/* -- messages ----------------------------------------------------------------------------------------------------- */

enum wire { VARINT, FIXED64, BYTES, FIXED32 = 5 };

static int64_t size_of_varint(uint64_t value) {
  int64_t size = 1;
  for (; value >= 0x80; value >>= 7) size++;
  return size;
}

static int8_t *put_varint(int8_t *to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = (int8_t)(value | 0x80);
  *to++ = (int8_t)value;
  return to;
}

static int8_t *put_fixed(int8_t *to, uint64_t value) {
  for (int k = 0; k < 8; k++) *to++ = (int8_t)(value >> 8 * k);
  return to;
}

static inline int8_t *put_head(int8_t *to, uint64_t field, enum wire wire) { return put_varint(to, field << 3 | wire); }

static int8_t *put_bytes(int8_t *to, const int8_t *bytes, int64_t count) {
  if (count > 0) memcpy(to, bytes, (size_t)count);
  return to + count;
}

/* A number that is 0 is left out. */
static int64_t size_of_number(uint64_t field, uint64_t value) {
  return value == 0 ? 0 : size_of_varint(field << 3) + size_of_varint(value);
}

static int8_t *put_number(int8_t *to, uint64_t field, uint64_t value) {
  return value == 0 ? to : put_varint(put_head(to, field, VARINT), value);
}

/* A field of so many bytes; without any it is left out. */
static int64_t size_of_field(uint64_t field, int64_t bytes) {
  return bytes == 0 ? 0 : size_of_varint(field << 3) + size_of_varint((uint64_t)bytes) + bytes;
}

#define FLOW(field, wire, name, by_default) \
  { field, wire, offsetof(struct flat_flow, name), sizeof ((struct flat_flow *)0)->name, by_default }

enum { FLOW_COLUMNS = 15 };

/* Columns of Flows: a weight of 1 is the default by its bits. */
static const struct flow_column {
  uint64_t field;
  enum wire wire;
  size_t place, size;
  uint64_t by_default;
} flow_columns[FLOW_COLUMNS] = {
    FLOW(3, FIXED64, key_high, 0),
    FLOW(4, FIXED64, key_low, 0),
    FLOW(5, VARINT, src, 0),
    FLOW(6, VARINT, dst, 0),
    FLOW(7, FIXED64, size_bytes, 0),
    FLOW(8, VARINT, channel, 0),
    FLOW(9, FIXED64, start_ps, UINT64_MAX),
    FLOW(10, FIXED64, cause_ps, UINT64_MAX),
    FLOW(11, VARINT, priority, 0),
    FLOW(12, FIXED64, weight, 0x3FF0000000000000),
    FLOW(13, VARINT, job, 0),
    FLOW(14, VARINT, coflow, 0),
    FLOW(15, FIXED64, coflow_bytes, 0),
    FLOW(16, FIXED64, reaction_delay_ps, 0),
    FLOW(17, FIXED64, delay_ps, 0),
};

static inline uint64_t value_in(const struct flat_flow *flow, const struct flow_column *column) {
  const char *place = (const char *)flow + column->place;
  if (column->size == sizeof(uint32_t)) {
    uint32_t value;
    memcpy(&value, place, sizeof value);
    return value;
  }
  uint64_t value;
  memcpy(&value, place, sizeof value);
  return value;
}

/* How many entries each column has, of how many bytes, and the same of dependencies. */
struct flows_plan {
  int64_t entries[FLOW_COLUMNS], bytes[FLOW_COLUMNS];
  int64_t ends, edges, kinds;
  int64_t total;
};

static struct flows_plan plan_flows(const struct advance_request *request, int64_t low, int64_t high) {
  struct flows_plan plan = {.total = 0};
  int64_t count = high - low;
  const struct flat_flow *flows = request->flows + low;
  if (count == 0) return plan;
  plan.total = size_of_number(1, (uint64_t)count) + size_of_number(2, (uint64_t)(request->first_id + low));
  for (int c = 0; c < FLOW_COLUMNS; c++) {
    const struct flow_column *column = &flow_columns[c];
    uint64_t first = value_in(flows, column);
    int64_t same = 1, bytes = 0;
    while (same < count && value_in(&flows[same], column) == first) same++;
    int64_t entries = same < count ? count : first != column->by_default;
    if (column->wire == FIXED64) {
      bytes = 8 * entries;
    } else {
      for (int64_t k = 0; k < entries; k++) bytes += size_of_varint(value_in(&flows[k], column));
    }
    plan.entries[c] = entries;
    plan.bytes[c] = bytes;
    plan.total += size_of_field(column->field, bytes);
  }
  if (request->dependency_ptr_len == 0) return plan;
  const int64_t *ptr = request->dependency_ptr;
  plan.edges = ptr[high] - ptr[low];
  if (plan.edges == 0) return plan;
  for (int64_t k = low + 1; k <= high; k++) plan.ends += size_of_varint((uint64_t)(ptr[k] - ptr[low]));
  /* Of kinds that are all completions nothing is said. */
  for (int64_t k = ptr[low]; k < ptr[high] && plan.kinds == 0; k++)
    if (request->dependency_kind[k] != 0) plan.kinds = plan.edges;
  plan.total += size_of_field(18, plan.ends) + size_of_field(19, 8 * plan.edges) + size_of_field(20, plan.kinds);
  return plan;
}

static int8_t *put_packed(int8_t *to, uint64_t field, int64_t bytes) {
  return put_varint(put_head(to, field, BYTES), (uint64_t)bytes);
}

static int8_t *put_flows(int8_t *to, const struct advance_request *request, int64_t low, int64_t high,
                         const struct flows_plan *plan) {
  to = put_number(to, 1, (uint64_t)(high - low));
  to = put_number(to, 2, (uint64_t)(request->first_id + low));
  for (int c = 0; c < FLOW_COLUMNS; c++) {
    const struct flow_column *column = &flow_columns[c];
    if (plan->entries[c] == 0) continue;
    to = put_packed(to, column->field, plan->bytes[c]);
    for (int64_t k = low; k < low + plan->entries[c]; k++) {
      uint64_t value = value_in(&request->flows[k], column);
      to = column->wire == FIXED64 ? put_fixed(to, value) : put_varint(to, value);
    }
  }
  if (plan->edges == 0) return to;
  const int64_t *ptr = request->dependency_ptr;
  to = put_packed(to, 18, plan->ends);
  for (int64_t k = low + 1; k <= high; k++) to = put_varint(to, (uint64_t)(ptr[k] - ptr[low]));
  to = put_packed(to, 19, 8 * plan->edges);
  for (int64_t k = ptr[low]; k < ptr[high]; k++) to = put_fixed(to, (uint64_t)request->dependency_id[k]);
  if (plan->kinds == 0) return to;
  to = put_packed(to, 20, plan->kinds);
  for (int64_t k = ptr[low]; k < ptr[high]; k++) *to++ = (int8_t)(request->dependency_kind[k] + 1);
  return to;
}

/* Bytes of a request's flows `low` to `high` - 1, as a field of Advance. */
int64_t size_flows(const struct advance_request *request, int64_t low, int64_t high) {
  return size_of_field(6, plan_flows(request, low, high).total);
}

/* Write a SessionRequest of these flows and all else that the request has, without a sequence number; its bytes. */
int64_t write_advance(struct advance_request *request, int64_t low, int64_t high, int64_t more, int64_t horizon,
                      int64_t budget, int64_t oldest) {
  CATCH_OUT_OF_MEMORY;
  struct flows_plan plan = plan_flows(request, low, high);
  int64_t size = size_of_number(2, (uint64_t)more) + size_of_number(3, (uint64_t)horizon) +
                 size_of_number(4, (uint64_t)budget) + request->paths_len + size_of_field(6, plan.total) +
                 request->starts_len + size_of_number(8, (uint64_t)oldest) + request->changes_len;
  int64_t whole = 1 + size_of_varint((uint64_t)size) + size;
  RESERVE(request, bytes, whole);
  int8_t *to = put_packed(request->bytes, 2, size);
  to = put_number(to, 2, (uint64_t)more);
  to = put_number(to, 3, (uint64_t)horizon);
  to = put_number(to, 4, (uint64_t)budget);
  to = put_bytes(to, request->paths, request->paths_len);
  if (plan.total > 0) to = put_flows(put_packed(to, 6, plan.total), request, low, high, &plan);
  to = put_bytes(to, request->starts, request->starts_len);
  to = put_number(to, 8, (uint64_t)oldest);
  put_bytes(to, request->changes, request->changes_len);
  return whole;
}

/* -- answers ------------------------------------------------------------------------------------------------------ */

struct wire_reader {
  const uint8_t *at, *end;
};

static bool read_varint(struct wire_reader *from, uint64_t *value) {
  *value = 0;
  for (int shift = 0; shift < 70 && from->at < from->end; shift += 7) {
    uint8_t byte = *from->at++;
    if (shift < 64) *value |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

static bool read_fixed(struct wire_reader *from, uint64_t *value) {
  if (from->end - from->at < 8) return false;
  *value = 0;
  for (int k = 0; k < 8; k++) *value |= (uint64_t)from->at[k] << 8 * k;
  from->at += 8;
  return true;
}

/* A field: its number, how it is written, its number's value or what it holds. */
static bool read_field(struct wire_reader *from, uint64_t *field, uint64_t *wire, uint64_t *value,
                       struct wire_reader *held) {
  uint64_t head;
  if (!read_varint(from, &head) || head > UINT32_MAX) return false;
  *field = head >> 3;
  *wire = head & 7;
  if (*field == 0) return false;
  if (*wire == VARINT) return read_varint(from, value);
  if (*wire == FIXED64) return read_fixed(from, value);
  uint64_t size = 4;
  if (*wire == BYTES ? !read_varint(from, &size) : *wire != FIXED32) return false;
  if (size > (uint64_t)(from->end - from->at)) return false;
  *held = (struct wire_reader){from->at, from->at + size};
  from->at += size;
  return true;
}

/* Add numbers of a column, one or many packed, to those from `first` on, of which `count` are there. */
#define READ_COLUMN(answer, name, first, count)                                             \
  do {                                                                                      \
    int64_t come = wire == FIXED64 ? 1 : (int64_t)(held.end - held.at) / 8;                 \
    if (wire == BYTES && (held.end - held.at) % 8 != 0) return false;                       \
    if (wire != BYTES && wire != FIXED64) return false;                                     \
    RESERVE(answer, name, (first) + (count) + come);                                        \
    for (int64_t k = 0; k < come; k++) {                                                    \
      if (wire == BYTES) read_fixed(&held, &value);                                         \
      (answer)->name[(first) + (count)++] = (int64_t)value;                                 \
    }                                                                                       \
  } while (0)

static bool read_digest(struct advance_answer_state *state, struct wire_reader from) {
  uint64_t field, wire, value = 0;
  struct wire_reader held = {NULL, NULL};
  while (from.at < from.end) {
    if (!read_field(&from, &field, &wire, &value, &held)) return false;
    if ((field == 1 || field == 2) && wire == FIXED64) state->digest[field - 1] = value;
  }
  state->has_digest = 1;
  return true;
}

enum { IDS, STARTS, TIMES, CAUSES, ANSWER_COLUMNS };

/* Read an Advanced, and keep it without its digest and times. */
static bool read_advanced(struct advance_answer *answer, struct wire_reader from, int64_t *counts) {
  struct advance_answer_state *state = &answer->state;
  int64_t first = state->count;
  while (from.at < from.end) {
    uint64_t field, wire, value = 0;
    struct wire_reader held = {NULL, NULL};
    const uint8_t *began = from.at;
    if (!read_field(&from, &field, &wire, &value, &held)) return false;
    if (field == 5) {
      READ_COLUMN(answer, id, first, counts[IDS]);
    } else if (field == 6) {
      READ_COLUMN(answer, start, first, counts[STARTS]);
    } else if (field == 7) {
      READ_COLUMN(answer, time, first, counts[TIMES]);
    } else if (field == 13) {
      READ_COLUMN(answer, cause, first, counts[CAUSES]);
    } else if (field == 9) {
      if (wire != BYTES || !read_digest(state, held)) return false;
      continue;
    } else if (wire == VARINT) {
      if (field == 1) state->sequence = (int64_t)value;
      if (field == 2) state->more = value != 0;
      if (field == 3) state->granted = (int64_t)value;
      if (field == 8) state->credit = (int64_t)value;
      if (field == 10 || field == 11) continue;
    }
    int64_t size = from.at - began;
    RESERVE(answer, kept, state->kept_end + size);
    memcpy(answer->kept + state->kept_end, began, (size_t)size);
    state->kept_end += size;
  }
  return true;
}

/* Bytes before what is kept of an answer: room for its head. */
enum { HEAD = 11 };

/* Read one more part of an answer: enum advance_reading. */
int64_t read_answer(struct advance_answer *answer, const int8_t *bytes, int64_t length) {
  CATCH_OUT_OF_MEMORY;
  struct advance_answer_state *state = &answer->state;
  struct wire_reader from = {(const uint8_t *)bytes, (const uint8_t *)bytes + length};
  int64_t counts[ANSWER_COLUMNS] = {0}, first = state->count;
  bool is_advanced = false;
  *state = (struct advance_answer_state){.count = first, .is_uneven = state->is_uneven, .kept_end = HEAD};
  RESERVE(answer, kept, HEAD);
  while (from.at < from.end) {
    uint64_t field, wire, value;
    struct wire_reader held = {NULL, NULL};
    if (!read_field(&from, &field, &wire, &value, &held)) return IS_BROKEN;
    if (field != 2) continue;
    is_advanced = true;
    if (wire != BYTES || !read_advanced(answer, held, counts)) return IS_BROKEN;
  }
  if (!is_advanced) return IS_NOT_ADVANCED;
  int64_t size = state->kept_end - HEAD;
  state->kept_begin = HEAD - 1 - size_of_varint((uint64_t)size);
  put_packed(answer->kept + state->kept_begin, 2, size);
  int64_t count = counts[IDS];
  RESERVE(answer, cause, first + count);
  if (counts[CAUSES] == 0 && counts[TIMES] == count && count > 0)
    memcpy(answer->cause + first, answer->time + first, (size_t)count * sizeof *answer->cause);
  else if (counts[CAUSES] != count)
    state->is_uneven = 1;
  if (counts[STARTS] != count || counts[TIMES] != count) state->is_uneven = 1;
  if (!state->is_uneven) state->count += count;
  return IS_ADVANCED;
}

/* What is wrong with a completion; UNTRUES: nothing. */
static enum untrue judge(const struct given_flow *flow, int64_t since, int64_t granted, int64_t start, int64_t time,
                         int64_t cause) {
  if (flow->done) return DONE_TWICE;
  /* At the old grant itself is right: an instant may take several rounds. */
  if (time < since || time > granted) return OUT_OF_GRANT;
  if (start > time || (flow->start != NONE && flow->start > start)) return OUT_OF_ORDER;
  if (start < 0) return BEFORE_BEGIN;
  if (cause > time) return CERTAIN_AFTER;
  if (time + least(flow->reaction, NEVER - time) < granted) return PAST_REACTION;
  return UNTRUES;
}

/* Enter completions of an answer to an advance from `since` on, of flows of which `known` were given; how many groups
 * ended, which `ended` lists, or where one is wrong NONE - (UNTRUES * its number + what is). `columns` become index,
 * start, time and cause, one after the other. */
int64_t complete_given(struct given_flows *given, int64_t known, int64_t since, const struct advance_answer *answer,
                       int32_t *handle, int64_t *columns) {
  CATCH_OUT_OF_MEMORY;
  int64_t ended = 0, count = answer->state.count;
  given->pages_done = 0;
  for (int64_t k = 0; k < count; k++) {
    int64_t id = answer->id[k], page = id >> PAGE_BITS;
    int64_t start = answer->start[k], time = answer->time[k], cause = answer->cause[k];
    if (id < 0 || id >= known || given->place[page] == NONE) return NONE - (UNTRUES * k + NOT_OPEN);
    struct given_flow *flow = given_at(given, id);
    enum untrue found = judge(flow, since, answer->state.granted, start, time, cause);
    if (found != UNTRUES) return NONE - (UNTRUES * k + found);
    struct open_group *group = &given->groups[flow->handle];
    flow->done = 1;
    given->pages_done += --given->left[page] == 0;
    if (--group->left == 0) {
      RESERVE(given, ended, ended + 1);
      given->ended[ended++] = flow->handle;
    }
    handle[k] = flow->handle;
    columns[k] = flow->index;
    columns[count + k] = start;
    columns[2 * count + k] = time;
    columns[3 * count + k] = cause;
    /* By what a flow is, not by its id: the digest is the same for every way of cutting a run into calls. */
    int64_t key_low = (int64_t)((uint64_t)group->key_low + (uint64_t)flow->index);
    fold_flow(given->state.digest, group->key_high, key_low, time);
  }
  return ended;
}
