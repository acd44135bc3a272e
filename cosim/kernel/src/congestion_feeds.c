/* How many bytes of a queue came from which port before it: a *feed* is all that one port brings to another.
 *
 * A queue is served in the order in which its bytes came, so a feed leaves as it came, a queue later
 * (congestion_fronts.c): between two changes each feed loses its part of what the port serves. `turns` counts the
 * bytes that the port serves for each bit/s that leaves. With it, a feed is brought up to date on its own, when its
 * own rates change, and need not be when another feed's do.
 */
#include "kernel.h"

/* The feed of port p that comes from port u; NONE: it has none. */
static int64_t find_feed(const struct congestion_state *fluid, int64_t p, int64_t u) {
  int64_t at = fluid->ports[p].feeds;
  while (at != NONE && fluid->feeds[at].port != u) at = fluid->feeds[at].next;
  return at;
}

/* A feed of port p that comes from port u, of which there is none yet. */
static int64_t make_feed(struct congestion_state *fluid, int64_t p, int64_t u) {
  struct congestion_counts *counts = &fluid->counts;
  int64_t at = counts->free_feed;
  if (at != NONE) {
    counts->free_feed = fluid->feeds[at].next;
  } else {
    at = counts->feeds_used++;
    RESERVE(fluid, feeds, counts->feeds_used);
  }
  struct feed *feed = &fluid->feeds[at];
  feed->port = (int32_t)u;
  feed->hops = feed->stopped = 0;
  feed->load = feed->out = 0;
  feed->bytes = 0.0;
  feed->next = fluid->ports[p].feeds;
  fluid->ports[p].feeds = (int32_t)at;
  return at;
}

/* Hop k, which is not its subflow's first, is put on its port, and brings nothing yet. */
static void join_feed(struct congestion_state *fluid, int64_t k) {
  int64_t p = fluid->hops[k].port, u = fluid->hops[k - 1].port;
  int64_t at = find_feed(fluid, p, u);
  if (at == NONE) at = make_feed(fluid, p, u);
  fluid->feeds[at].hops++;
  fluid->sights[k].feed = (int32_t)at;
}

/* Hop k is taken off its port, where nothing of it is left; the last hop of a feed takes the feed with it. */
static void leave_feed(struct congestion_state *fluid, int64_t k) {
  int32_t left = fluid->sights[k].feed;
  struct feed *feeds = fluid->feeds;
  if (--feeds[left].hops > 0) return;
  int32_t *from = &fluid->ports[fluid->hops[k].port].feeds;
  while (*from != left) from = &feeds[*from].next;
  *from = feeds[left].next;
  feeds[left].next = (int32_t)fluid->counts.free_feed;
  fluid->counts.free_feed = left;
}

/* The turns of a line when its port has served so many bytes, if what leaves is shared as now. */
static inline double turns_at(const struct line *line, double served) {
  if (line->out <= 0) return line->turns;
  return line->turns + (served - line->since) / (double)line->out;
}

/* Bring a feed up to `now` by what came, and up to `turns` by what left. */
static inline void settle_feed_at(struct feed *feed, double turns, int64_t now) {
  double came = (double)feed->load * BYTES_PER_BPS_PS * (double)(now - feed->at);
  /* It may be below 0, by the last bytes of a front: when that passes, they are made up for. */
  feed->bytes += came - (double)feed->out * (turns - feed->turns);
  feed->at = now;
  feed->turns = turns;
}

/* Bring a feed of port p, whose queue is settled, up to `now`. */
static inline void settle_feed(struct congestion_state *fluid, int64_t p, struct feed *feed, int64_t now) {
  const struct port *port = &fluid->ports[p];
  const struct line *line = &fluid->lines[p];
  settle_feed_at(feed, turns_at(line, port->served), now);
  /* An empty queue, of which all fronts have passed, holds nothing of any feed: rounding ends here. */
  if (port->queue == 0.0 && line->head == NONE) feed->bytes = 0.0;
}

/* Bring all feeds of port p, whose queue is settled, up to `now`. */
static void settle_feeds(struct congestion_state *fluid, int64_t p, int64_t now) {
  for (int64_t at = fluid->ports[p].feeds; at != NONE; at = fluid->feeds[at].next)
    settle_feed(fluid, p, &fluid->feeds[at], now);
}

/* Hop k brings so many bits per second more to its port, whose queue is settled. */
static inline void bring_more(struct congestion_state *fluid, int64_t k, int64_t more, int64_t now) {
  struct feed *feed = &fluid->feeds[fluid->sights[k].feed];
  settle_feed(fluid, fluid->hops[k].port, feed, now);
  feed->load += more;
}

/* From when its port has served so many bytes, hop k leaves it at another rate; the port's queue is settled.
 *
 * That may be a few bytes ahead (see congestion_fronts.c). The new rate holds at once, but feeds are accounted for as
 * if it began there. Otherwise a feed that comes and goes would take those bytes from another feed each time, which
 * adds up as long as anything stands in the queue.
 */
static void set_out(struct congestion_state *fluid, int64_t k, int64_t out, double served, int64_t now) {
  struct line *line = &fluid->lines[fluid->hops[k].port];
  int64_t more = out - fluid->outs[k];
  if (fluid->settings.lossless) {
    double turns = turns_at(line, served);
    if (fluid->hops[k].leads == 0) {
      struct feed *feed = &fluid->feeds[fluid->sights[k].feed];
      settle_feed_at(feed, turns, now);
      feed->out += more;
    }
    line->turns = turns;
    line->since = served;
  }
  line->out += more;
  fluid->outs[k] = out;
}
