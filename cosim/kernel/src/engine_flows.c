/* What the engine's files share: heaps of what comes next, flow groups and their flows. */
#include "kernel.h"

/* -- heaps of events by (time, high, low) ------------------------------------------------------------------------- */

static inline bool is_due_before(const struct due *one, const struct due *other) {
  if (one->time != other->time) return one->time < other->time;
  if (one->high != other->high) return one->high < other->high;
  return one->low < other->low;
}

/* Add an event to a heap of `count`. Those above slide down into the gap, one copy a level where swapping takes three.
 */
static void sift_due(struct due *heap, int64_t count, struct due one) {
  int64_t at = count;
  while (at > 0) {
    int64_t parent = (at - 1) >> 1;
    if (!is_due_before(&one, &heap[parent])) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = one;
}

#define PUSH_DUE(engine, heap, ...)                                                    \
  do {                                                                                 \
    RESERVE(engine, heap, (engine)->state.num_##heap + 1);                             \
    sift_due((engine)->heap, (engine)->state.num_##heap++, (struct due){__VA_ARGS__}); \
  } while (0)

/* Remove the first event of a heap of `count`; the new count. The last one sinks from the head to where it belongs. */
static int64_t pop_due(struct due *heap, int64_t count) {
  struct due last = heap[--count];
  int64_t at = 0;
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && is_due_before(&heap[child + 1], &heap[child])) child++;
    if (!is_due_before(&heap[child], &last)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return count;
}

/* An operation ends now, certain since `cause`; applied with all else that ends now. */
static void end_now(struct engine *engine, int64_t rank, int64_t op, int64_t now, int64_t cause) {
  PUSH_DUE(engine, ending, now, rank, op, cause, (int32_t)rank, (int32_t)op);
}

/* -- flow groups: opened and started for the network, let go of by both sides --------------------------------------- */

/* A job's flow group is opened: what it uses, where intervals may be repeated. */
static inline void claim_links(struct repeats *repeats, int64_t binding, int64_t job) {
  if (repeats == NULL) return;
  repeats->jobs[job].under_way++;
  RESERVE(repeats, claimed, binding + 1);
  if (repeats->claimed[binding]) return;
  repeats->claimed[binding] = repeats->state.stale = 1;
  RESERVE(repeats, claims, repeats->state.num_claims + 1);
  repeats->claims[repeats->state.num_claims++] = (struct claim){(int32_t)binding, (int32_t)job};
}

/* Open a flow group; its handle. */
static int64_t open_flows(struct engine *engine, int64_t binding, int64_t key_high, int64_t key_low, int32_t kind,
                          int64_t owner, int64_t iteration) {
  struct engine_state *state = &engine->state;
  int64_t handle = state->free_handle;
  state->under_way++;
  claim_links(engine->repeats, binding, key_high >> 51);
  if (handle == NONE) {
    RESERVE(engine, handles, state->handles_used + 1);
    handle = state->handles_used++;
  } else {
    state->free_handle = engine->handles[handle].next;
  }
  engine->handles[handle] = (struct flow_group){
      .key_high = key_high,
      .key_low = key_low,
      .left = engine->bindings[binding].flows,
      .binding = (int32_t)binding,
      .kind = kind,
      .owner = (int32_t)owner,
      /* The network's, until its last flow is counted, and the owner's, until it was told of all it waits for: either
       * may be the last. */
      .holds = 2,
  };
  RESERVE(engine, opened, state->num_opened + 1);
  engine->opened[state->num_opened++] = (struct opened){(int32_t)handle, (int32_t)iteration};
  return handle;
}

/* Start a given flow of a group: a rank's arrival, or a message. */
static void hand_over_start(struct engine *engine, int64_t handle, int64_t index, int64_t start, int64_t cause) {
  RESERVE(engine, starts, engine->state.num_starts + 1);
  engine->starts[engine->state.num_starts++] = (struct flow_start){index, start, cause, (int32_t)handle, 0};
}

/* The network reported every flow of a group, or the owner was told of all it waits for. */
static inline void let_flows_go(struct engine *engine, int64_t handle) {
  struct flow_group *one = &engine->handles[handle];
  if (--one->holds > 0) return;
  engine->state.under_way--;
  if (engine->repeats != NULL) engine->repeats->jobs[one->key_high >> 51].under_way--;
  one->next = (int32_t)engine->state.free_handle;
  engine->state.free_handle = handle;
}
