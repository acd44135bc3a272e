/* Subflows: the paths that a connection's bytes take, with a part of the bytes each.
 *
 * With ECMP a connection has one subflow, with all its bytes. When it takes other paths, the subflows that it leaves
 * stay on their ports until what was sent that way is through.
 */
#include "kernel.h"

/* Whether a link of a subflow is dead. */
static bool has_dead_link(const struct congestion_state *fluid, const struct subflow *subflow) {
  for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++)
    if (fluid->links[fluid->hops[k].link].capacity == 0) return true;
  return false;
}

/* Whether a link that a connection has to take is dead. */
static bool is_cut(const struct congestion_state *fluid, int64_t c) {
  for (int64_t s = fluid->conns[c].subflow; s != NONE; s = fluid->subflows[s].next)
    if (fluid->subflows[s].part > 0.0 && has_dead_link(fluid, &fluid->subflows[s])) return true;
  return false;
}

/* -- on ports, and off them ------------------------------------------------------------------------------------- */

/* Put a subflow of connection `one` on the ports of its path. */
static void put_on_ports(struct congestion_state *fluid, struct connection *one, struct subflow *subflow) {
  struct subflow_hop *hops = fluid->hops;
  subflow->attached = 1;
  one->attached++;
  for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
    struct subflow_hop *hop = &hops[k];
    hop->port = (int32_t)(one->priority * fluid->counts.num_links + hop->link);
    struct port *port = &fluid->ports[hop->port];
    /* It goes to the head of the port's list, which is doubly linked through hops: nothing is searched for. */
    hop->before = NONE;
    hop->after = port->first;
    if (port->first != NONE) hops[port->first].before = (int32_t)k;
    port->first = (int32_t)k;
    if (fluid->settings.lossless && k > subflow->hop) join_input(fluid, k);
    if (k < subflow->hop + subflow->hops - 1) fluid->links[hop->link].onward++;
  }
}

/* Put a connection on the ports of its subflows, where it is not yet. */
static void attach_conn(struct congestion_state *fluid, int64_t c) {
  struct connection *one = &fluid->conns[c];
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    struct subflow *subflow = &fluid->subflows[s];
    if (subflow->part <= 0.0 || subflow->attached != 0) continue;
    put_on_ports(fluid, one, subflow);
    if (fluid->settings.changing && has_dead_link(fluid, subflow)) one->held = 1;
  }
}

/* Take a subflow of connection `one` off its ports; it brings nothing to any of them. */
static void detach_subflow(struct congestion_state *fluid, struct connection *one, struct subflow *subflow) {
  struct subflow_hop *hops = fluid->hops;
  for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
    const struct subflow_hop *hop = &hops[k];
    if (fluid->settings.lossless && k > subflow->hop) leave_input(fluid, k);
    if (hop->before != NONE)
      hops[hop->before].after = hop->after;
    else
      fluid->ports[hop->port].first = hop->after;
    if (hop->after != NONE) hops[hop->after].before = hop->before;
    /* The last hop doesn't count: it goes to the receiver, to no further port. */
    if (k < subflow->hop + subflow->hops - 1) fluid->links[hop->link].onward--;
  }
  subflow->attached = 0;
  if (--one->attached == 0) one->held = 0;
}

/* Forget subflows that have no part of a connection any more, and are on no port. */
static void drop_left(struct congestion_state *fluid, int64_t c) {
  struct connection *one = &fluid->conns[c];
  int32_t *from = &one->subflow; /* what leads to the subflow that is looked at */
  while (*from != NONE) {
    struct subflow *subflow = &fluid->subflows[*from];
    if (subflow->part != 0.0 || subflow->attached != 0) {
      from = &subflow->next;
      continue;
    }
    subflow->listed = 0;
    one->leaving--;
    if (fluid->settings.credits) ask_no_more(fluid, *from);
    *from = subflow->next;
  }
}

/* -- links that die and come back ------------------------------------------------------------------------------- */

/* A connection's links died or came back, or it takes others. While one of them is dead it is silent. */
static void hold_or_go_on(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  if (one->attached != 0 && is_cut(fluid, c)) {
    one->held = 1;
    change_conn(fluid, c);
    return;
  }
  if (one->held == 0) return;
  one->held = 0;
  if (one->active == 0) return;
  settle_conn(fluid, c, now);
  change_conn(fluid, c);
  /* While it was held, its round ended and none began: one begins now. */
  if (one->due >= 0 || one->known == 0) return;
  one->seen_rtt = path_rtt(fluid, c);
  if (!fluid->settings.lossless) {
    /* It has heard meanwhile of what was lost before. */
    send_again(one, (double)count_losses(fluid, c, now) * fluid->settings.mss);
    one->resent = 0.0;
  }
  open_round(fluid, c, now);
  note_updated(fluid, c);
}

/* -- sums over subflows ------------------------------------------------------------------------------------------ */

/* The part of connection `one` that begins on a link. */
static double part_on_link(const struct congestion_state *fluid, const struct connection *one, int64_t link) {
  double together = 0.0;
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (subflow->part > 0.0 && fluid->hops[subflow->hop].link == link) together += subflow->part;
  }
  return together;
}

/* Sum up a connection's subflows: the mean of their bare round trips, the rate at which the first of its own ports is
 * full, the most links. */
static void weigh_subflows(struct congestion_state *fluid, int64_t c) {
  struct connection *one = &fluid->conns[c];
  double line = 1e30;
  one->base = 0.0;
  one->hops = 0;
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (subflow->part <= 0.0 || subflow->hops == 0) continue;
    one->base += subflow->part * subflow->base;
    one->hops = most(one->hops, subflow->hops);
    int64_t link = fluid->hops[subflow->hop].link;
    line = least_of((double)fluid->links[link].nominal / part_on_link(fluid, one, link), line);
  }
  one->line = (int64_t)line;
  /* The largest power of two in an eighth of it. */
  one->grid = 1;
  while (16.0 * (double)one->grid <= one->base) one->grid *= 2;
}

/* Count bytes on a connection's links; `sent`: all bytes of its flow so far, on the wire. */
static void count_bytes(struct core *core, struct congestion_state *fluid, int64_t c, int64_t sent) {
  struct connection *one = &fluid->conns[c];
  struct parting parting = part_bytes(fluid->settings.balanced ? fluid->balance : NULL, sent - one->counted);
  one->counted = sent;
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (subflow->part <= 0.0) continue;
    int64_t mine = next_bytes(&parting, subflow->part);
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++)
      core->link_bytes[fluid->hops[k].link] += mine;
  }
}
