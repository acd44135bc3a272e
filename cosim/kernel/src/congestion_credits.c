/* Credit in `congestion`: what receivers let connections send, where the control is one of receivers.
 *
 * A receiver shares the rate of its port among the connections that have something to send there, max-min: one that
 * gets less elsewhere (its own port is shared, or its way is cut) leaves the rest to the others. Who asks, and what
 * those take that are held back elsewhere, are sums of whole numbers at the last link of each subflow; a connection is
 * granted what it would get if it alone were not held back, so that grants settle at the max-min share, whoever is asked
 * first. A round's grant is of the instant in which it ends: on a wire, of up to a bare round trip later.
 */
#include "kernel.h"

#define WHOLE_CREDIT 1048576.0 /* a subflow with all of a connection's bytes asks for so much: sums of parts are exact */
#define HELD_BACK 0.98

static struct port_link *last_link(struct congestion_state *fluid, const struct subflow *subflow) {
  return &fluid->links[fluid->hops[subflow->hop + subflow->hops - 1].link];
}

/* Subflow s asks its last link for so much from now on; `taken`: bits/s, where it is held back. */
static void tell_receiver(struct congestion_state *fluid, int64_t s, int64_t asked, int64_t taken) {
  struct credit *mine = &fluid->credits[s];
  struct port_link *link = last_link(fluid, &fluid->subflows[s]);
  link->asked += (taken == 0 ? asked : 0) - (mine->taken == 0 ? mine->asked : 0);
  link->taken += taken - mine->taken;
  mine->asked = asked;
  mine->taken = taken;
}

/* Tell a connection's receiver what it asks for now: nothing while it is idle. */
static void ask_for_credit(struct congestion_state *fluid, int64_t c) {
  const struct connection *one = &fluid->conns[c];
  bool held_back = one->active && (one->held || (double)one->rate < HELD_BACK * (double)one->want);
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (subflow->hops == 0) continue;
    int64_t asked = one->active ? (int64_t)(subflow->part * WHOLE_CREDIT) : 0;
    int64_t taken = held_back && asked > 0 ? most((int64_t)((double)one->rate * subflow->part), 1) : 0;
    tell_receiver(fluid, s, asked, taken);
  }
}

/* A connection leaves subflow s. */
static void ask_no_more(struct congestion_state *fluid, int64_t s) { tell_receiver(fluid, s, 0, 0); }

/* Bits per second that a connection may send: the least that a subflow's last link grants. */
static double granted(struct congestion_state *fluid, const struct connection *one) {
  double found = (double)one->line;
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (!(subflow->part > 0.0)) continue;
    const struct credit *mine = &fluid->credits[s];
    const struct port_link *link = last_link(fluid, subflow);
    int64_t asked = link->asked + (mine->taken != 0 ? mine->asked : 0);
    double free = (double)(link->capacity - (link->taken - mine->taken));
    if (asked > 0) found = least_of(most_of(0.0, free) * WHOLE_CREDIT / (double)asked, found);
  }
  return found;
}
