/* Ports of `congestion`: queues between changes of load, marks, drops, pauses, and what ports count.
 *
 * Loads are constant between two changes, so a queue is a straight line that bends where it empties or fills. Marks
 * follow RED on the queue itself, not on its average: the probability is 0 up to `mark_from`, rises to `mark_most` at
 * `mark_all`, and is 1 above it; with both equal it is a step. The fraction marked is integrated exactly along the
 * line.
 *
 * Priorities: a class gets what the classes before it (lower numbers) leave of the link. Class k of link l is port k
 * * links + l. Where links grant credit (cosim/network/congestion/credits.py), each class has a loop of its own, and gets
 * no more than that lets through.
 */
#include "kernel.h"

#define QUEUE_DUST 1e-3  /* bytes; a queue that shrinks below it is empty */
#define LOSSLESS_DROP 64.0 /* bytes; see least_queue */

/* The first whole number that isn't below x. libm isn't asked: results must be the same on any machine. */
static inline int64_t round_up(double x) {
  int64_t whole = (int64_t)x;
  return whole + ((double)whole < x);
}

/* -- marks and histograms --------------------------------------------------------------------------------------- */

/* The integral of the marking probability from 0 to `queue`. */
static inline double marks_below(double queue, double low, double high, double most) {
  if (queue <= low) return 0.0;
  if (queue <= high) return most * 0.5 * (queue - low) * (queue - low) / (high - low);
  return most * 0.5 * (high - low) + (queue - high);
}

/* The mean marking probability while a queue goes from `start` to `end` on a straight line. */
static inline double mean_mark(double start, double end, double low, double high, double most) {
  double least = least_of(start, end), largest = most_of(start, end);
  if (largest <= low) return 0.0;
  if (largest - least <= 1e-9 * largest) { /* the queue stands still: the integral would be 0 / 0 */
    if (largest > high) return 1.0;
    return most * (largest - low) / (high - low);
  }
  double low_part = marks_below(least, low, high, most);
  return (marks_below(largest, low, high, most) - low_part) / (largest - least);
}

/* The histogram of queues has 32 bins to a power of two, as HdrHistogram has them; bin 0 is less than 256 bytes. So a
 * bin's number is exponent and first five bits of the double, counted from those of 256. */
enum { BIN_SHIFT = 52 - 5, BIN_OF_256 = (1023 + 8) << 5 };

static inline int64_t queue_bin(double queue) {
  if (queue < 256.0) return 0;
  uint64_t bits;
  memcpy(&bits, &queue, sizeof bits);
  return least(1 + (int64_t)(bits >> BIN_SHIFT) - BIN_OF_256, QUEUE_BINS - 1);
}

/* The length at which a bin other than the first begins. */
static inline double bin_starts(int64_t number) {
  uint64_t bits = (uint64_t)(number - 1 + BIN_OF_256) << BIN_SHIFT;
  double queue;
  memcpy(&queue, &bits, sizeof queue);
  return queue;
}

/* Count bytes that leave while a link's queue goes from `start` to `end` on a straight line. */
static void count_served(struct congestion_state *fluid, int64_t link, double start, double end, double sent) {
  double *bins = fluid->histogram + link * fluid->histogram_cols;
  double least = least_of(start, end), largest = most_of(start, end);
  int64_t number = queue_bin(least), last = queue_bin(largest);
  double each = sent / most_of(largest - least, 1.0);
  for (; number < last; number++) {
    double top = bin_starts(number + 1);
    double part = (top - least) * each;
    bins[number] += part;
    sent -= part;
    least = top;
  }
  bins[last] += sent;
}

/* -- credit ----------------------------------------------------------------------------------------------------- */

/* Of `room` bits/s, what a class may use of its link: where the other end grants credit, no more than comes back of it. */
static inline double within_loop(const struct port_link *link, double room) {
  return least_of(room, (double)link->loop);
}

/* -- queues up to now ------------------------------------------------------------------------------------------- */

/* How long all lines stay straight, at most `left`: until a class's queue is empty, which leaves more to others. */
static double until_bend(const struct congestion_state *fluid, int64_t link, double capacity, double left) {
  double step = left, room = capacity;
  int64_t at = link;
  for (int64_t k = 0; k < fluid->counts.num_classes; k++, at += fluid->counts.num_links) {
    const struct port *port = &fluid->ports[at];
    double rate = port->paused == 0 ? within_loop(&fluid->links[link], room) : 0.0;
    double load = (double)port->load;
    if (port->queue > 0.0) {
      /* A queue that grows takes all that it may, and goes on to. Only one that shrinks leaves more some time. */
      if (rate > load) step = least_of(port->queue / ((rate - load) * BYTES_PER_BPS_PS), step);
      room -= rate;
    } else {
      room -= least_of(rate, load);
    }
  }
  return step;
}

/* Drop what the buffer can't hold; returns the queue's length after it.
 *
 * While the buffer is full, the port loses the share of its load that exceeds its rate. Each flow loses the same
 * share, as a queue does not tell flows apart.
 */
static double overflow(const struct port_link *link, struct port *port, double rate, double step, double left,
                       int64_t now) {
  double load = (double)port->load, queue = port->queue;
  double change = (load - rate) * BYTES_PER_BPS_PS;
  double over = step;
  if (queue < link->buffer) {
    over -= (link->buffer - queue) / change;
    port->drop_from = now - (int64_t)(left - step + over);
  }
  port->losses += over * (load - rate) / load;
  port->dropped += over * change;
  return most_of(link->buffer, queue);
}

/* Mark the share that RED would while the queue goes to `end` within `step`. */
static inline void mark(const struct port_link *link, struct port *port, double end, double step) {
  if (most_of(port->queue, end) > link->mark_from) {
    double part = mean_mark(port->queue, end, link->mark_from, link->mark_all, link->mark_most);
    port->marks += part * step;
    port->marked += part * step * (double)port->load * BYTES_PER_BPS_PS;
  }
  if (end > port->peak) port->peak = end;
}

/* Move the queue of one class, for which `room` (bits/s) is left of the link, on by `step`; `left` ps before `now`.
 * Returns what leaves the port, bits/s. The link goes by its row: a watch has ports of some links, whose numbers in the
 * network are others. */
static inline double settle_class(struct congestion_state *fluid, int64_t number, struct port *port, double room,
                                  double step, double left, int64_t now) {
  const struct port_link *link = &fluid->links[number];
  double load = (double)port->load, queue = port->queue;
  if (load == 0.0 && queue == 0.0) return 0.0;
  double rate = port->paused == 0 ? within_loop(link, room) : 0.0;
  double change = (load - rate) * BYTES_PER_BPS_PS;
  double out = rate, end = queue;
  if (queue > 0.0 || change > 0.0) {
    end = queue + change * step;
    /* A rest of a thousandth of a byte would make the line bend again and again. */
    if (change < 0.0 && end < QUEUE_DUST) end = 0.0;
    if (end > link->buffer && !fluid->settings.lossless) end = overflow(link, port, rate, step, left, now);
    mark(link, port, end, step);
  } else {
    out = load;
  }
  port->queue = end;
  double sent = out * step * BYTES_PER_BPS_PS;
  port->served += sent;
  /* A queue of less than a byte in the mean is none, in a histogram of queues. */
  if (queue + end >= 2.0) count_served(fluid, number, queue, end, sent);
  return out;
}

/* Move the queues of a link from `begin` to `now`; returns the bits that left, times 10^12. */
static double settle_waiting(struct congestion_state *fluid, int64_t number, int64_t begin, int64_t now) {
  /* A dead link loses what still comes. */
  if (fluid->links[number].capacity == 0) return 0.0;
  double capacity = (double)fluid->links[number].capacity, total = 0.0;
  /* From bend to bend, until `now`. */
  for (double left = (double)(now - begin); left > 0.0;) {
    double step = until_bend(fluid, number, capacity, left), room = capacity;
    int64_t at = number;
    for (int64_t k = 0; k < fluid->counts.num_classes; k++, at += fluid->counts.num_links)
      room -= settle_class(fluid, number, &fluid->ports[at], room, step, left, now);
    total += (capacity - room) * step;
    left -= step;
  }
  return total;
}

/* Count a link that sent `total` bits, times 10^12, from `begin` to `now` as busy for so long. */
static inline void add_sent(struct core *core, struct port_link *link, int64_t number, int64_t begin, int64_t now,
                            double total) {
  int64_t bin = now >> core->state.bin_bits;
  if (begin >> core->state.bin_bits != bin || bin >= core->link_busy_rows) {
    double share = total / ((double)link->capacity * (double)(now - begin));
    add_share(core, number, begin, now, least_of(share, 1.0));
    return;
  }
  /* Nearly always both are in one bin. `busy` keeps the fraction of a picosecond for the next time. */
  double part = total / (double)link->capacity + link->busy;
  int64_t whole = (int64_t)(part + 1e-6);
  link->busy = part - (double)whole;
  core->link_busy[bin * core->link_busy_cols + number] += whole;
}

/* Bring the queues of a link to `now`. */
static inline void settle_queues(struct core *core, struct congestion_state *fluid, int64_t number, int64_t now) {
  struct port_link *link = &fluid->links[number];
  int64_t begin = link->touched;
  if (begin >= now) return;
  link->touched = now;
  struct port *port = &fluid->ports[number];
  double total;
  /* Most links, most of the time: nothing waits, and all that comes passes. */
  if (fluid->counts.num_classes == 1 && port->queue == 0.0 && port->paused == 0 &&
      port->load <= least(link->capacity, link->loop)) {
    if (port->load == 0) return;
    total = (double)port->load * (double)(now - begin);
    port->served += total * BYTES_PER_BPS_PS;
  } else {
    total = settle_waiting(fluid, number, begin, now);
    if (total == 0.0) return;
  }
  add_sent(core, link, number, begin, now, total);
}

/* Bring the queues of every link to `now`. */
void settle_all_queues(struct core *core, struct congestion_state *fluid, int64_t now) {
  for (int64_t link = 0; link < fluid->counts.num_links; link++) settle_queues(core, fluid, link, now);
}

/* -- what a port has and gives ---------------------------------------------------------------------------------- */

/* Whether anything on a port's link may wait. */
static inline bool is_hot(const struct congestion_state *fluid, int64_t p) {
  int64_t link = fluid->ports[p].link, load = 0, at = link;
  for (int64_t k = 0; k < fluid->counts.num_classes; k++, at += fluid->counts.num_links) {
    const struct port *port = &fluid->ports[at];
    if (port->queue > 0.0 || port->paused > 0 || port->load > fluid->links[link].loop) return true;
    load += port->load;
  }
  return load > fluid->links[link].capacity;
}

/* Bring the queues of a link to `now`, if anything may wait there, or if telemetry asks for it.
 *
 * Otherwise there is nothing to see, and the bytes that pass are counted in one piece, when the load changes: the sum
 * is the same whoever looked in between.
 */
static inline void look_at_link(struct core *core, struct congestion_state *fluid, int64_t link, int64_t now) {
  if (is_hot(fluid, link) || fluid->settings.wants_telemetry) settle_queues(core, fluid, link, now);
}

/* Bytes; a port with a shorter queue passes on what comes in. It is a packet, or where ports pause nearly nothing. */
static inline double least_queue(const struct congestion_state *fluid) {
  return fluid->settings.lossless ? LOSSLESS_DROP : fluid->settings.mss;
}

/* Bits per second that a port serves in the mean: what earlier classes and pauses leave of its link. */
static inline double service_rate(const struct congestion_state *fluid, int64_t p) {
  const struct port *port = &fluid->ports[p];
  double rate = (double)fluid->links[port->link].capacity;
  /* Where others leave nothing, it gets a little: so times stay finite. */
  double least = rate / 64.0;
  const struct port_link *link = &fluid->links[port->link];
  for (int64_t at = port->link; at < p; at += fluid->counts.num_links)
    rate -= within_loop(link, (double)fluid->ports[at].load);
  return most_of(within_loop(link, rate) * port->duty, least);
}

/* Bits per second that earlier classes leave a port: 0 while one of them has a queue, which takes the whole link, or
 * all that its credit lets through, until it is empty. */
static inline double left_for(const struct congestion_state *fluid, int64_t p) {
  int64_t number = fluid->ports[p].link;
  const struct port_link *link = &fluid->links[number];
  double rate = (double)link->capacity;
  for (int64_t at = number; at < p; at += fluid->counts.num_links) {
    const struct port *before = &fluid->ports[at];
    if (before->paused != 0) continue;
    double most = within_loop(link, rate);
    rate -= before->queue > 0.0 ? most : least_of(most, (double)before->load);
  }
  return within_loop(link, rate);
}

/* The share of its load that a port passes on: less than 1 if it can't serve more, more than 1 while it works off a
 * queue of over `least` bytes. What leaves the queue has the proportions of what comes in. */
static inline double passed_share(const struct congestion_state *fluid, int64_t p, double least) {
  const struct port *port = &fluid->ports[p];
  if (port->paused > 0) return 0.0;
  double load = (double)port->load, rate = left_for(fluid, p);
  if (load == 0.0 || (load <= rate && port->queue <= least)) return 1.0;
  return rate / load;
}
