/* Classes of priority on one link of `congestion`: what one leaves is what those after it have, and that changes when
 * its load does, when its queue has gone, or when it is paused or let go on.
 */
#include "kernel.h"

/* Whether anything of a class after port p's is on its link: that has nothing while p queues. */
static bool is_waited_for(const struct congestion_state *fluid, int64_t p) {
  int64_t links = fluid->counts.num_links, end = links * fluid->counts.num_classes;
  for (int64_t q = p + links; q < end; q += links)
    if (fluid->ports[q].first != NONE || fluid->ports[q].head != NONE) return true;
  return false;
}

/* Have what classes after port p's pass on worked out anew, where something else is left for them. */
static void look_after(struct congestion_state *fluid, int64_t p) {
  int64_t links = fluid->counts.num_links, end = links * fluid->counts.num_classes;
  for (int64_t q = p + links; q < end; q += links) {
    struct port *port = &fluid->ports[q];
    double left = left_for(fluid, q), before = port->left, load = (double)port->load;
    if (!(fabs(left - before) * ALIKE > before)) continue;
    port->left = left;
    /* Where all that comes passed, and passes, nothing changes: who rests there goes on to. */
    if (!(port->queue > 0.0 || load > left || (0.0 <= before && before < load))) continue;
    for (int64_t m = port->first; m != NONE; m = fluid->hops[m].after) {
      if (fluid->settings.traced)
        leaves_otherwise(fluid, m);
      else
        change_conn(fluid, fluid->hops[m].conn);
    }
  }
}
