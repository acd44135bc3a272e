/* Last bytes that stand in the queues of their paths.
 *
 * Where a message goes by one path, the queues say when its last byte will arrive; not if a port on the way is paused
 * now and then, or serves other classes first. Where it goes by several paths they don't: many flows queue and end
 * together, so that queues don't go on as they did. In these cases the last byte of each subflow is put at the end of
 * its port's queue. When the port has served all that was before it, it goes on to the next port with a queue. The
 * flow is complete when all its last bytes have arrived. So no flow ends before the links of its paths can have sent
 * it.
 *
 * A subflow that has less than half a packet of the message doesn't hold it back: most often no packet goes there.
 */
#include "kernel.h"

#define LAST_DUST 0.5 /* bytes; less is rounding: a last byte leaves when fewer are before it */

/* A row for the last byte of flow f on subflow s. */
static int64_t new_last(struct congestion_state *fluid, int64_t f, int64_t s) {
  struct congestion_counts *counts = &fluid->counts;
  int64_t b = counts->free_last;
  if (b != NONE) {
    counts->free_last = fluid->lasts[b].next;
  } else {
    b = counts->lasts_used++;
    RESERVE(fluid, lasts, counts->lasts_used);
  }
  fluid->flows[f].lasts++;
  fluid->lasts[b].flow = (int32_t)f;
  fluid->lasts[b].subflow = (int32_t)s;
  return b;
}

/* Flow f of connection c is complete at `at`, or when its links can have brought it. */
static void end_flow(struct core *core, struct congestion_state *fluid, int64_t f, int64_t c, int64_t at, int64_t now) {
  struct sent_flow *flow = &fluid->flows[f];
  int64_t path = core->store->groups[flow->handle].path + flow->row;
  at = not_before_links(core, fluid, path, core->store->rows[flow->row].size, at);
  fluid->conns[c].arrived = at;
  flow->next = (int32_t)fluid->counts.free_flow;
  fluid->counts.free_flow = f;
  complete(core, flow->handle, flow->rep, flow->row, flow->origin, at, now);
}

/* Connection c, which has nothing else to send, sends again what was lost of flow f on its way through the queues. */
static void take_again(struct core *core, struct congestion_state *fluid, int64_t f, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  one->flow = one->tail = (int32_t)f;
  fluid->flows[f].next = NONE;
  one->sent = take_flow(core, fluid, c);
  one->counted = (int64_t)one->size;
  one->remaining = 0.0;
  send_again(one, one->owed);
  if (fluid->settings.balanced)
    choose_at_end(fluid->balance, c, true); /* and sends when it has chosen */
  else
    send_flow(core, fluid, c, now);
}

/* A last byte of flow f of connection c has arrived; with the last of them the flow is complete. */
static void last_is_there(struct core *core, struct congestion_state *fluid, int64_t f, int64_t c, int64_t now) {
  struct sent_flow *flow = &fluid->flows[f];
  if (--flow->lasts > 0) return;
  struct connection *one = &fluid->conns[c];
  if (!fluid->settings.lossless) {
    look_ahead(core, fluid, c, now);
    count_losses(fluid, c, now);
    if (one->flow == NONE && one->owed > LEAST_OWED) {
      take_again(core, fluid, f, c, now);
      return;
    }
  }
  end_flow(core, fluid, f, c, most(flow->arrives, one->arrived), now);
}

/* Last byte b goes to the end of a port's queue. */
static void queue_last(struct congestion_state *fluid, int64_t b, int64_t p, int64_t hop) {
  struct port *port = &fluid->ports[p];
  struct last_byte *last = &fluid->lasts[b];
  last->hop = (int32_t)hop;
  last->leaves = port->served + port->queue;
  last->next = NONE;
  if (port->head == NONE)
    port->head = (int32_t)b;
  else
    fluid->lasts[port->tail].next = (int32_t)b;
  port->tail = (int32_t)b;
  touch_port(fluid, p);
}

/* Last byte b comes to hop `first` of its subflow, or, past its last, arrives. */
static void follow_last(struct core *core, struct congestion_state *fluid, int64_t b, int64_t first, int64_t now) {
  struct last_byte *last = &fluid->lasts[b];
  struct sent_flow *flow = &fluid->flows[last->flow];
  const struct subflow *subflow = &fluid->subflows[last->subflow];
  /* It stops at the first port with a queue. */
  for (int64_t k = first; k < subflow->hop + subflow->hops; k++) {
    int64_t link = fluid->hops[k].link, p = flow->priority * fluid->counts.num_links + link;
    settle_queues(core, fluid, link, now);
    if (fluid->ports[p].queue <= LAST_DUST) continue;
    queue_last(fluid, b, p, k);
    return;
  }
  flow->arrives = most(flow->arrives, now + on_wires(fluid, subflow, core->store->rows[flow->row].size));
  last->next = (int32_t)fluid->counts.free_last;
  fluid->counts.free_last = b;
  last_is_there(core, fluid, last->flow, subflow->conn, now);
}

/* The last bytes of flow f of connection c leave. */
static void send_last(struct core *core, struct congestion_state *fluid, int64_t f, int64_t c, int64_t now) {
  struct sent_flow *flow = &fluid->flows[f];
  flow->priority = fluid->conns[c].priority;
  flow->arrives = 0;
  /* One more, until all are on their way: they may arrive at once. */
  flow->lasts = 1;
  double size = on_wire(fluid, core->store->rows[flow->row].size);
  double counts = least_of(largest_part(fluid, c), 0.5 * fluid->settings.mss / most_of(size, 1.0));
  for (int64_t s = fluid->conns[c].subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (subflow->part > 0.0 && subflow->part >= counts)
      follow_last(core, fluid, new_last(fluid, f, s), subflow->hop, now);
  }
  last_is_there(core, fluid, f, c, now);
}

/* Let the first of the last bytes at a port go on, if the port has served it; returns whether it did. */
static bool has_left(struct core *core, struct congestion_state *fluid, int64_t p, int64_t now) {
  struct port *port = &fluid->ports[p];
  int64_t b = port->head;
  if (b == NONE) return false;
  settle_queues(core, fluid, port->link, now);
  const struct last_byte *last = &fluid->lasts[b];
  if (last->leaves - port->served > LAST_DUST && port->queue > LAST_DUST) return false;
  port->head = last->next;
  follow_last(core, fluid, b, last->hop + 1, now);
  return true;
}
