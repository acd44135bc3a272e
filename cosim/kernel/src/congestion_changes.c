/* What changes in an instant of `congestion`: connections, ports, hosts and subflows to look at when time leaves it, each
 * of them once. What the network is: cosim/network/congestion/network.py.
 */
#include "kernel.h"

#define BYTES_PER_BPS_PS 1.25e-13 /* bytes that one bit per second brings in a picosecond */

/* A connection has a round to open. */
static inline void note_updated(struct congestion_state *fluid, int64_t c) {
  RESERVE(fluid, updated, fluid->counts.num_updated + 1);
  fluid->updated[fluid->counts.num_updated++] = (int32_t)c;
}

/* A connection has a round whose end isn't in the calendar yet. */
static inline void note_woken(struct congestion_state *fluid, int64_t c) {
  RESERVE(fluid, woken, fluid->counts.num_woken + 1);
  fluid->woken[fluid->counts.num_woken++] = (int32_t)c;
}

/* Have a subflow's hops come from memory, from its `from`th on. */
FETCHES void fetch_hops(const struct congestion_state *fluid, const struct subflow *subflow, int64_t from) {
  for (int64_t k = subflow->hop + from; k < subflow->hop + subflow->hops; k++) {
    __builtin_prefetch(&fluid->hops[k]);
    __builtin_prefetch(&fluid->sights[k]);
  }
}

/* A subflow's loads are to be brought to its ports, from its `from`th on. */
static inline void note_moving(struct congestion_state *fluid, int64_t s, int64_t from) {
  struct congestion_counts *counts = &fluid->counts;
  RESERVE(fluid, moving, counts->num_moving + 1);
  fluid->moving[counts->num_moving++] = (int32_t)s;
  fluid->subflows[s].from = (int16_t)from;
  fetch_hops(fluid, &fluid->subflows[s], from);
  counts->most_hops = most(counts->most_hops, fluid->subflows[s].hops);
}

/* A connection has a new rate to send at. */
static inline void change_conn(struct congestion_state *fluid, int64_t c) {
  struct congestion_counts *counts = &fluid->counts;
  if (fluid->stamps[c] == counts->stamp) return;
  fluid->stamps[c] = counts->stamp;
  RESERVE(fluid, changed, counts->num_changed + 1);
  fluid->changed[counts->num_changed++] = (int32_t)c;
  counts->open = 1;
}

/* A port has a new load. */
static inline void touch_port(struct congestion_state *fluid, int64_t p) {
  struct congestion_counts *counts = &fluid->counts;
  if (fluid->ports[p].stamp == counts->stamp) return;
  fluid->ports[p].stamp = counts->stamp;
  RESERVE(fluid, touched, counts->num_touched + 1);
  fluid->touched[counts->num_touched++] = (int32_t)p;
  counts->open = 1;
}

/* What the flows that begin at a port want changes by `more`. */
static inline void own_changed(struct congestion_state *fluid, int64_t p, int64_t more) {
  struct congestion_counts *counts = &fluid->counts;
  struct port *port = &fluid->ports[p], *base = &fluid->ports[port->link];
  port->own += more;
  counts->open = 1;
  if (base->listed) return;
  base->listed = 1;
  RESERVE(fluid, hosts, counts->num_hosts + 1);
  fluid->hosts[counts->num_hosts++] = port->link;
}

/* Everything that passes port `u` is to be looked at. */
static void tell_port(struct congestion_state *fluid, int64_t u) {
  touch_port(fluid, u);
  bool own = false;
  for (int64_t m = fluid->ports[u].first; m != NONE; m = fluid->hops[m].after) {
    change_conn(fluid, fluid->hops[m].conn);
    own = own || fluid->hops[m].leads != 0;
  }
  if (own) own_changed(fluid, u, 0);
}
