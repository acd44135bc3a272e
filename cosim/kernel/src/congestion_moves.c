/* A connection of `congestion` takes other paths: what it has sent goes on where it is, the rest goes the new ways. And
 * links that change.
 */
#include "kernel.h"

/* Take a connection's bytes off all its subflows, which keep what was sent by them. */
static void leave_paths(struct core *core, struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  if (one->asleep) wake(fluid, c, now);
  if (one->active) {
    settle_conn(fluid, c, now);
    look_at_paths(core, fluid, c, now);
    if (!fluid->settings.lossless) {
      /* Known of and sent again as if it had stayed. */
      send_again(one, (double)count_losses(fluid, c, now) * fluid->settings.mss);
    }
    count_bytes(core, fluid, c, (int64_t)(one->size - one->remaining));
  }
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    struct subflow *subflow = &fluid->subflows[s];
    if (!(subflow->part > 0.0)) continue;
    subflow->part = 0.0;
    subflow->listed = 2;
    one->leaving++;
  }
}

/* Send a part of a connection's bytes by subflow s, by which nothing goes yet. */
static void take_path(struct congestion_state *fluid, int64_t c, int64_t s, double part) {
  struct connection *one = &fluid->conns[c];
  struct subflow *subflow = &fluid->subflows[s];
  subflow->part = part;
  if (subflow->listed) {
    one->leaving--;
    return;
  }
  subflow->listed = 1;
  subflow->next = one->subflow;
  one->subflow = (int32_t)s;
}

/* Nothing of a connection is there before what went by subflows that it has left in this instant. */
static void note_arrivals(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    struct subflow *subflow = &fluid->subflows[s];
    if (subflow->listed == 2 && subflow->part == 0.0 && one->active) {
      int64_t came = arrives_by(fluid, subflow, one->sent, now);
      one->arrived = most(one->arrived, came < NEVER ? came : 0);
    }
    subflow->listed = 1;
  }
}

/* All parts of a connection are given: it goes on with what it sends, if it does. */
static void go_on(struct core *core, struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  note_arrivals(fluid, c, now);
  drop_left(fluid, c);
  weigh_subflows(fluid, c);
  one->rtt_at = NONE;
  if (!one->active) return;
  look_at_paths(core, fluid, c, now);
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next)
    if (!fluid->subflows[s].attached) remember(fluid, &fluid->subflows[s]);
  attach_conn(fluid, c);
  hold_or_go_on(fluid, c, now);
  change_conn(fluid, c);
}

/* Have connections go by one subflow each from now on. */
int64_t reroute(struct core *core, struct congestion_state *fluid, int64_t count, const int32_t *conns,
                const int32_t *subflows) {
  CATCH_OUT_OF_MEMORY;
  int64_t now = core->state.instant;
  for (int64_t k = 0; k < count; k++) {
    leave_paths(core, fluid, conns[k], now);
    take_path(fluid, conns[k], subflows[k], 1.0);
    go_on(core, fluid, conns[k], now);
  }
  return DONE;
}

/* What waited in a port's queue when its link died counts as arrived. */
static void let_queue_pass(struct core *core, struct congestion_state *fluid, int64_t p, int64_t now) {
  struct port *port = &fluid->ports[p];
  port->queue = 0.0;
  if (fluid->settings.traced) pass_boundaries(core, fluid, p, 0.0, now);
  at_threshold(core, fluid, p, now);
  /* Last bytes that stand in it go on, one by one. */
  if (port->head == NONE) return;
  port->check = now + 1;
  push_event(core->calendar, now + 1, (struct event){now, now, NONE, 0, (int32_t)p, MAY_CROSS, NONE, 0});
}

/* From now on a link has another rate; 0: it is dead. */
static void change_link(struct core *core, struct congestion_state *fluid, int64_t link, int64_t rate_bps,
                        int64_t now) {
  settle_queues(core, fluid, link, now);
  fluid->links[link].capacity = rate_bps;
  fluid->ports[link].hot = 1;
  wake_all(fluid, link, now);
  int64_t links = fluid->counts.num_links, end = links * fluid->counts.num_classes;
  for (int64_t p = link; p < end; p += links) {
    if (rate_bps == 0) let_queue_pass(core, fluid, p, now);
    /* What came to a dead link is gone of its input shares, too. */
    catch_up(core, fluid, p, now);
    settle_inputs(fluid, p, now);
    tell_port(fluid, p);
    for (int64_t m = fluid->ports[p].first; m != NONE; m = fluid->hops[m].after)
      hold_or_go_on(fluid, fluid->hops[m].conn, now);
  }
  look_after(fluid, link);
}

/* Go to the next change: a link's comes into force. DONE, or what Python is asked for. */
static int64_t pass_change(struct core *core, struct congestion_state *fluid) {
  const struct change *one = begin_change(core, fluid->changes);
  if (one->link == ROUTES) return NEW_ROUTES;
  change_link(core, fluid, one->link, (int64_t)one->rate, core->state.instant);
  return end_change(fluid->changes);
}
