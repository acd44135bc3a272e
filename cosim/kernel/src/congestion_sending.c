/* A connection of `congestion` begins to send a flow. */
#include "kernel.h"

/* Bring the queues that a connection's bytes meet up to now. */
static void look_ahead(struct core *core, struct congestion_state *fluid, int64_t c, int64_t now) {
  for (int64_t s = fluid->conns[c].subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++)
      look_at_link(core, fluid, fluid->hops[k].link, now);
  }
}

/* The same, and those that its acknowledgements meet, where those wait. */
static void look_at_paths(struct core *core, struct congestion_state *fluid, int64_t c, int64_t now) {
  for (int64_t s = fluid->conns[c].subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
      const struct subflow_hop *hop = &fluid->hops[k];
      look_at_link(core, fluid, hop->link, now);
      if (hop->back != NONE) look_at_link(core, fluid, hop->back, now);
    }
  }
}

/* A connection begins a round of its own accord, with what its control said before. */
static void open_own_round(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  one->seen_rtt = path_rtt(fluid, c);
  /* Its want is asked for in this instant, too. */
  one->rtt = one->seen_rtt;
  one->rtt_at = now;
  one->stride = least(one->stride, 1);
  /* After a silence the window may mean another rate than it did: what was settled need not be. */
  if (one->settled && !(is_unlimited(fluid, one) && is_clean(one))) one->settled = 0;
  open_round(fluid, c, now);
  note_updated(fluid, c);
}

/* What a connection has to know of its flow; returns the flow's bytes without headers. */
static int64_t take_flow(const struct core *core, struct congestion_state *fluid, int64_t c) {
  struct connection *one = &fluid->conns[c];
  const struct sent_flow *flow = &fluid->flows[one->flow];
  const struct sender_traits *traits = &fluid->traits[core->store->groups[flow->handle].traits];
  int64_t size = core->store->rows[flow->row].size;
  one->payload = size;
  one->size = on_wire(fluid, size);
  one->coflow = traits->coflow;
  one->weight = traits->weight;
  one->job = traits->job;
  /* While its bytes stand in queues of a class it can't change to another: they would change with it. */
  if (one->attached == 0) one->priority = traits->priority;
  return size;
}

/* A connection that took its next flow begins to send it. */
static void send_flow(struct core *core, struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  bool was_idle = !one->active, by_credit = fluid->settings.credits;
  one->touched = now;
  if (was_idle) {
    one->active = 1;
    fluid->counts.num_active++;
  }
  look_at_paths(core, fluid, c, now);
  attach_conn(fluid, c);
  if (by_credit) ask_for_credit(fluid, c);
  if (!one->known || (by_credit && was_idle && one->due < 0)) {
    /* Its control has to say first what it may send; after a silence the last grant is void. */
    first_round(fluid, c, now);
    one->due = NONE;
    return;
  }
  if (one->due < 0) open_own_round(fluid, c, now);
  if (was_idle) one->bursts = 1;
  change_conn(fluid, c);
}
