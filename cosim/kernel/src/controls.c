/* Congestion controls: what each may send next whose round trip has just ended. What they are, and where they come from:
 * cosim/network/congestion/controls; what all are shown: cosim/network/congestion/contract.py.
 *
 * Each is a step for one connection, and a loop over a batch. A control's state of a connection and its parameters are
 * records here, in the order in which the control's class names them.
 */
#include "kernel.h"

static const double NO_THRESHOLD = 1e18; /* bytes, and ps: more than any window, or round trip */
static const double BITS_A_BYTE_PS = 8e12; /* bits/s in a byte a picosecond */

/* A control's loop, of its step for one row. */
#define CONTROL(name, step, state_of_one, parameters_of_it)                                                      \
  void name(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,                     \
            const double *parameters) {                                                                          \
    for (int64_t i = 0; i < n; i++)                                                                              \
      step(&rows[i], (state_of_one *)(void *)&state[rows[i].conn * MOST_STATES],                                 \
           (const parameters_of_it *)(const void *)parameters, telemetry);                                       \
  }

/* Bandwidth-delay product of a path, bytes. */
static double path_product(const struct control_row *row) { return row->line * row->base_rtt / BITS_A_BYTE_PS; }

/* -- TCP CUBIC ----------------------------------------------------------------------------------------------------- */

struct cubic_state {
  double threshold, cut, most, time, reno, top, least_rtt;
};

struct cubic_parameters {
  double steepness, beta, fast_convergence;
  double train; /* slow start ends where acknowledgements come in a row for so much of a round trip; 0: never */
  double first_window; /* packets */
  double friendly;
};

static const double HYSTART_LEAST = 16.0; /* packets; below, Linux's HyStart doesn't look either */
/* Before the first cut at least a packet for so many acknowledged: 5 % a round trip, as in Linux and ns-3. */
static const double CUBIC_UNTRIED = 20.0;
/* A fixed number: the same result on any machine, where a library's root may differ. */
enum { NEWTON_STEPS = 80 };

/* The cube root of x >= 0. */
double cube_root(double x) {
  if (x <= 0.0) return 0.0;
  double y = most_of(x, 1.0);
  for (int k = 0; k < NEWTON_STEPS; k++) y = (2.0 * y + x / (y * y)) / 3.0;
  return y;
}

/* Nothing came back: slow start anew from one packet, to where the window would have been cut to. */
static void cubic_times_out(struct control_row *row, struct cubic_state *own, const struct cubic_parameters *p) {
  own->threshold = most_of(p->beta * row->window, 2.0 * row->mss);
  own->cut = 0.0;
  own->top = 0.0;
  own->least_rtt = NO_THRESHOLD;
  row->window = row->mss;
}

/* The window after a loss or mark, and the cubic from there on (RFC 9438, 4.6 and 4.7). */
static void cubic_cuts(struct control_row *row, struct cubic_state *own, const struct cubic_parameters *p) {
  own->cut = 1.0;
  double packets = row->window / row->mss, top = packets;
  /* Fast convergence: who is cut below where it was cut before gives way to a sender that came later. */
  if (p->fast_convergence != 0.0 && packets < own->top) top = packets * (1.0 + p->beta) / 2.0;
  own->top = packets;
  own->most = top;
  packets = most_of(p->beta * packets, 2.0);
  own->threshold = packets * row->mss;
  own->time = 0.0;
  own->reno = packets;
  row->window = packets * row->mss;
}

/* HyStart: the cubic begins here where acknowledgements come in a row for too long, or the window is twice what is on
 * its way. */
static void cubic_may_end_slow_start(struct control_row *row, struct cubic_state *own,
                                     const struct cubic_parameters *p) {
  double window = row->window;
  if (window >= own->threshold || p->train == 0.0 || window < HYSTART_LEAST * row->mss) return;
  /* Acknowledgements of a round come over at most a round trip; all of it where there is a queue. */
  double train = row->rtt;
  if (row->rtt <= own->least_rtt) train = least_of(window * BITS_A_BYTE_PS / row->line, row->rtt);
  if (train <= p->train * own->least_rtt && window < 2.0 * row->flight) return;
  own->threshold = window;
  own->most = window / row->mss;
  own->time = 0.0;
  own->reno = window / row->mss;
}

/* Grow along the cubic, or as Reno would where that is more (RFC 9438, 4.2 to 4.5). */
static void cubic_grows(struct control_row *row, struct cubic_state *own, const struct cubic_parameters *p) {
  double packets = row->window / row->mss;
  own->time += row->elapsed * 1e-12;
  double root = cube_root(most_of(own->most - own->threshold / row->mss, 0.0) / p->steepness);
  double t = own->time + row->rtt * 1e-12 - root;
  /* Within a round trip it grows by half at most, however far the cubic has gone meanwhile. */
  double target = least_of(most_of(p->steepness * t * t * t + own->most, packets), 1.5 * packets);
  double acked = least_of(row->acked / row->window, 1.0);
  double grown = packets + row->gain * (target - packets) * acked;
  if (own->top == 0.0) grown = most_of(grown, packets * (1.0 + row->gain * acked / CUBIC_UNTRIED));
  if (p->friendly != 0.0) {
    /* Reno's slope for this beta, so that both get the same; once it is where the cut was, Reno's own. */
    double slope = own->reno >= own->most ? 1.0 : 3.0 * (1.0 - p->beta) / (1.0 + p->beta);
    own->reno += row->gain * slope * acked;
    grown = most_of(grown, own->reno);
  }
  row->window = grown * row->mss;
}

static void cubic_step(struct control_row *row, struct cubic_state *own, const struct cubic_parameters *p,
                       const struct hop_sight *telemetry) {
  (void)telemetry;
  if (row->first != 0.0) { /* of a sender that knows nothing of the path */
    row->window = p->first_window * row->mss;
    *own = (struct cubic_state){.threshold = NO_THRESHOLD, .least_rtt = NO_THRESHOLD};
    return;
  }
  if (row->timeout != 0.0) {
    cubic_times_out(row, own, p);
    return;
  }
  if ((row->lost > 0.0 || row->marked > 0.0) && own->cut == 0.0) {
    cubic_cuts(row, own, p);
    return;
  }
  /* The round after a cut is of what was sent before it: it says nothing of the window that is there. */
  bool was_cut = own->cut != 0.0;
  own->cut = 0.0;
  own->least_rtt = least_of(row->rtt, own->least_rtt);
  if (was_cut) return;
  cubic_may_end_slow_start(row, own, p);
  if (row->window >= own->threshold) {
    if (row->limited != 0.0) cubic_grows(row, own, p);
  } else if (row->window < 2.0 * row->flight) {
    row->window = least_of(row->window + row->acked, own->threshold);
    row->slow_start = 1.0;
  }
}

CONTROL(update_cubic, cubic_step, struct cubic_state, struct cubic_parameters)

/* -- DCQCN --------------------------------------------------------------------------------------------------------- */

struct dcqcn_state {
  double alpha, target;
  double timer, bytes; /* since their last expiry */
  double times, counts; /* expiries of each since the last cut */
  double since; /* the last notification, ps; no more than their interval */
  double alpha_time;
};

struct dcqcn_parameters {
  double g, timer, byte_counter, stages;
  double additive, hyper; /* increases, per bit/s of line */
  double interval; /* of notifications, ps */
  double alpha_timer;
  double clamp; /* 1: every notification sets the target */
  double least_rate;
};

static const double DCQCN_LEAST_ALPHA = 0x1p-10;
/* How often marks are looked for where a notification may come at any time, in its interval; at most once in the bare
 * round trip. */
static const double DCQCN_LOOK = 0.125;

/* (1 - p)^count by squaring; what is left of a whole number is a packet with that chance. */
double none_of(double p, double count) {
  int64_t left = (int64_t)count;
  double found = 1.0 - (count - (double)left) * p;
  for (double base = 1.0 - p; left > 0; base *= base, left >>= 1)
    if (left & 1) found *= base;
  return found;
}

/* What a notification does: equation 1, and all of the recovery begins anew. */
static void dcqcn_cuts(struct control_row *row, struct dcqcn_state *own, const struct dcqcn_parameters *p) {
  /* Several in a row are one event: the target stays where it was before the first. */
  if (p->clamp != 0.0 || own->times > 0.0 || own->counts > 0.0) own->target = row->rate;
  double rate = row->rate * (1.0 - 0.5 * own->alpha);
  own->alpha += p->g * (1.0 - own->alpha);
  own->timer = own->bytes = own->times = own->counts = own->alpha_time = own->since = 0.0;
  row->rate = most_of(rate, p->least_rate);
  row->wait = least_of(p->interval, p->timer / row->weight);
}

/* Equation 2, for all periods of the alpha timer since the last time at once. */
static void dcqcn_alpha_falls(const struct control_row *row, struct dcqcn_state *own,
                              const struct dcqcn_parameters *p) {
  own->alpha_time += row->elapsed;
  double periods = floor(own->alpha_time / p->alpha_timer);
  own->alpha_time -= periods * p->alpha_timer;
  own->alpha *= none_of(p->g, periods);
  /* From there on it changes no rate, and a sender that rests is not woken for it. */
  if (own->alpha < DCQCN_LEAST_ALPHA) own->alpha = own->alpha_time = 0.0;
}

/* Expiries of the timer and the byte counter since the last time, each a step towards the target: fast recovery,
 * additive and hyper increase (figure 7 of the paper). */
static void dcqcn_recovers(struct control_row *row, struct dcqcn_state *own, const struct dcqcn_parameters *p) {
  double rate = row->rate, timer = p->timer / row->weight;
  own->timer += row->elapsed;
  own->bytes += row->acked;
  while (own->timer >= timer || own->bytes >= p->byte_counter) {
    if (own->timer >= timer) {
      own->timer -= timer;
      own->times += 1.0;
    } else {
      own->bytes -= p->byte_counter;
      own->counts += 1.0;
    }
    if (least_of(own->times, own->counts) > p->stages)
      own->target += p->hyper * row->line;
    else if (most_of(own->times, own->counts) > p->stages)
      own->target += p->additive * row->line;
    own->target = least_of(own->target, row->line);
    rate = 0.5 * (rate + own->target);
  }
  row->wait = least_of(row->wait, timer - own->timer);
  /* Halving the distance would come near for ever, and never let the sender rest at line rate. */
  row->rate = rate > row->line * (1.0 - 1e-6) ? row->line : rate;
}

static void dcqcn_step(struct control_row *row, struct dcqcn_state *own, const struct dcqcn_parameters *p,
                       const struct hop_sight *telemetry) {
  (void)telemetry;
  double look = most_of(row->base_rtt, DCQCN_LOOK * p->interval);
  if (row->first != 0.0) { /* at line rate; the first notification halves it */
    row->rate = row->line;
    *own = (struct dcqcn_state){.alpha = 1.0, .target = row->line, .since = p->interval};
    row->wait = look;
    return;
  }
  own->since = least_of(own->since + row->elapsed, p->interval);
  /* A receiver sends one notification in an interval, however many packets of it are marked. */
  bool may_come = own->since >= p->interval;
  if (may_come && row->chance < 1.0 - none_of(row->marked, row->delivered / row->mss)) {
    dcqcn_cuts(row, own, p);
    return;
  }
  row->wait = may_come ? look : p->interval - own->since;
  dcqcn_alpha_falls(row, own, p);
  if (row->rate < row->line)
    dcqcn_recovers(row, own, p);
  else
    own->timer = own->bytes = own->times = own->counts = 0.0;
}

CONTROL(update_dcqcn, dcqcn_step, struct dcqcn_state, struct dcqcn_parameters)

/* -- DCTCP --------------------------------------------------------------------------------------------------------- */

struct dctcp_state {
  double alpha, threshold, cut;
};

struct dctcp_parameters {
  double g;
  double first_window; /* packets */
};

static const double DCTCP_LEAST_ALPHA = 0x1p-10;

static void dctcp_step(struct control_row *row, struct dctcp_state *own, const struct dctcp_parameters *p,
                       const struct hop_sight *telemetry) {
  (void)telemetry;
  if (row->first != 0.0) {
    row->window = p->first_window * row->mss;
    *own = (struct dctcp_state){1.0, NO_THRESHOLD, 0.0};
    return;
  }
  double alpha = (1.0 - p->g) * own->alpha + p->g * row->marked, window = row->window;
  own->alpha = alpha < DCTCP_LEAST_ALPHA ? 0.0 : alpha;
  if (row->timeout != 0.0) {
    own->threshold = most_of(0.5 * window, 2.0 * row->mss);
    own->cut = 0.0;
    row->window = row->mss;
    return;
  }
  bool was_cut = own->cut != 0.0;
  /* Not again for what the round met that was under way, unless the port marks at its end still. */
  if ((row->lost > 0.0 || row->marked > 0.0) && (!was_cut || row->again != 0.0)) {
    window *= row->lost > 0.0 ? 0.5 : 1.0 - 0.5 * own->alpha;
    row->window = own->threshold = most_of(window, 2.0 * row->mss);
    own->cut = 1.0;
    return;
  }
  own->cut = 0.0;
  if (was_cut) return;
  if (window >= own->threshold) {
    if (row->limited != 0.0) row->window = window + row->mss * least_of(row->acked / window, 1.0);
  } else if (window < 2.0 * row->flight) {
    row->window = least_of(window + row->acked, own->threshold);
    row->slow_start = 1.0;
  }
}

CONTROL(update_dctcp, dctcp_step, struct dctcp_state, struct dctcp_parameters)

/* -- fixed windows ------------------------------------------------------------------------------------------------- */

struct fixed_parameters {
  double products; /* bandwidth-delay products */
};

static void fixed_step(struct control_row *row, double *own, const struct fixed_parameters *p,
                       const struct hop_sight *telemetry) {
  (void)own, (void)telemetry;
  row->window = p->products * row->weight * row->line * row->base_rtt / BITS_A_BYTE_PS;
}

CONTROL(update_fixed, fixed_step, double, struct fixed_parameters)

/* -- HPCC ---------------------------------------------------------------------------------------------------------- */

struct hpcc_state {
  double before; /* the window that telemetry is about */
  double stage;
};

struct hpcc_parameters {
  double eta, most_stages;
  double additive; /* bytes */
};

static void hpcc_step(struct control_row *row, struct hpcc_state *own, const struct hpcc_parameters *p,
                      const struct hop_sight *telemetry) {
  double product = path_product(row);
  if (row->first != 0.0) {
    row->window = product;
    *own = (struct hpcc_state){product, 0.0};
    return;
  }
  double load = 0.0;
  for (int64_t k = 0; k < (int64_t)row->hops; k++) {
    const struct hop_sight *hop = &telemetry[row->begin + k];
    if (hop->capacity <= 0.0) continue;
    double waiting = hop->queue * BITS_A_BYTE_PS / (hop->capacity * row->base_rtt);
    load = most_of(load, waiting + hop->tx / hop->capacity);
  }
  double window = own->before;
  own->before = row->window;
  if (load >= p->eta || (own->stage >= p->most_stages && load > 0.0)) {
    window = window * p->eta / load + row->gain * p->additive;
    own->stage = 0.0;
  } else {
    window += row->gain * p->additive;
    own->stage += 1.0;
  }
  row->window = least_of(most_of(window, p->additive), product);
}

CONTROL(update_hpcc, hpcc_step, struct hpcc_state, struct hpcc_parameters)

/* -- TCP NewReno --------------------------------------------------------------------------------------------------- */

struct newreno_state {
  double threshold, cut;
};

struct newreno_parameters {
  double beta;
  double first_window; /* packets */
  double ack_every; /* packets that an acknowledgement is for */
};

static void newreno_step(struct control_row *row, struct newreno_state *own, const struct newreno_parameters *p,
                         const struct hop_sight *telemetry) {
  (void)telemetry;
  if (row->first != 0.0) {
    row->window = p->first_window * row->mss;
    *own = (struct newreno_state){NO_THRESHOLD, 0.0};
    return;
  }
  double window = row->window;
  if (row->timeout != 0.0) {
    own->threshold = most_of(p->beta * window, 2.0 * row->mss);
    own->cut = 0.0;
    row->window = row->mss;
    return;
  }
  bool was_cut = own->cut != 0.0;
  if ((row->lost > 0.0 || row->marked > 0.0) && !was_cut) {
    row->window = own->threshold = most_of(p->beta * least_of(window, row->flight), 2.0 * row->mss);
    own->cut = 1.0;
    return;
  }
  own->cut = 0.0;
  if (was_cut) return;
  if (window >= own->threshold) {
    if (row->limited != 0.0) row->window = window + row->mss * least_of(row->acked / window, 1.0) / p->ack_every;
  } else if (window < 2.0 * row->flight) {
    row->window = least_of(window + row->acked / p->ack_every, own->threshold);
    row->slow_start = 1.0;
  }
}

CONTROL(update_newreno, newreno_step, struct newreno_state, struct newreno_parameters)

/* -- NSCC ---------------------------------------------------------------------------------------------------------- */

struct nscc_state {
  double average; /* delay, ps */
  double fast; /* bytes since the delay was next to nothing */
  double done, since; /* bytes and time, since quick adapt looked last */
};

struct nscc_parameters {
  double target; /* delay, ps; 0: 0.75 bare round trips */
  double gamma, alpha, fair, fast, eta, first_window;
};

static const double NSCC_PRODUCT = 150000.0; /* bytes; of the network that its constants are for */
static const double NSCC_RTT = 12e6; /* ps; of the same */
static const double NSCC_NEAR_EMPTY = 1e6; /* ps */
static const double NSCC_GAIN = 0.0125; /* of a packet, in the average */

/* The delay in the mean; `target` is what it should be. */
static double nscc_average(const struct control_row *row, const struct nscc_state *own, double delay, double target) {
  double sample = delay;
  /* A packet that nobody marked counts as a quarter of a round trip, however long it took. */
  if (delay > target) sample = delay * row->marked + 0.25 * row->base_rtt * (1.0 - row->marked);
  if (row->lost > 0.0) sample = most_of(sample, row->base_rtt);
  double kept = pow(1.0 - NSCC_GAIN, row->acked / row->mss + row->lost);
  return sample + (own->average - sample) * kept;
}

/* Quick adapt: whether so little came through that the window becomes what did. */
static bool nscc_adapts(struct control_row *row, struct nscc_state *own, double delay, double target, double most) {
  own->done += row->acked;
  own->since += row->elapsed;
  if (own->since < row->base_rtt + target) return false;
  double done = own->done;
  own->done = own->since = 0.0;
  if (!(row->lost > 0.0 || delay > 4.0 * target) || done >= most / 8.0) return false;
  row->window = most_of(done, row->mss);
  own->fast = 0.0;
  return true;
}

static void nscc_step(struct control_row *row, struct nscc_state *own, const struct nscc_parameters *p,
                      const struct hop_sight *telemetry) {
  (void)telemetry;
  double product = path_product(row), most = most_of(1.5 * product, row->mss);
  if (row->first != 0.0) {
    row->window = most_of(p->first_window * product, row->mss);
    *own = (struct nscc_state){0};
    return;
  }
  double scale = product / NSCC_PRODUCT, target = p->target > 0.0 ? p->target : 0.75 * row->base_rtt;
  double delay = most_of(row->rtt - row->base_rtt, 0.0), good = row->acked * (1.0 - row->marked);
  double average = nscc_average(row, own, delay, target);
  /* Less than a picosecond is nothing: a control that has settled stands still. */
  own->average = average >= 1.0 ? average : 0.0;
  double window = most_of(row->window - row->lost * row->mss, row->mss);
  if (nscc_adapts(row, own, delay, target, most)) return;
  if (delay >= target) {
    own->fast = 0.0;
    window += p->fair * row->mss * scale * good / window;
    if (row->marked > 0.0 && average > target)
      window *= most_of(1.0 - p->gamma * (average - target) / average, 0.5);
  } else if (delay < NSCC_NEAR_EMPTY && own->fast + good > window) {
    own->fast = most;
    window += p->fast * scale * good;
  } else {
    own->fast = delay < NSCC_NEAR_EMPTY ? least_of(own->fast + good, most) : 0.0;
    double rise = p->alpha * row->mss * scale * target / NSCC_RTT;
    window += rise * good / window * (target - delay) / target;
  }
  row->window = least_of(most_of(window + p->eta * row->mss * scale, row->mss), most);
}

CONTROL(update_nscc, nscc_step, struct nscc_state, struct nscc_parameters)

/* -- RCCC ---------------------------------------------------------------------------------------------------------- */

struct rccc_state {
  double less; /* by which credit is lowered, of what is granted */
  double mean; /* marked part */
  double rises; /* in a row */
  double since, got, marked, lost; /* time and bytes, since the factor was worked out last */
};

struct rccc_parameters {
  double pull; /* share of the port */
  double least; /* factor; 0: the fabric is not looked at */
  double target, decrease, increase, gain;
};

static const double RCCC_INTERVAL = 1.5; /* bare round trips */
static const double RCCC_MOST_RISES = 20.0;

/* The factor by what the fabric did in the interval that ended. */
static void rccc_lowers(const struct control_row *row, struct rccc_state *own, const struct rccc_parameters *p) {
  double got = most_of(own->got, row->mss);
  double lost = least_of(own->lost / got, 1.0), marked = least_of(own->marked / got, 1.0);
  double factor = 1.0 - own->less - lost;
  own->mean += p->gain * (marked - own->mean);
  if (own->mean > p->target) factor *= 1.0 - (own->mean - p->target) * p->decrease;
  if (lost > 0.0 || own->mean > p->target) {
    own->rises = 0.0;
  } else {
    /* By twice as much each time while nothing is marked at all. */
    factor += p->increase * (marked == 0.0 ? (double)(1 << (int)own->rises) : 1.0);
    own->rises = least_of(own->rises + 1.0, RCCC_MOST_RISES);
  }
  own->less = 1.0 - least_of(most_of(factor, p->least), 1.0);
  own->since = own->got = own->marked = own->lost = 0.0;
}

static void rccc_step(struct control_row *row, struct rccc_state *own, const struct rccc_parameters *p,
                      const struct hop_sight *telemetry) {
  (void)telemetry;
  if (row->first != 0.0) {
    row->rate = row->line;
    return;
  }
  if (p->least > 0.0) {
    own->since += row->elapsed;
    own->got += row->acked;
    own->marked += row->marked * row->acked;
    own->lost += row->lost_inside * row->mss;
    if (own->since >= RCCC_INTERVAL * row->base_rtt) rccc_lowers(row, own, p);
  }
  row->rate = row->granted * p->pull * (1.0 - own->less);
}

CONTROL(update_rccc, rccc_step, struct rccc_state, struct rccc_parameters)

/* -- Swift --------------------------------------------------------------------------------------------------------- */

struct swift_state {
  double cut;
};

struct swift_parameters {
  double base_target, per_hop; /* ps */
  double additive; /* packets */
  double beta, most_cut;
  double range; /* the most that small windows add to the target, ps */
  double least_window, most_window; /* which get all of it and none, packets */
};

static const double SWIFT_LEAST = 1e-3; /* packets of a window: one in a thousand round trips */

/* The round trip aimed at. */
static double swift_target(const struct control_row *row, double packets, const struct swift_parameters *p) {
  double scale = p->range / (1.0 / sqrt(p->least_window) - 1.0 / sqrt(p->most_window));
  double offset = -scale / sqrt(p->most_window);
  double flows = most_of(0.0, least_of(scale / sqrt(packets) + offset, p->range));
  return p->base_target + row->hops * p->per_hop + flows;
}

static void swift_step(struct control_row *row, struct swift_state *own, const struct swift_parameters *p,
                       const struct hop_sight *telemetry) {
  (void)telemetry;
  if (row->first != 0.0) {
    row->window = most_of(path_product(row), row->mss);
    own->cut = 0.0;
    return;
  }
  double packets = row->window / row->mss, target = swift_target(row, packets, p);
  bool was_cut = own->cut != 0.0;
  own->cut = 0.0;
  if (row->lost > 0.0 && !was_cut) {
    packets *= 1.0 - p->most_cut;
    own->cut = 1.0;
  } else if (row->rtt > target) {
    if (!was_cut) {
      packets *= most_of(1.0 - p->beta * (row->rtt - target) / row->rtt, 1.0 - p->most_cut);
      own->cut = 1.0;
    }
  } else if (row->limited != 0.0) {
    packets += p->additive * least_of(row->acked / row->window, 1.0);
  }
  row->window = most_of(packets, SWIFT_LEAST) * row->mss;
}

CONTROL(update_swift, swift_step, struct swift_state, struct swift_parameters)

/* -- TIMELY -------------------------------------------------------------------------------------------------------- */

struct timely_state {
  double before; /* the last round trip, ps */
  double gradient, rounds;
};

struct timely_parameters {
  double ewma, low, high, beta;
  double additive; /* per bit/s of line */
  double rounds, least_rtt;
  double least_rate; /* of line */
  double patched; /* beta of the form with a fixed point; 0: as published */
};

static void timely_step(struct control_row *row, struct timely_state *own, const struct timely_parameters *p,
                        const struct hop_sight *telemetry) {
  (void)telemetry;
  if (row->first != 0.0) {
    row->rate = row->line;
    *own = (struct timely_state){row->base_rtt, 0.0, 0.0};
    return;
  }
  double change = (1.0 - p->ewma) * own->gradient + p->ewma * (row->rtt - own->before), rate = row->rate;
  if (fabs(change) < 1.0) change = 0.0;
  own->before = row->rtt;
  own->gradient = change;
  if (row->rtt < p->low || (p->patched == 0.0 && row->rtt <= p->high && change <= 0.0)) {
    rate += (own->rounds >= p->rounds ? 5.0 : 1.0) * p->additive * row->line;
    own->rounds = least_of(own->rounds + 1.0, p->rounds);
  } else {
    own->rounds = 0.0;
    if (row->rtt > p->high) {
      rate *= 1.0 - p->beta * (1.0 - p->high / row->rtt);
    } else if (p->patched != 0.0) {
      double weight = least_of(most_of(2.0 * change / p->least_rtt + 0.5, 0.0), 1.0);
      rate *= 1.0 - p->patched * weight * (row->rtt - p->low) / p->low;
      rate += (1.0 - weight) * p->additive * row->line;
    } else {
      rate *= most_of(1.0 - p->beta * change / p->least_rtt, 0.0);
    }
  }
  row->rate = least_of(most_of(rate, p->least_rate * row->line), row->line);
}

CONTROL(update_timely, timely_step, struct timely_state, struct timely_parameters)
