/* Dependencies of flat flows, for a server whose network doesn't follow them (cosim/protocol/dependency_tracker.py). */
#include "kernel.h"

/* Edges that served are used again: their number is that of flows that wait, not of all that ever did. */
static int64_t take_edge(struct edges *edges) {
  int64_t at = edges->unused;
  if (at == NONE) {
    RESERVE(edges, edges, edges->used + 1);
    at = edges->used++;
  } else {
    edges->unused = edges->edges[at].next;
  }
  edges->live++;
  return at;
}

static void give_edge(struct edges *edges, int64_t at) {
  edges->edges[at].next = edges->unused;
  edges->unused = at;
  edges->live--;
}

/* Enter dependencies of flows, by slot; how many, in `out`, wait for nothing that is not known. */
int64_t await_others(struct edges *edges, struct awaited_flow *flows, int64_t count, const int64_t *slots,
                     const int64_t *ptr, const int64_t *others, const int8_t *kinds, int64_t *out) {
  CATCH_OUT_OF_MEMORY;
  int64_t found = 0;
  for (int64_t k = 0; k < count; k++) {
    struct awaited_flow *flow = &flows[slots[k]];
    for (int64_t at = ptr[k]; at < ptr[k + 1]; at++) {
      struct awaited_flow *other = &flows[others[at]];
      int64_t known = kinds[at] == COMPLETED ? other->time : other->start;
      if (known >= 0) { /* taken into account at once, and leaves no edge behind */
        flow->ready = most(flow->ready, known);
        continue;
      }
      flow->waits++;
      int64_t edge = take_edge(edges);
      edges->edges[edge] = (struct edge){slots[k], other->first, kinds[at]};
      other->first = edge;
    }
    if (ptr[k + 1] > ptr[k] && flow->waits == 0) out[found++] = slots[k];
  }
  return found;
}

/* Flows, by slot, completed or started; how many, in `out`, wait no more. Edges that served go. */
int64_t tell_awaiting(struct edges *edges, struct awaited_flow *flows, int64_t count, const int64_t *slots,
                      const int64_t *times, int64_t kind, int64_t *out) {
  int64_t found = 0;
  for (int64_t k = 0; k < count; k++) {
    /* A flow's list is taken apart: edges that wait for its other time are put together again. */
    int64_t kept = NONE, following;
    for (int64_t at = flows[slots[k]].first; at != NONE; at = following) {
      struct edge *edge = &edges->edges[at];
      following = edge->next;
      if (edge->kind != kind) {
        edge->next = kept;
        kept = at;
        continue;
      }
      struct awaited_flow *to = &flows[edge->to];
      to->ready = most(to->ready, times[k]);
      if (--to->waits == 0) out[found++] = edge->to;
      give_edge(edges, at);
    }
    flows[slots[k]].first = kept;
  }
  return found;
}
