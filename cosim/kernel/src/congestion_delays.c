/* Delays of paths of `congestion` with queues as they are: a round trip, and when a last byte arrives. */
#include "kernel.h"

/* What stands in a port's queue after `wait` (bytes at a bit a second), if loads stay: no more than there is room for.
 * Where ports pause, that is a threshold of each of its input shares. */
static double grown_queue(const struct congestion_state *fluid, const struct port *port, double rate, double wait) {
  const struct port_link *link = &fluid->links[port->link];
  double grown = port->queue + ((double)port->load - rate) * wait;
  if (grown <= link->pause) return most_of(0.0, grown);
  double room = link->buffer;
  if (fluid->settings.lossless) {
    room = 0.0;
    for (int64_t at = port->inputs; at != NONE && room < grown; at = fluid->inputs[at].next) room += link->pause;
  }
  return least_of(grown, most_of(room, port->queue));
}

/* What data of a subflow waits in its queues, in what a byte takes at a bit a second. */
static double data_waits(const struct congestion_state *fluid, const struct subflow *subflow) {
  /* Where a packet waits, queues behind grow meanwhile. A window sends what comes back of them; a rate goes on until it
   * hears of what it did. */
  bool ahead = fluid->settings.gives_rate;
  double wait = 0.0;
  for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
    const struct port *port = &fluid->ports[fluid->hops[k].port];
    double queue = port->queue;
    if (queue == 0.0 && !(ahead && wait > 0.0)) continue;
    double rate = service_rate(fluid, fluid->hops[k].port);
    if (rate <= 0.0) continue; /* it is dead, and nothing waits there */
    if (ahead && wait > 0.0) queue = grown_queue(fluid, port, rate, wait);
    if (queue > 0.0) wait += queue / rate;
  }
  return wait;
}

/* How long a packet waits on a subflow and its acknowledgement back, in what a byte takes at a bit a second. */
static double subflow_waits(const struct congestion_state *fluid, const struct subflow *subflow, int64_t priority) {
  double wait = data_waits(fluid, subflow);
  /* Acknowledgements of what is sent now come later, to queues that went on as they do now. */
  double after = subflow->base - (double)subflow->latency;
  for (int64_t k = subflow->hop + subflow->hops - 1; k >= subflow->hop; k--) {
    int64_t back = fluid->hops[k].back;
    if (back == NONE) continue;
    int64_t p = priority * fluid->counts.num_links + back;
    double load = (double)fluid->ports[p].load, queue = fluid->ports[p].queue;
    if (load > 0.0 || queue > 0.0) {
      double rate = service_rate(fluid, p);
      /* Nor do they wait for a link that is dead: they would be for data that is. */
      if (!(rate <= 0.0 || (queue == 0.0 && load <= rate))) {
        double meets = queue + (load - rate) * (after * 1e-12 + wait * 8.0) / 8.0;
        wait += most_of(0.0, least_of(fluid->links[back].buffer, meets)) / rate;
      }
    }
    after += (double)fluid->links[back].latency;
  }
  return wait;
}

/* The round-trip time (ps) with queues as they are, and acknowledgements in them; the mean over what a connection sends
 * by each of its subflows. */
static double path_rtt(const struct congestion_state *fluid, int64_t c) {
  const struct connection *one = &fluid->conns[c];
  double wait = 0.0;
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (subflow->part > 0.0) wait += subflow->part * subflow_waits(fluid, subflow, one->priority);
  }
  return one->base + wait * 8e12;
}

/* What a message of `size` bytes is on the wire: each of its packets has headers. */
static double on_wire(const struct congestion_state *fluid, int64_t size) {
  int64_t payload = fluid->settings.payload, packets = (size + payload - 1) / payload;
  return (double)size + (double)packets * (fluid->settings.mss - (double)payload);
}

/* What a flow's last byte takes without queues: latencies, and its packet's time on each further link. */
static int64_t on_wires(const struct congestion_state *fluid, const struct subflow *subflow, int64_t size) {
  double store = 0.0;
  if (size > 0) store = (double)subflow->store * least_of(1.0, on_wire(fluid, size) / fluid->settings.mss);
  return subflow->latency + round_up(store - 1e-3);
}

/* When the last byte that goes by a subflow is at the receiver, or NEVER; see `arrival`. */
static int64_t arrives_by(const struct congestion_state *fluid, const struct subflow *subflow, int64_t size,
                          int64_t now) {
  double wait = 0.0;
  int64_t end = size > 0 ? subflow->hop + subflow->hops : subflow->hop;
  for (int64_t k = subflow->hop; k < end; k++) {
    int64_t p = fluid->hops[k].port;
    const struct port *port = &fluid->ports[p];
    double queue = port->queue, load = (double)port->load;
    if (port->paused > 0 || port->duty < 1.0) return NEVER;
    /* Who waits behind other classes waits for what comes to them meanwhile, too. */
    if (p != port->link && (queue > 0.0 || left_for(fluid, p) < load)) return NEVER;
    if (queue == 0.0 && wait == 0.0) continue;
    double rate = service_rate(fluid, p);
    if (rate <= 0.0) continue; /* it is dead, and nothing waits there */
    /* What comes to a second queue meanwhile would be a guess: others change what they send. */
    if (wait > 0.0 && (queue > 0.0 || load > rate)) return NEVER;
    if (queue > 0.0) wait += queue * 8.0 / rate;
  }
  return now + round_up(wait * 1e12 - 1e-3) + on_wires(fluid, subflow, size);
}

/* A flow starts whose path is row `path`. */
static void expect_flow(const struct core *core, struct congestion_state *fluid, int64_t path, int64_t now) {
  for (int64_t k = core->path_ptr[path]; k < core->path_ptr[path + 1]; k++) {
    struct passing *one = &fluid->passing[core->path_link[k]];
    if (one->flows++ > 0 || now < one->last) continue;
    one->since = now;
    one->bytes = 0.0;
  }
}

/* When a flow is complete that the queues let arrive at `at`, whose path is row `path`.
 *
 * Ports pass on what they serve as it is known there, a few bytes early or late. That must not add up to a link that
 * delivers more than it can: what it brought since nothing was under way takes its time.
 */
static int64_t not_before_links(const struct core *core, struct congestion_state *fluid, int64_t path, int64_t size,
                                int64_t at) {
  for (int64_t k = core->path_ptr[path]; k < core->path_ptr[path + 1]; k++) {
    struct passing *one = &fluid->passing[core->path_link[k]];
    if (!one->counts) continue;
    const struct port_link *link = &fluid->links[core->path_link[k]];
    one->bytes += on_wire(fluid, size);
    double takes = one->bytes / ((double)link->nominal * BYTES_PER_BPS_PS);
    at = most(at, one->since + round_up(takes - 1e-3) + link->latency);
  }
  for (int64_t k = core->path_ptr[path]; k < core->path_ptr[path + 1]; k++) {
    struct passing *one = &fluid->passing[core->path_link[k]];
    one->flows--;
    one->last = most(one->last, at);
  }
  return at;
}

/* What goes by the subflow of a connection that most goes by, of all its bytes. */
static double largest_part(const struct congestion_state *fluid, int64_t c) {
  double found = 0.0;
  for (int64_t s = fluid->conns[c].subflow; s != NONE; s = fluid->subflows[s].next)
    found = most_of(fluid->subflows[s].part, found);
  return found;
}

/* When the last byte, sent at `now`, is at the receiver; the path's links are settled.
 *
 * NEVER: that can't be said, as the bytes go by several subflows, or wait in a class that others go before, or as a port
 * on the way is paused now and then, or would be, or would drop what comes out of a queue.
 */
static int64_t arrival(struct congestion_state *fluid, int64_t c, int64_t size, int64_t now) {
  struct connection *one = &fluid->conns[c];
  int64_t at = one->arrived;
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (!(subflow->part > 0.0)) continue;
    int64_t came = subflow->part == 1.0 ? arrives_by(fluid, subflow, size, now) : NEVER;
    if (came == NEVER) return NEVER;
    at = most(at, came);
  }
  one->arrived = at;
  return at;
}
