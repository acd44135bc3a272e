/* Priority flow control (PFC): a port pauses a port before it, class by class, when the bytes that came from there
 * and stand in its queue (the *input share*) reach a threshold. It lets it go on when they are down to a lower one.
 *
 * So eight ports that bring alike fill a queue to eight thresholds, where one port fills it to one. A port that is
 * paused sends nothing of that class, whoever it is for: so its own queue grows, and pauses spread towards the hosts.
 * Pause frames take no time: an input share exceeds its threshold by what comes in a nanosecond at most (LEAST_PS; 5
 * bytes at 40 Gb/s), where a switch needs headroom.
 *
 * Sources: IEEE 802.1Qbb; that switches count by ingress link: Y. Zhu et al., SIGCOMM 2015, section 4. Not modelled:
 * - What a link brings to other ports of the same switch, which counts there, too.
 * - That the ports of a switch share a memory, which ends. A queue with many input shares outgrows its port's
 *   `buffer`, as in a switch, where it takes the other ports' room; but no threshold falls as that memory fills
 *   (docs/validation/rdma.md).
 * - The way of the frames; the headroom that a switch keeps for what is sent meanwhile (rate x 2 latency + 2 packets
 *   a port); the watchdog that ends deadlocks.
 */
#include "kernel.h"

#define NEAR 1e-6         /* an input share that is so near to a threshold, in proportion, has reached it */
#define NEWEST 0.25       /* the last cycle's part of a port's mean duty */
#define LEAST_DUTY 0.125  /* of a cycle */
enum { LEAST_PS = 1000 }; /* between two looks at a threshold, see at_threshold */

/* -- when to look again ----------------------------------------------------------------------------------------- */

/* How long it takes until an input share is to be paused or let go on, ps, FAR_PS at most; `each`: what the port
 * serves for each bit/s that leaves. */
static inline double input_crossing(const struct port_link *link, const struct input_share *input, double each) {
  double slope = ((double)input->load - (double)input->out * each) * BYTES_PER_BPS_PS;
  double away = link->pause - input->bytes;
  if (input->stopped != 0) {
    slope = -slope;
    away = input->bytes - link->resume;
  }
  if (away <= 0.0) return 0.0;
  return slope > 0.0 ? away / slope : FAR_PS;
}

/* How long it takes, if loads stay, until an input share of port p is to be paused or let go on; the port serves
 * with `rate`. */
static double port_crossing(struct congestion_state *fluid, int64_t p, double rate, int64_t now) {
  const struct port *port = &fluid->ports[p];
  const struct line *line = &fluid->lines[p];
  const struct port_link *link = &fluid->links[port->link];
  if (port->stops == 0 && port->queue < link->pause) {
    /* No input share is longer than its queue. So it is on most links, most of the time. */
    double slope = ((double)port->load - rate) * BYTES_PER_BPS_PS;
    return slope > 0.0 ? (link->pause - port->queue) / slope : FAR_PS;
  }
  double each = 0.0, soonest = FAR_PS;
  if (line->out > 0) each = (port->queue > 0.0 ? rate : least_of(rate, (double)port->load)) / (double)line->out;
  for (int64_t at = port->inputs; at != NONE; at = fluid->inputs[at].next) {
    struct input_share *input = &fluid->inputs[at];
    settle_input(fluid, p, input, now);
    soonest = least_of(input_crossing(link, input, each), soonest);
  }
  return soonest;
}

/* Look again when an input share would cross a threshold, or a last byte leave the port, if loads stay as they are. */
static void expect_crossing(struct core *core, struct congestion_state *fluid, int64_t p, int64_t now) {
  struct port *port = &fluid->ports[p];
  double rate = port->paused == 0 ? left_for(fluid, p) : 0.0;
  settle_queues(core, fluid, port->link, now);
  catch_up(core, fluid, p, now);
  double soonest = fluid->settings.lossless ? port_crossing(fluid, p, rate, now) : FAR_PS;
  int64_t at = NEVER;
  /* A nanosecond later at least: rounding may leave it just short of the threshold, again and again. */
  if (soonest < FAR_PS) at = now + most(round_up(soonest), LEAST_PS);
  if (port->head != NONE && rate > 0.0) {
    double before = fluid->lasts[port->head].leaves - port->served;
    at = least(at, now + most(round_up(least_of(before / (rate * BYTES_PER_BPS_PS), FAR_PS)), 1));
  }
  if (at == NEVER) return;
  /* If it will be looked at earlier, this is worked out anew then. */
  if (port->check > now && at >= port->check) return;
  port->check = at;
  push_event(core->calendar, at, (struct event){now, now, NONE, 0, (int32_t)p, MAY_CROSS, NONE, 0});
}

/* Look again when a queue of over `least` bytes is empty, if loads stay as they are: then its port passes on less. */
static void expect_empty(struct core *core, struct congestion_state *fluid, int64_t p, double least, int64_t now) {
  struct port *port = &fluid->ports[p];
  if (port->queue <= least || port->paused != 0) return;
  double slope = (left_for(fluid, p) - (double)port->load) * BYTES_PER_BPS_PS;
  if (slope <= 0.0) return;
  int64_t at = now + most(round_up(least_of(port->queue / slope, FAR_PS)), LEAST_PS);
  if (port->empties > now && at >= port->empties) return;
  port->empties = at;
  push_event(core->calendar, at, (struct event){now, now, NONE, 0, (int32_t)p, QUEUE_EMPTIES, NONE, 0});
}

/* -- pausing, and letting go on --------------------------------------------------------------------------------- */

/* One more port pauses port u. */
static void pause_port(struct core *core, struct congestion_state *fluid, int64_t u, int64_t now) {
  struct port *port = &fluid->ports[u];
  if (port->paused > 0) {
    port->paused++;
    return;
  }
  /* Its queue is settled first: up to now it sent. */
  settle_queues(core, fluid, port->link, now);
  port->since = now;
  port->paused = 1;
  tell_port(fluid, u);
  look_after(fluid, u);
}

/* One port fewer pauses port u; what share of its time it may send follows from the last cycle. */
static void free_port(struct core *core, struct congestion_state *fluid, int64_t u, int64_t now) {
  struct port *port = &fluid->ports[u];
  if (--port->paused > 0) return;
  /* Its queue is settled as that of a paused port: up to now it was one. */
  port->paused = 1;
  settle_queues(core, fluid, port->link, now);
  port->paused = 0;
  port->paused_ps += now - port->since;
  double cycle = (double)(now - port->resumed);
  if (cycle > 0.0) {
    /* A cycle is from release to release. The mean over some cycles counts: one long pause says little of the future.
     */
    double last = most_of(1.0 - (double)(now - port->since) / cycle, LEAST_DUTY);
    port->duty += NEWEST * (last - port->duty);
  }
  port->resumed = now;
  tell_port(fluid, u);
  look_after(fluid, u);
}

/* Whether port u, which was paused just now, pauses itself by way of others: then none of them ever sends again. */
static bool closes_circle(struct congestion_state *fluid, int64_t u) {
  /* A breadth-first search. Each has a number of its own, so that marks on ports need not be cleared. */
  int64_t visit = ++fluid->counts.visit, count = 1;
  RESERVE(fluid, visits, fluid->counts.num_links * fluid->counts.num_classes);
  RESERVE(fluid, scan, fluid->counts.num_links * fluid->counts.num_classes);
  fluid->scan[0] = (int32_t)u;
  for (int64_t done = 0; done < count; done++) {
    const struct input_share *input;
    for (int64_t m = fluid->ports[fluid->scan[done]].inputs; m != NONE; m = input->next) {
      input = &fluid->inputs[m];
      if (input->stopped == 0) continue;
      /* 802.1Qbb has no way out of such a circle but a watchdog, which is not modelled. */
      if (input->port == u) return true;
      if (fluid->visits[input->port] == visit) continue;
      fluid->visits[input->port] = visit;
      fluid->scan[count++] = input->port;
    }
  }
  return false;
}

/* Input shares of a port may have crossed a threshold. */
static void at_threshold(struct core *core, struct congestion_state *fluid, int64_t p, int64_t now) {
  struct port *port = &fluid->ports[p];
  const struct port_link *link = &fluid->links[port->link];
  settle_queues(core, fluid, port->link, now);
  catch_up(core, fluid, p, now);
  touch_port(fluid, p);
  double pause = link->pause * (1.0 - NEAR), resume = link->resume * (1.0 + NEAR);
  if (port->stops == 0 && port->queue < pause) return;
  for (int64_t at = port->inputs; at != NONE; at = fluid->inputs[at].next) {
    struct input_share *input = &fluid->inputs[at];
    settle_input(fluid, p, input, now);
    if (input->stopped == 0 && input->bytes >= pause) {
      input->stopped = 1;
      port->stops++;
      pause_port(core, fluid, input->port, now);
      if (closes_circle(fluid, input->port)) fluid->counts.stuck = input->port + 1;
    } else if (input->stopped != 0 && input->bytes <= resume) {
      input->stopped = 0;
      port->stops--;
      free_port(core, fluid, input->port, now);
    }
  }
}
