/* Several rounds of a connection of `congestion` at once, where the scenario allows an error (`tolerance`).
 *
 * Where many connections share a port, a round is shorter than the time between two packets of one of them, and hardly
 * changes anything. So a round goes on for twice as many round trips each time that the control's answer hardly changes
 * what is sent; under a control that gives a rate, at least until a packet has left. When it ends, the control is asked
 * once for each round trip that has passed, by its own law, until its answers have moved by more than the tolerance.
 * Each time it is shown what it would have been shown: marks and bytes in the mean, round trips and queues on a line
 * from those at the beginning to those at the end. A queue that begins on the path, or a load there that changes much,
 * ends such a round after one round trip more.
 */
#include "kernel.h"

#define LONGEST 16.0       /* a round lasts at most for so many tolerances of what its message takes */
#define LEAST_CHANGE 0.125 /* of a rate that is taken, in tolerances */
enum { MOST_ROUNDS = 1024 };

/* How many round trips a round has lasted that ends `span` ps after it began. */
static inline double rounds_in(const struct congestion_state *fluid, const struct connection *one, double span) {
  if (fluid->settings.tolerance == 0.0 || one->stride == 0) return 1.0;
  return most_of(1.0, (double)(int64_t)(span / (double)one->period + 0.5));
}

/* Whether a connection sends what its control allows, not what its own port has left. */
static inline bool is_as_wanted(const struct congestion_state *fluid, const struct connection *one) {
  return (double)one->rate >= (double)one->want * (1.0 - fluid->settings.tolerance);
}

/* The most that a connection sends, whatever its control allows, bits/s. */
static inline double most_sent(const struct congestion_state *fluid, const struct connection *one) {
  return (double)(is_as_wanted(fluid, one) ? one->line : one->rate);
}

/* Bits per second of an answer's one. */
static inline double unit_of_answer(const struct congestion_state *fluid, const struct connection *one) {
  return fluid->settings.gives_rate ? 1.0 : 8e12 / one->seen_rtt;
}

static inline double answer_of(const struct congestion_state *fluid, const struct control_row *row) {
  return fluid->settings.gives_rate ? row->rate : row->window;
}

/* Keep between what answers hardly move what a connection sends. */
static void note_bounds(const struct congestion_state *fluid, const struct control_row *row,
                        struct answer_before *before) {
  const struct connection *one = &fluid->conns[row->conn];
  double unit = unit_of_answer(fluid, one), top = most_sent(fluid, one), tolerance = fluid->settings.tolerance;
  double from = least_of(answer_of(fluid, row) * unit, top);
  before->low = from * (1.0 - tolerance) / unit;
  before->high = from * (1.0 + tolerance) >= top ? 1e300 : from * (1.0 + tolerance) / unit;
}

/* Move a row's telemetry on by one of `left` round trips, after which it shows what the hops are like now. */
static void tell_later(struct congestion_state *fluid, const struct control_row *row, double left) {
  struct hop_sight *sights = &fluid->telemetry[row->begin];
  int64_t hops = fluid->conns[row->conn].hops;
  for (int64_t k = 0; k < hops; k++) {
    double queue = 0.0, tx = 0.0;
    for (int64_t s = fluid->conns[row->conn].subflow; s != NONE; s = fluid->subflows[s].next) {
      const struct subflow *subflow = &fluid->subflows[s];
      if (!(subflow->part > 0.0) || k >= subflow->hops) continue;
      queue += subflow->part * fluid->sights[subflow->hop + k].queue;
      tx += subflow->part * fluid->sights[subflow->hop + k].rate;
    }
    sights[k].queue += (queue - sights[k].queue) / left;
    sights[k].tx = tx;
  }
}

/* Have a row show the next of the round trips of which `left` are left with it, the last one too. */
static void show_next_round(struct congestion_state *fluid, struct control_row *row, double left, int64_t now) {
  const struct connection *one = &fluid->conns[row->conn];
  /* What was lost it has been told of. */
  row->lost = row->timeout = row->lost_inside = 0.0;
  row->marked = one->marked;
  row->rtt += (one->seen_rtt - row->rtt) / (left + 1.0);
  row->chance = chance(one->salt, now - (int64_t)(left * row->elapsed));
  if (fluid->settings.wants_telemetry) tell_later(fluid, row, left + 1.0);
}

/* Of `count` rows of a batch from `first` on, those about which the control is to be asked again come first, and show the
 * next of their rounds; returns how many there are. */
static int64_t show_next_rounds(struct congestion_state *fluid, int64_t first, int64_t count, int64_t now) {
  if (fluid->settings.tolerance == 0.0) return 0;
  int64_t end = first + count;
  for (int64_t n = first; n < end;) {
    struct control_row *row = &fluid->rows[n];
    struct answer_before *before = &fluid->before[n];
    double answer = answer_of(fluid, row);
    if (--before->rounds > 0.0 && before->low <= answer && answer <= before->high) {
      show_next_round(fluid, row, before->rounds, now);
      n++;
      continue;
    }
    end--;
    struct control_row done = *row;
    struct answer_before its = *before;
    *row = fluid->rows[end];
    *before = fluid->before[end];
    fluid->rows[end] = done;
    fluid->before[end] = its;
  }
  return end - first;
}

/* Whether a connection takes twice as many rounds at once from now on, as many, or one. */
static void set_stride(const struct congestion_state *fluid, struct connection *one, const struct control_row *row) {
  double top = most_sent(fluid, one), tolerance = fluid->settings.tolerance;
  double from = least_of((double)one->want, top);
  double moved = fabs(least_of(answer_of(fluid, row) * unit_of_answer(fluid, one), top) - from);
  if (moved > tolerance * from || from == 0.0)
    one->stride = 1;
  else if (moved <= 0.5 * tolerance * from)
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
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++)
      if (!is_hot(fluid, fluid->hops[k].port)) fluid->ports[fluid->hops[k].link].hot = 0;
  }
}
