/* Rounds of `congestion`: what a connection saw on its path during a round trip, and what it sends in the next one. */
#include "kernel.h"

#define NO_BUDGET 1e30 /* bytes of a budget that nothing uses up */
#define LIMITED 0.93 /* of a window that is in flight: the window limits its sender */
#define LOST_AGAIN 0.5 /* packets */
#define LEAST_OWED 0.5 /* lost bytes that are sent again */
#define ROUND_DUST 1.0 /* bytes; a queue below it passes on what comes */

/* -- what is sent -------------------------------------------------------------------------------------------------- */

/* Bytes that a connection has sent since `since`, or since it has its rate, if that is later. */
static inline double sent_from(const struct connection *one, int64_t since, int64_t now) {
  return (double)one->rate * BYTES_PER_BPS_PS * (double)(now - most(one->touched, since));
}

/* Bytes that a connection has not sent yet. */
static inline double bytes_left(const struct connection *one, int64_t now) {
  return most_of(0.0, one->remaining - sent_from(one, one->touched, now));
}

/* Bytes that a connection has sent in the round under way. */
static inline double sent_in_round(const struct connection *one, int64_t now) {
  return one->round_sent + sent_from(one, one->round, now);
}

/* Count what a connection has sent of its flow, and so of its coflow, in whole bytes: sums of them don't depend on the
 * order of connections. */
static inline void count_whole(struct congestion_state *fluid, struct connection *one, int64_t now) {
  double left = bytes_left(one, now);
  /* Headers have their part of what has gone. */
  int64_t whole = left > 0.0 ? (int64_t)((one->size - left) * ((double)one->payload / one->size)) : one->payload;
  if (one->coflow >= 0) fluid->coflows[one->coflow].sent += whole - one->sent;
  one->sent = whole;
}

/* Count what a connection has sent up to `now`, from where on it sends otherwise.
 *
 * And only there: as long as it has its rate, all that it has sent follows from the time since then, however often it is
 * looked at. A sum of parts would have another last bit for each division into rounds, which decides where a packet
 * stands at a threshold.
 */
static inline void settle_conn(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  if (one->touched == now) return;
  if (one->rate > 0) {
    double sent = least_of(one->remaining, sent_from(one, one->touched, now));
    one->round_sent = sent_in_round(one, now);
    one->remaining -= sent;
    one->budget -= sent;
    one->touched = now;
    count_whole(fluid, one, now);
  }
  one->touched = now;
}

/* Whether there is nothing that the control of a connection is still to be shown. */
static inline bool is_clean(const struct connection *one) {
  return one->seen_rtt == one->base && one->seen_marked == 0.0 && one->marking == 0.0 && one->lost == 0.0 &&
         one->resent == 0.0;
}

/* Whether a port has neither queued, nor marked, nor dropped since a hop's round began. */
static inline bool has_met_nothing(const struct congestion_state *fluid, const struct subflow_hop *hop) {
  const struct port *port = &fluid->ports[hop->port];
  /* Also what came and went meanwhile: counters moved since the round began. */
  if (port->queue > 0.0 || port->paused > 0 || port->marks != hop->marks || port->losses != hop->lost) return false;
  return hop->back == NONE || !is_hot(fluid, hop->back);
}

/* Whether the round under way of a connection, whose links are settled, met no queue so far. */
static bool met_nothing(const struct congestion_state *fluid, const struct connection *one) {
  if (!is_clean(one)) return false;
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++)
      if (!has_met_nothing(fluid, &fluid->hops[k])) return false;
  }
  return true;
}

/* Whether a connection can't be limited by its control in a round that meets no queue. */
static bool is_unlimited(const struct congestion_state *fluid, const struct connection *one) {
  if (fluid->settings.gives_rate) return one->pace >= (double)one->line;
  /* A round may be longer than the bare round trip by its place on the grid. */
  return one->window * LIMITED > (double)one->line * BYTES_PER_BPS_PS * (one->base + (double)(2 * one->grid));
}

/* A connection's window is used up, or it waits to hear of a loss: nothing more before its round ends. */
static inline void fall_silent(struct congestion_state *fluid, int64_t c, int64_t now) {
  fluid->conns[c].spent = 1;
  if (fluid->settings.balanced) fluid->balance->routes[c].idle_since = now;
}

/* -- what may be sent ---------------------------------------------------------------------------------------------- */

/* The bits per second that the control lets a connection send, and its budget at them.
 *
 * A window that nothing paces goes out at the port's rate in the first round after an idle one, and then there is
 * silence until the round ends; later its acknowledgements spread it.
 */
static int64_t set_want(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  one->budget = NO_BUDGET;
  /* Its window is used up, or it waits to hear of a loss, or a link of its path is dead: silent until then. */
  if (one->spent || one->held) return 0;
  /* A bit a second at least: at 0 there would be no drain, and nothing to wait for. */
  if (fluid->settings.gives_rate) return (int64_t)most_of(least_of((double)one->line, one->pace), 1.0);
  /* Asked for once in an instant: queues of a path don't change within one. */
  if (one->rtt_at != now) one->rtt = path_rtt(fluid, c);
  double rate = one->window * 8e12 / one->rtt;
  /* More than a round's worth: acknowledgements come back before the window is used up. */
  if (rate >= (double)one->line) return one->line;
  if (fluid->settings.paced || !one->bursts) return (int64_t)most_of(1.0, rate);
  settle_conn(fluid, c, now);
  one->budget = one->window - one->round_sent;
  if (!(one->budget < 1.0)) return one->line;
  /* Less than a byte is left of it: a drain of it would fall on this very instant. */
  one->budget = NO_BUDGET;
  fall_silent(fluid, c, now);
  return 0;
}

/* Keep the counters of a subflow's path, whose links are settled: what it meets counts from here on. */
static inline void remember(struct congestion_state *fluid, const struct subflow *subflow) {
  for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
    struct subflow_hop *hop = &fluid->hops[k];
    const struct port *port = &fluid->ports[hop->port];
    hop->marks = port->marks;
    hop->lost = port->losses;
    if (fluid->settings.wants_telemetry) fluid->sights[k].served = port->served;
  }
}

/* Begin a round: remember the counters of the paths, whose links are settled. */
static void open_round(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  one->round = now;
  one->round_sent = 0.0;
  one->lost_since = now;
  one->bursts = 0;
  one->spent = 0;
  one->uneven = 0;
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) remember(fluid, &fluid->subflows[s]);
}

/* -- losses -------------------------------------------------------------------------------------------------------- */

/* Count what a port dropped of hop k's load, for its connection; the port's link is settled.
 *
 * Ports drop the same share of all that comes, so that what flows count adds up to what ports dropped.
 */
static inline void count_dropped(struct congestion_state *fluid, const struct subflow *subflow, int64_t k) {
  const struct subflow_hop *hop = &fluid->hops[k];
  double share = fluid->ports[hop->port].losses - fluid->sights[k].gone;
  fluid->sights[k].gone = fluid->ports[hop->port].losses;
  if (share == 0.0 || hop->load == 0) return;
  struct connection *one = &fluid->conns[hop->conn];
  double bytes = (double)hop->load * share * BYTES_PER_BPS_PS;
  one->debt += bytes;
  one->owed += bytes;
  if (fluid->settings.credits && k < subflow->hop + subflow->hops - 1) fluid->inside[hop->conn] += bytes;
}

/* Whole packets lost since this was last asked; what is less than one is kept for later. The path's links are settled.
 *
 * The first is known of a round trip after it was sent.
 */
static int64_t count_losses(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  double mss = fluid->settings.mss;
  int64_t first = now; /* when the first was lost */
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
      struct subflow_hop *hop = &fluid->hops[k];
      const struct port *port = &fluid->ports[hop->port];
      /* Not before it was last counted: what was lost then is known of already. */
      if (port->losses > hop->lost) first = least(first, most(port->drop_from, one->lost_since));
      count_dropped(fluid, subflow, k);
      hop->lost = port->losses;
    }
  }
  one->lost_since = now;
  /* Fractions of packets add up, so that small losses are not lost by rounding. */
  int64_t packets = (int64_t)(one->debt / mss);
  one->debt -= (double)packets * mss;
  one->lost += (double)packets;
  /* The first counts: later losses of the round are heard of with it, as one event. */
  if (packets > 0 && one->known_at == 0) {
    /* A header overtakes what queues; a gap is seen when what comes after it has come through them. */
    double late = fluid->settings.trims ? one->base : path_rtt(fluid, c);
    one->known_at = first + (int64_t)late;
  }
  return packets;
}

/* At most `bytes` of what was lost are to be sent again. What was lost can't be more than there is. */
static void send_again(struct connection *one, double bytes) {
  double again = least_of(least_of(bytes, one->owed), one->size - one->remaining);
  one->owed -= again;
  one->remaining += again;
}

/* -- what a control is shown --------------------------------------------------------------------------------------- */

/* A row of the batch for a connection, with what a control is shown in any round. */
static struct control_row *new_row(struct congestion_state *fluid, int64_t c, int64_t now) {
  const struct connection *one = &fluid->conns[c];
  int64_t n = fluid->counts.batch_size++;
  RESERVE(fluid, rows, n + 1);
  struct control_row *row = &fluid->rows[n];
  row->conn = c;
  row->begin = 0;
  row->first = 0.0;
  row->base_rtt = one->base;
  row->mss = fluid->settings.mss;
  row->line = (double)one->line;
  row->sent = (double)one->sent;
  row->size = (double)one->payload;
  row->job = (double)one->job;
  row->priority = (double)one->priority;
  row->weight = one->weight;
  row->hops = (double)one->hops;
  row->window = one->window;
  row->rate = one->pace;
  row->wait = 0.0;
  row->slow_start = 0.0;
  row->lost = 0.0;
  row->timeout = 0.0;
  row->chance = chance(one->salt, now);
  row->granted = 0.0;
  row->lost_inside = 0.0;
  return row;
}

/* Telemetry of a row, of which no hop tells anything yet. */
static struct hop_sight *new_telemetry(struct congestion_state *fluid, struct control_row *row) {
  struct congestion_counts *counts = &fluid->counts;
  int64_t hops = fluid->conns[row->conn].hops;
  row->begin = counts->num_sights;
  counts->num_sights += hops;
  RESERVE(fluid, telemetry, counts->num_sights);
  struct hop_sight *found = &fluid->telemetry[row->begin];
  memset(found, 0, (size_t)hops * sizeof *found);
  return found;
}

/* Put a connection that its control does not know into the batch; the links of its path are settled. */
static void first_round(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  struct control_row *row = new_row(fluid, c, now);
  row->first = 1.0;
  row->elapsed = 0.0;
  row->rtt = one->base;
  row->marked = 0.0;
  row->again = 0.0;
  row->acked = 0.0;
  row->delivered = 0.0;
  row->flight = 0.0;
  row->limited = 0.0;
  one->seen_rtt = path_rtt(fluid, c);
  struct hop_sight *sights = new_telemetry(fluid, row);
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (!(subflow->part > 0.0)) continue;
    for (int64_t k = 0; k < subflow->hops; k++)
      sights[k].capacity += subflow->part * (double)fluid->links[fluid->hops[subflow->hop + k].link].capacity;
  }
}

/* What part of a connection's bytes was marked in its round, and is now. */
struct marking {
  double in_round, now;
};

/* Bring a connection's paths up to now, and see what they mark. */
static struct marking look_at_marks(struct core *core, struct congestion_state *fluid, int64_t c, int64_t now,
                                 double span) {
  struct marking found = {0.0, 0.0};
  for (int64_t s = fluid->conns[c].subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    double unmarked = 1.0, passed = 1.0;
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
      const struct subflow_hop *hop = &fluid->hops[k];
      look_at_link(core, fluid, hop->link, now);
      /* The way back matters where acknowledgements queue there. */
      if (hop->back != NONE) look_at_link(core, fluid, hop->back, now);
      const struct port *port = &fluid->ports[hop->port];
      const struct port_link *link = &fluid->links[hop->link];
      if (port->queue > link->mark_from)
        passed *= 1.0 - mean_mark(port->queue, port->queue, link->mark_from, link->mark_all, link->mark_most);
      /* A byte is marked where any of the queues marks it. */
      if (port->marks > hop->marks) unmarked *= 1.0 - least_of(1.0, (port->marks - hop->marks) / span);
    }
    found.in_round += subflow->part * (1.0 - unmarked);
    found.now += subflow->part * (1.0 - passed);
  }
  return found;
}

/* What the round lost is sent again; the control hears of it when the sender would, or of a timeout. */
static void tell_losses(struct congestion_state *fluid, struct control_row *row, int64_t now, double span) {
  int64_t c = row->conn;
  struct connection *one = &fluid->conns[c];
  double mss = fluid->settings.mss;
  int64_t packets = count_losses(fluid, c, now);
  if (packets > 0 && one->active) {
    settle_conn(fluid, c, now);
    send_again(one, (double)packets * mss);
  }
  if (one->timeout_at > 0) {
    row->timeout = 1.0;
    one->timeout_at = 0;
    one->known_at = 0;
    one->lost = 0.0;
  } else if (one->resent > 0.0 && !fluid->settings.trims) {
    /* What was sent again shares the fate of all that was sent; lost twice, it waits for the timer. */
    double sent = sent_in_round(one, now);
    double again = (double)packets * least_of(1.0, one->resent * mss / most_of(1.0, sent));
    if (again >= LOST_AGAIN && one->active)
      one->timeout_at = one->round + (int64_t)most_of(2.0 * span, fluid->settings.least_rto);
  }
  one->resent = 0.0;
  if (one->known_at == 0 || now < one->known_at) return;
  row->lost = one->lost;
  one->resent = one->lost;
  one->known_at = 0;
  one->lost = 0.0;
  if (!fluid->settings.credits) return;
  row->lost_inside = fluid->inside[c] / fluid->settings.mss;
  fluid->inside[c] = 0.0;
}

/* Telemetry: what the hops were like when the round before this one ended, as it comes back now. Where there are several
 * subflows it is the mean, by what goes by each. */
static void tell_hops(struct congestion_state *fluid, struct control_row *row, double span) {
  struct hop_sight *sights = new_telemetry(fluid, row);
  for (int64_t s = fluid->conns[row->conn].subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (!(subflow->part > 0.0)) continue;
    for (int64_t k = 0; k < subflow->hops; k++) {
      const struct subflow_hop *hop = &fluid->hops[subflow->hop + k];
      const struct port *port = &fluid->ports[hop->port];
      struct hop_memory *memory = &fluid->sights[subflow->hop + k];
      sights[k].queue += subflow->part * memory->queue;
      sights[k].tx += subflow->part * memory->rate;
      sights[k].capacity += subflow->part * (double)fluid->links[hop->link].capacity;
      memory->queue = port->queue;
      memory->rate = (port->served - memory->served) / (span * BYTES_PER_BPS_PS);
    }
  }
}

/* Which of the round's marks the control hears of now, and which with the next round. */
static void tell_marks(struct control_row *row, struct connection *one, struct marking marked, double span) {
  double share = marked.in_round;
  if (one->wait > 0.0) {
    /* Packets are marked as they leave a queue: notifications are late by the bare way alone. */
    double late = share * least_of(1.0, 0.5 * one->base / span);
    row->marked = least_of(1.0, one->seen_marked + share - late);
    one->seen_marked = late;
    if (!(one->wait >= 2.0 * one->seen_rtt)) return;
    row->rtt = one->seen_rtt;
    row->lost = most_of(one->lost, row->lost);
    one->known_at = 0;
    one->lost = 0.0;
    return;
  }
  /* Marks come back half a round late in the mean; where marking began in this round, they lie at its end, and where it
   * ended, at its beginning. */
  double early = 0.5 * share;
  if (marked.now > one->marking)
    early = most_of(0.0, share - 0.5);
  else if (marked.now < one->marking)
    early = least_of(0.5, share);
  row->marked = one->seen_marked + early;
  one->seen_marked = share - early;
  one->marking = marked.now;
}

/* Bits per second that come to a connection's receiver now, out of queues as well. */
static double comes(struct core *core, struct congestion_state *fluid, int64_t c, int64_t now) {
  double rate = 0.0;
  for (int64_t s = fluid->conns[c].subflow; s != NONE; s = fluid->subflows[s].next) {
    int64_t last = fluid->subflows[s].hop + fluid->subflows[s].hops - 1;
    catch_up(core, fluid, fluid->hops[last].port, now);
    rate += (double)leaves_with(fluid, last, ROUND_DUST);
  }
  return rate;
}

/* Put a connection into the batch: show it what the round before this one saw, keep what this one saw. */
static void end_round(struct core *core, struct congestion_state *fluid, int64_t c, int64_t now) {
  const struct congestion_settings *settings = &fluid->settings;
  struct connection *one = &fluid->conns[c];
  count_whole(fluid, one, now);
  struct control_row *row = new_row(fluid, c, now);
  fluid->counts.num_updates++;
  double lasted = (double)(now - one->round), rounds = rounds_in(fluid, one, lasted);
  double span = lasted / rounds, sent = sent_in_round(one, now) / rounds;
  struct marking marked = look_at_marks(core, fluid, c, now, lasted);
  if (!settings->lossless) tell_losses(fluid, row, now, span);
  row->elapsed = span;
  row->rtt = one->seen_rtt;
  row->acked = sent;
  row->delivered = sent;
  if (one->wait > 0.0 && settings->traced) row->delivered = comes(core, fluid, c, now) * BYTES_PER_BPS_PS * span;
  /* A loss may have ended the round early. */
  row->flight = sent + most_of(0.0, 1.0 - span / one->seen_rtt) * one->before_sent;
  one->before_sent = sent;
  row->limited = settings->gives_rate ? is_as_wanted(fluid, one) : row->flight >= one->window * LIMITED;
  if (settings->wants_telemetry) tell_hops(fluid, row, lasted);
  one->seen_rtt = path_rtt(fluid, c);
  one->rtt = one->seen_rtt;
  one->rtt_at = now;
  one->marked = marked.in_round;
  row->again = marked.now > 0.0;
  tell_marks(row, one, marked, span);
  if (settings->credits) ask_for_credit(fluid, c);
}

/* -- asking, and what was answered --------------------------------------------------------------------------------- */

/* Fill in what rows of a batch say that is known when all rounds of the instant have ended, and remember what growth and
 * rest are measured against. */
static void fill_batch(struct congestion_state *fluid, int64_t first, int64_t count, int64_t now) {
  const struct congestion_settings *settings = &fluid->settings;
  RESERVE(fluid, before, first + count);
  for (int64_t n = first; n < first + count; n++) {
    struct control_row *row = &fluid->rows[n];
    const struct connection *one = &fluid->conns[row->conn];
    row->coflow_sent = 0.0;
    row->coflow_size = 0.0;
    if (one->coflow >= 0) {
      row->coflow_sent = (double)fluid->coflows[one->coflow].sent;
      row->coflow_size = (double)fluid->coflows[one->coflow].size;
    }
    double share = row->coflow_size > 0.0 ? least_of(1.0, row->coflow_sent / row->coflow_size) : 0.0;
    /* All rounds of the instant have ended: whose end came first plays no part. */
    if (settings->credits) row->granted = granted(fluid, one);
    row->gain = settings->slope * share + settings->intercept;
    /* Growth alone is scaled, and rest needs to know whether anything moved: both compare with this. */
    struct answer_before *before = &fluid->before[n];
    before->window = row->window;
    before->rate = row->rate;
    before->rounds = row->first == 0.0 ? rounds_in(fluid, one, (double)(now - one->round)) : 1.0;
    if (before->rounds > 1.0) note_bounds(fluid, row, before);
    for (int64_t k = 0; k < settings->num_states; k++) before->state[k] = fluid->state[row->conn * MOST_STATES + k];
  }
}

/* The connection of an answer chooses its paths again where its packets paused for long enough: its window was used up,
 * is less than what is on its way, or its packets are so far apart. */
static void note_pause(struct congestion_state *fluid, const struct control_row *row, int64_t now) {
  struct connection *one = &fluid->conns[row->conn];
  struct chosen_route *route = &fluid->balance->routes[row->conn];
  double pause = 0.0;
  if (one->spent) {
    pause = (double)(now - route->idle_since);
  } else if (one->rate > 0) {
    /* Until acknowledgements have come for what is more than the window now, nothing is sent. */
    double less = fluid->settings.gives_rate ? 0.0 : row->flight - row->window;
    pause = most_of(row->mss, less) * 8e12 / (double)one->rate;
  }
  if (!(pause > (double)fluid->balance->counts.least_pause)) return;
  route->pause = (int64_t)pause;
  choose_at_end(fluid->balance, row->conn, false);
  /* At rest it would not be asked again. */
  one->settled = 0;
}

/* Multiply what a control added to its answer by the gain. */
static void scale_growth(struct control_row *row, const struct answer_before *before) {
  double more = row->window - before->window;
  if (more > 0.0) row->window = before->window + row->gain * more;
  more = row->rate - before->rate;
  if (more > 0.0) row->rate = before->rate + row->gain * more;
}

/* Whether a control answered as before: window, rate and every number that it remembers. */
static bool answered_as_before(const struct congestion_state *fluid, int64_t n) {
  const struct control_row *row = &fluid->rows[n];
  const struct answer_before *before = &fluid->before[n];
  if (before->window != row->window || before->rate != row->rate) return false;
  const double *state = &fluid->state[row->conn * MOST_STATES];
  for (int64_t k = 0; k < fluid->settings.num_states; k++)
    if (before->state[k] != state[k]) return false;
  return true;
}

/* Take what the control said about rows of a batch, and open the next round of who has something to send. */
static void take_answers(struct congestion_state *fluid, int64_t first, int64_t count, int64_t now) {
  const struct congestion_settings *settings = &fluid->settings;
  bool pauses = settings->balanced && fluid->balance->counts.least_pause < NEVER;
  for (int64_t n = first; n < first + count; n++) {
    struct control_row *row = &fluid->rows[n];
    int64_t c = row->conn;
    struct connection *one = &fluid->conns[c];
    bool known = one->known;
    if (settings->scaled && known && row->slow_start == 0.0) scale_growth(row, &fluid->before[n]);
    if (settings->tolerance > 0.0 && known) set_stride(fluid, one, row);
    one->window = row->window;
    one->pace = row->rate;
    one->wait = row->wait;
    /* To rest, it must have been an answer about a round like those to come. */
    one->settled = settings->settles && known && !one->uneven && answered_as_before(fluid, n);
    one->known = 1;
    if (!one->active) continue;
    if (pauses && known) note_pause(fluid, row, now);
    open_round(fluid, c, now);
    if (!known) one->bursts = 1;
    if (one->timeout_at > 0 || (one->known_at > 0 && one->remaining <= one->lost * settings->mss))
      fall_silent(fluid, c, now);
    note_updated(fluid, c);
  }
}
