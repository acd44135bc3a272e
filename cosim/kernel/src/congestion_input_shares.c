/* How many bytes of a queue came from which port before it: an *input share* is all that one port brings to another.
 *
 * A queue is served in the order in which its bytes came, so an input share leaves as it came, a queue later
 * (congestion_boundaries.c): between two changes each input share loses its part of what the port serves. `turns`
 * counts the bytes that the port serves for each bit/s that leaves. With it, an input share is brought up to date on
 * its own, when its own rates change, and need not be when another's do.
 */
#include "kernel.h"

/* The input share of port p that comes from port u; NONE: it has none. */
static int64_t find_input(const struct congestion_state *fluid, int64_t p, int64_t u) {
  int64_t at = fluid->ports[p].inputs;
  while (at != NONE && fluid->inputs[at].port != u) at = fluid->inputs[at].next;
  return at;
}

/* An input share of port p that comes from port u, of which there is none yet. */
static int64_t make_input(struct congestion_state *fluid, int64_t p, int64_t u) {
  struct congestion_counts *counts = &fluid->counts;
  int64_t at = counts->free_input;
  if (at != NONE) {
    counts->free_input = fluid->inputs[at].next;
  } else {
    at = counts->inputs_used++;
    RESERVE(fluid, inputs, counts->inputs_used);
  }
  struct input_share *input = &fluid->inputs[at];
  input->port = (int32_t)u;
  input->hops = input->stopped = 0;
  input->load = input->out = 0;
  input->bytes = 0.0;
  input->next = fluid->ports[p].inputs;
  fluid->ports[p].inputs = (int32_t)at;
  return at;
}

/* Hop k, which is not its subflow's first, is put on its port, and brings nothing yet. */
static void join_input(struct congestion_state *fluid, int64_t k) {
  int64_t p = fluid->hops[k].port, u = fluid->hops[k - 1].port;
  int64_t at = find_input(fluid, p, u);
  if (at == NONE) at = make_input(fluid, p, u);
  fluid->inputs[at].hops++;
  fluid->sights[k].input = (int32_t)at;
}

/* Hop k is taken off its port, where nothing of it is left; an input share without hops is freed. */
static void leave_input(struct congestion_state *fluid, int64_t k) {
  int32_t left = fluid->sights[k].input;
  struct input_share *inputs = fluid->inputs;
  if (--inputs[left].hops > 0) return;
  int32_t *from = &fluid->ports[fluid->hops[k].port].inputs;
  while (*from != left) from = &inputs[*from].next;
  *from = inputs[left].next;
  inputs[left].next = (int32_t)fluid->counts.free_input;
  fluid->counts.free_input = left;
}

/* The turns of a line when its port has served so many bytes, if what leaves is shared as now. */
static inline double turns_at(const struct line *line, double served) {
  if (line->out <= 0) return line->turns;
  return line->turns + (served - line->since) / (double)line->out;
}

/* Bring an input share up to `now` by what came, and up to `turns` by what left. */
static inline void settle_input_at(struct input_share *input, double turns, int64_t now) {
  double came = (double)input->load * BYTES_PER_BPS_PS * (double)(now - input->at);
  /* It may be below 0, by the last bytes of a boundary: when that passes, they are made up for. */
  input->bytes += came - (double)input->out * (turns - input->turns);
  input->at = now;
  input->turns = turns;
}

/* Bring an input share of port p, whose queue is settled, up to `now`. */
static inline void settle_input(struct congestion_state *fluid, int64_t p, struct input_share *input, int64_t now) {
  const struct port *port = &fluid->ports[p];
  const struct line *line = &fluid->lines[p];
  settle_input_at(input, turns_at(line, port->served), now);
  /* An empty queue, of which all boundaries have passed, holds nothing of any input share: rounding ends here. */
  if (port->queue == 0.0 && line->head == NONE) input->bytes = 0.0;
}

/* Bring all input shares of port p, whose queue is settled, up to `now`. */
static void settle_inputs(struct congestion_state *fluid, int64_t p, int64_t now) {
  for (int64_t at = fluid->ports[p].inputs; at != NONE; at = fluid->inputs[at].next)
    settle_input(fluid, p, &fluid->inputs[at], now);
}

/* Hop k brings so many bits per second more to its port, whose queue is settled. */
static inline void bring_more(struct congestion_state *fluid, int64_t k, int64_t more, int64_t now) {
  struct input_share *input = &fluid->inputs[fluid->sights[k].input];
  settle_input(fluid, fluid->hops[k].port, input, now);
  input->load += more;
}

/* From when its port has served so many bytes, hop k leaves it at another rate; the port's queue is settled.
 *
 * That may be a few bytes ahead (see congestion_boundaries.c). The new rate holds at once, but input shares are
 * accounted for as if it began there. Otherwise an input share that comes and goes would take those bytes from another
 * each time, which adds up as long as anything stands in the queue.
 */
static void set_out(struct congestion_state *fluid, int64_t k, int64_t out, double served, int64_t now) {
  struct line *line = &fluid->lines[fluid->hops[k].port];
  int64_t more = out - fluid->outs[k];
  if (fluid->settings.lossless) {
    double turns = turns_at(line, served);
    if (fluid->hops[k].leads == 0) {
      struct input_share *input = &fluid->inputs[fluid->sights[k].input];
      settle_input_at(input, turns, now);
      input->out += more;
    }
    line->turns = turns;
    line->since = served;
  }
  line->out += more;
  fluid->outs[k] = out;
}
