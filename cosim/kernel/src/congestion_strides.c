/* Several rounds of a connection of `congestion` at once, where the scenario allows an error (`tolerance`).
 *
 * Where many connections share a port, a round is shorter than the time between two packets of one of them, and hardly
 * changes anything. So a round goes on for several round trips: at least until a packet is acknowledged, and for twice
 * as many each time that the control's answer hardly changes what is sent. When it ends, the control is asked once for
 * each round trip that has passed, by its own law, with what it would have been shown in the mean, until its answers
 * have moved by more than the tolerance. A queue that begins on the path, or a load there that changes much, ends it
 * early.
 */
#include "kernel.h"

#define LONGEST 8.0 /* such a round lasts for so many tolerances of what its message takes */
#define LEAST_CHANGE 0.125 /* of a rate that is taken, in tolerances */
enum { MOST_ROUNDS = 1024 };

/* How many round trips a round has lasted that ends `span` ps after it began. */
static inline double rounds_in(const struct congestion_state *fluid, const struct connection *one, double span) {
  if (fluid->settings.tolerance == 0.0 || one->period <= 0 || one->stride == 0) return 1.0;
  return most_of(1.0, (double)(int64_t)(span / (double)one->period + 0.5));
}

/* Whether a connection sends what its control allows. */
static inline bool is_as_wanted(const struct congestion_state *fluid, const struct connection *one) {
  return (double)one->rate >= (double)one->want * (1.0 - fluid->settings.tolerance);
}

/* How far what a connection sends moves by an answer, in proportion to `from` bits/s. */
static double moved_by(const struct congestion_state *fluid, const struct connection *one,
                       const struct control_row *row, double from) {
  double to = fluid->settings.gives_rate ? row->rate : row->window * 8e12 / one->seen_rtt, rate = (double)one->rate;
  to = least_of(to, (double)one->line);
  /* While its own port holds it back, what its control would allow beyond that changes nothing. */
  if (!is_as_wanted(fluid, one)) {
    to = least_of(to, rate);
    from = least_of(from, rate);
  }
  return from > 0.0 ? fabs(to - from) / from : 1.0;
}

/* Move a row's telemetry on by one of `left` round trips, after which it shows what the hops are like now. */
static void tell_later(struct congestion_state *fluid, const struct control_row *row, double left) {
  struct hop_sight *sights = &fluid->telemetry[row->begin];
  int64_t hops = fluid->conns[row->conn].hops;
  for (int64_t k = 0; k < hops; k++) {
    double queue = 0.0, tx = 0.0;
    for (int64_t s = fluid->conns[row->conn].strand; s != NONE; s = fluid->strands[s].next) {
      const struct strand *strand = &fluid->strands[s];
      if (!(strand->part > 0.0) || k >= strand->hops) continue;
      queue += strand->part * fluid->sights[strand->hop + k].queue;
      tx += strand->part * fluid->sights[strand->hop + k].rate;
    }
    sights[k].queue += (queue - sights[k].queue) / (left + 1.0);
    sights[k].tx = tx;
  }
}

/* Ask a compiled control for the further rounds of those rows that had several. */
static void ask_for_further_rounds(struct congestion_state *fluid, control_kernel kernel) {
  for (int64_t n = 0; n < fluid->counts.batch_size; n++) {
    struct control_row *row = &fluid->rows[n];
    const struct answer_before *before = &fluid->before[n];
    if (before->rounds <= 1.0 || row->first != 0.0) continue;
    const struct connection *one = &fluid->conns[row->conn];
    double from = fluid->settings.gives_rate ? before->rate : before->window * 8e12 / one->seen_rtt;
    from = least_of(from, (double)one->line);
    /* What was lost it has been told of. */
    row->lost = row->timeout = row->lost_inside = 0.0;
    row->marked = one->marked;
    double later = (one->seen_rtt - row->rtt) / before->rounds;
    for (double k = 1.0; k < before->rounds; k++) {
      if (moved_by(fluid, one, row, from) > fluid->settings.tolerance) break;
      row->chance = chance(one->salt, one->round + (int64_t)(k * row->elapsed));
      row->rtt += later;
      if (fluid->settings.wants_telemetry) tell_later(fluid, row, before->rounds - k);
      kernel(1, row, fluid->telemetry, fluid->state, fluid->parameters);
    }
  }
}

/* Whether a connection takes twice as many rounds at once from now on, as many, or one. */
static void set_stride(const struct congestion_state *fluid, struct connection *one, const struct control_row *row) {
  double moved = moved_by(fluid, one, row, (double)one->want), tolerance = fluid->settings.tolerance;
  if (moved > tolerance)
    one->stride = 1;
  else if (moved <= 0.5 * tolerance)
    one->stride = (int32_t)least(2 * most(one->stride, 1), MOST_ROUNDS);
}

/* How long a round of a connection lasts that begins now, where a round trip is `time`, ps. */
static double stretched(const struct congestion_state *fluid, struct connection *one, double time) {
  one->period = most((int64_t)time, 1);
  double rate = (double)one->rate;
  if (one->stride == 0 || one->bursts || one->spent || one->timeout_at > 0 || one->known_at > 0 || rate <= 0.0)
    return time;
  double span = least_of(time * (double)one->stride,
                         LONGEST * fluid->settings.tolerance * one->size * 8e12 / rate);
  if (fluid->settings.gives_rate) span = most_of(span, fluid->settings.mss * 8e12 / rate);
  return most_of(span, time);
}

/* The grid on which such a round ends: the largest power of two in an eighth of it. */
static inline int64_t stretched_grid(const struct connection *one, double span) {
  int64_t grid = one->grid;
  while (16.0 * (double)grid <= span) grid *= 2;
  return grid;
}

/* Links whose queue begins have to tell a connection whose round is a long one. */
static void have_told(struct congestion_state *fluid, const struct connection *one) {
  for (int64_t s = one->strand; s != NONE; s = fluid->strands[s].next) {
    const struct strand *strand = &fluid->strands[s];
    for (int64_t k = strand->hop; k < strand->hop + strand->hops; k++)
      if (!is_hot(fluid, fluid->hops[k].port)) fluid->ports[fluid->hops[k].link].hot = 0;
  }
}
