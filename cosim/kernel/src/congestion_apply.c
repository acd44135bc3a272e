/* When time leaves an instant, new rates reach the links, hop by hop.
 *
 * A flow brings its rate to its first port, and to each further port what the port before passes on. A port that is
 * given more than it can serve passes on its rate, in proportion; so does one that works off its queue, also when
 * nothing comes any more. So all that a switch is sent leaves it. Each pass over the changed connections reads loads
 * that the pass before it wrote, and writes sums of whole numbers: the order of connections doesn't matter.
 * Connections that did not change keep what they bring to further ports until their own round ends, a round trip
 * later, as on a wire; unless a port that passes on its rate is now shared otherwise.
 *
 * The flows of a host don't queue at its own port: if they want more than it has, they take turns, as queue pairs of
 * a NIC and sockets of a host do. None gets more than another that wants as much (max-min).
 */
#include "kernel.h"

#define OVER 1.05 /* windows that a connection may send in a round: rounds and rates are not exact */
#define FLOOR (1.0 - 0x1p-40) /* so that what a port gives never adds up to more than it has */
#define PART_UNIT 0x1p30 /* parts of connections are added up as whole numbers, so that sums are exact in any order */

/* -- rounds that are left out, and go on ------------------------------------------------------------------------ */

/* The first multiple of `grid`, a power of two, that is after `now` and not before `now + time`. */
static inline int64_t on_grid(double time, int64_t grid, int64_t now) {
  /* So rounds of equal connections end in the same instants, and their controls are asked in one batch. A round that
   * ended at `now` would keep the instant from ending. */
  return most((now + round_up(time) + grid - 1) & -grid, (now & -grid) + grid);
}

/* A connection that rests goes on with its rounds, as if it had not rested. Before time leaves the instant,
 * apply_changes puts the end of its round into the calendar. */
static void wake(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  one->asleep = 0;
  one->stride = least(one->stride, 1);
  fluid->counts.num_asleep--;
  one->due = one->ends;
  fluid->counts.open = 1;
  if (now >= one->ends) {
    /* Rounds that were left out ended every `period`; the last of them to begin is under way. */
    int64_t begin = one->ends + (now - one->ends) / one->period * one->period;
    if (begin > one->ends) {
      one->round = begin - one->period;
      one->round_sent = 0.0;
    }
    /* Its rate stood still while it rested: a changed rate would have woken it. */
    one->before_sent = sent_in_round(one, begin);
    one->round = begin;
    one->due = begin + one->period;
    one->bursts = 0;
    one->lost_since = begin;
    one->round_sent = 0.0;
    /* One of those left out ends in this instant: as after any round, its rate is worked out anew. */
    if (begin == now) change_conn(fluid, c);
  }
  note_woken(fluid, c);
}

/* The round of a connection ends after one round trip from now, where it would last for several. */
static void hurry(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  if (one->due <= now || one->due == NEVER || one->stride == 0) return;
  one->stride = 1;
  int64_t first = now + one->period;
  /* Nor before a packet is acknowledged that it sent in it. */
  if (one->rate > 0) first = most(first, one->round + (int64_t)(fluid->settings.mss * 8e12 / (double)one->rate));
  int64_t due = on_grid((double)(first - now), one->grid, now);
  if (due >= one->due) return;
  one->due = due;
  note_woken(fluid, c);
}

/* Wake a connection that rests, and hurry one whose round is a long one. */
static inline void wake_or_hurry(struct congestion_state *fluid, int64_t c, int64_t now) {
  if (fluid->conns[c].asleep != 0)
    wake(fluid, c, now);
  else if (fluid->settings.tolerance > 0.0)
    hurry(fluid, c, now);
}

/* Wake all connections that rest on a link, which begins to queue: with data of any class, or acknowledgements. */
static void wake_all(struct congestion_state *fluid, int64_t link, int64_t now) {
  if (fluid->counts.num_asleep == 0 && fluid->settings.tolerance == 0.0) return;
  const struct subflow_hop *hops = fluid->hops;
  int64_t p = link;
  for (int64_t k = 0; k < fluid->counts.num_classes; k++, p += fluid->counts.num_links)
    for (int64_t m = fluid->ports[p].first; m != NONE; m = hops[m].after) wake_or_hurry(fluid, hops[m].conn, now);
  for (int64_t m = fluid->links[link].back_first; m != NONE; m = fluid->sights[m].back_next)
    wake_or_hurry(fluid, hops[m].conn, now);
}

/* Wake all connections that rest on a port's link, if that begins to queue. */
static inline void wake_if_hot(struct congestion_state *fluid, int64_t p, int64_t now) {
  int64_t link = fluid->ports[p].link;
  /* Once is enough: `hot` stays until a connection rests here again. */
  if (fluid->ports[link].hot != 0 || !is_hot(fluid, p)) return;
  fluid->ports[link].hot = 1;
  wake_all(fluid, link, now);
}

/* -- what connections want, and hosts' own ports ---------------------------------------------------------------- */

/* Whether a port's own connections share it as before, where one with a subflow there that wanted `before` wants `mine`.
 */
static inline bool is_shared_as_before(const struct congestion_state *fluid, const struct port *port, int64_t before,
                                       int64_t mine) {
  /* What wants more than the level counts as one that does, not by how much (fair_level). */
  return before > port->level && mine > port->level && port->own + mine - before > fluid->links[port->link].capacity;
}

/* A subflow that begins at a port wants `mine` of it: what all that begin there are given follows. */
static inline void count_given(struct congestion_state *fluid, const struct subflow *subflow, const struct port *port,
                               int64_t mine) {
  int64_t *given = &fluid->links[port->link].given;
  /* What is split has levels of its own: all is summed up again when the port is shared. */
  if (subflow->part != 1.0) *given = NEVER;
  if (*given < NEVER) *given += least(mine, port->level) - least(subflow->want, port->level);
}

/* What a connection's subflows want of their first ports; together they wanted `before`. */
static void want_by_subflow(struct congestion_state *fluid, const struct connection *one, int64_t before) {
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    struct subflow *subflow = &fluid->subflows[s];
    int64_t mine = (int64_t)((double)one->want * subflow->part);
    if (mine == subflow->want) continue;
    int64_t p = fluid->hops[subflow->hop].port;
    struct port *port = &fluid->ports[p];
    count_given(fluid, subflow, port, mine);
    if (subflow->part == 1.0 && subflow->want == before && is_shared_as_before(fluid, port, before, mine))
      port->own += mine - before;
    else
      own_changed(fluid, p, mine - subflow->want);
    subflow->want = mine;
  }
}

/* Ask what controls let changed connections send, with queues as they are. */
static void set_wants(struct congestion_state *fluid, int64_t now) {
  struct congestion_counts *counts = &fluid->counts;
  /* A connection whose control has answered is changed, too: even if it wants as much as before, its drain moves. */
  for (int64_t k = 0; k < counts->num_updated; k++) change_conn(fluid, fluid->updated[k]);
  for (int64_t k = 0; k < counts->num_changed; k++) {
    int64_t c = fluid->changed[k];
    struct connection *one = &fluid->conns[c];
    /* It has left its ports meanwhile. */
    if (one->attached == 0) continue;
    int64_t before = one->want;
    one->want = one->active != 0 ? set_want(fluid, c, now) : 0;
    want_by_subflow(fluid, one, before);
  }
}

/* Connections that begin at a port and want more than `above` have another share of it: they are changed. */
static void change_own(struct congestion_state *fluid, int64_t p, int64_t above, int64_t now) {
  const struct subflow_hop *hops = fluid->hops;
  for (int64_t m = fluid->ports[p].first; m != NONE; m = hops[m].after) {
    int64_t c = hops[m].conn;
    /* Others that pass here began elsewhere: they keep what the port before them passes on. */
    if (hops[m].leads == 0 || fluid->conns[c].want <= above) continue;
    if (fluid->conns[c].asleep != 0) wake(fluid, c, now);
    change_conn(fluid, c);
  }
}

/* Give all connections that want at most `level` what they want, and share the rest of `room` among those that want
 * more: what each of them has then. `level` if none wants more. */
static int64_t higher_level(const struct congestion_state *fluid, int64_t p, double room, int64_t level) {
  const struct subflow_hop *hops = fluid->hops;
  int64_t content = 0, parts = 0;
  for (int64_t m = fluid->ports[p].first; m != NONE; m = hops[m].after) {
    if (hops[m].leads == 0) continue;
    const struct subflow *subflow = &fluid->subflows[hops[m].leads - 1];
    if (fluid->conns[hops[m].conn].want <= level)
      content += subflow->want;
    else
      parts += (int64_t)(subflow->part * PART_UNIT);
  }
  if (parts == 0) return level;
  return (int64_t)((room - (double)content) * FLOOR * PART_UNIT / (double)parts);
}

/* The most that a connection may send, where all want more than `room` bits/s together: those that want less have
 * what they want, and the others have alike what is left. */
static int64_t fair_level(const struct congestion_state *fluid, int64_t p, double room) {
  /* From below, until none that has a share wants less. Each turn reads all anew: their order doesn't matter. */
  int64_t level = 0;
  for (;;) {
    int64_t higher = higher_level(fluid, p, room, level);
    if (higher <= level) return level;
    level = higher;
  }
}

/* What those are given that begin at a port. */
static int64_t given_by_port(const struct congestion_state *fluid, int64_t p) {
  const struct subflow_hop *hops = fluid->hops;
  int64_t given = 0, level = fluid->ports[p].level;
  for (int64_t m = fluid->ports[p].first; m != NONE; m = hops[m].after) {
    if (hops[m].leads == 0) continue;
    const struct subflow *subflow = &fluid->subflows[hops[m].leads - 1];
    given += least(subflow->want, (int64_t)((double)level * subflow->part));
  }
  return given;
}

/* Bits per second by which a host's port may give less than it has, where there is a tolerance. */
static inline double slack_of(const struct congestion_state *fluid, double rate) {
  return LEAST_CHANGE * fluid->settings.tolerance * rate;
}

/* Whether a host's port, of which all want more than `room` bits/s, gives nearly that at its level, and no more. */
static inline bool is_nearly_given(const struct congestion_state *fluid, const struct port *port, double room) {
  if (fluid->settings.tolerance == 0.0 || fluid->counts.num_classes > 1 || port->level == NEVER) return false;
  double given = (double)fluid->links[port->link].given;
  return given <= room && given >= room - 2.0 * slack_of(fluid, room);
}

/* The level of a host's port where it would be `level` exactly: where there is a tolerance, it is lower by a little more,
 * so that it need not be lowered for each that wants a little more. */
static int64_t level_with_slack(const struct congestion_state *fluid, const struct port *port, int64_t level) {
  if (level == NEVER || port->level == NEVER) return level;
  int64_t slack = (int64_t)slack_of(fluid, (double)level);
  if (level >= port->level && level - port->level <= 2 * slack) return port->level;
  return level - slack;
}

/* Whether connections of a host's port hear of a level when their rounds end, where there is a tolerance. */
static bool hear_later(const struct congestion_state *fluid, const struct port *port, int64_t level) {
  if (fluid->settings.tolerance == 0.0 || fluid->counts.num_classes > 1) return false;
  if (level == NEVER || port->level == 0) return false;
  const struct port_link *link = &fluid->links[port->link];
  return level >= port->level && (level - link->told) * ALIKE <= link->told;
}

/* Share a host's own port among what wants to begin there, class by class. */
static void share_own_port(struct congestion_state *fluid, int64_t number, int64_t now) {
  struct port_link *link = &fluid->links[number];
  fluid->ports[number].listed = 0;
  /* Class 0 is first; the next class finds what it leaves. */
  double room = (double)link->capacity;
  int64_t p = number;
  for (int64_t k = 0; k < fluid->counts.num_classes; k++, p += fluid->counts.num_links) {
    struct port *port = &fluid->ports[p];
    int64_t level = NEVER;
    if (port->paused > 0) {
      level = 0;
    } else if ((double)port->own > within_loop(link, room)) {
      double most = within_loop(link, room);
      if (is_nearly_given(fluid, port, most)) return;
      level = fair_level(fluid, p, most);
      room -= most;
    } else {
      room -= (double)port->own;
    }
    level = level_with_slack(fluid, port, level);
    if (level == port->level) continue;
    bool later = hear_later(fluid, port, level);
    int64_t above = least(level, port->level);
    port->level = level;
    if (fluid->settings.tolerance > 0.0) link->given = given_by_port(fluid, p);
    if (later) continue;
    link->told = level;
    change_own(fluid, p, above, now);
  }
}

static void share_own_ports(struct congestion_state *fluid, int64_t now) {
  for (int64_t k = 0; k < fluid->counts.num_hosts; k++) share_own_port(fluid, fluid->hosts[k], now);
  fluid->counts.num_hosts = 0;
}

/* -- loads, hop by hop ------------------------------------------------------------------------------------------ */

/* The rate that comes to hop k from the port before, whose queue is not told apart. */
static int64_t passed_untraced(struct congestion_state *fluid, int64_t k, double least) {
  const struct subflow_hop *hop = &fluid->hops[k - 1];
  const struct port *before = &fluid->ports[hop->port];
  struct hop_memory *memory = &fluid->sights[k];
  int64_t passed = hop->load;
  double part = passed_share(fluid, hop->port, least);
  /* It is rounded down: what leaves a port must not add up to more than it serves. */
  if (part != 1.0) passed = (int64_t)((double)passed * part);
  if (passed > 0) {
    memory->kept = passed;
    memory->of = left_for(fluid, hop->port);
  } else if (hop->load > 0) {
    /* It waits for earlier classes, and goes on as it came when it may. */
    memory->of = (double)fluid->links[before->link].capacity;
    memory->kept = (int64_t)((double)hop->load * memory->of / (double)before->load);
  } else if (before->load == 0 && before->queue > least) {
    passed = memory->kept; /* nothing comes, but the queue before goes on */
    if (fluid->counts.num_classes > 1 && memory->of > 0.0)
      passed = (int64_t)((double)passed * left_for(fluid, hop->port) / memory->of);
  }
  return passed;
}

/* The rate that comes to hop k of a subflow: from its connection, or from the port before. */
static inline int64_t coming_to(struct congestion_state *fluid, const struct subflow *subflow, int64_t k,
                                double least) {
  if (k == subflow->hop) return (int64_t)((double)fluid->conns[subflow->conn].rate * subflow->part);
  return fluid->settings.traced ? leaves_with(fluid, k - 1, least) : passed_untraced(fluid, k, least);
}

/* Bring a hop's new rate to its port. */
static inline void bring_load(struct core *core, struct congestion_state *fluid, const struct subflow *subflow,
                              int64_t k, double least, int64_t now) {
  struct subflow_hop *hop = &fluid->hops[k];
  int64_t more = hop->new_load - hop->load;
  if (more == 0) return;
  /* The queue is settled first: up to now it grew by the old load. */
  settle_queues(core, fluid, hop->link, now);
  catch_up(core, fluid, hop->port, now);
  if (!fluid->settings.lossless) count_dropped(fluid, subflow, k);
  if (fluid->settings.lossless && k > subflow->hop) bring_more(fluid, k, more, now);
  fluid->ports[hop->port].load += more;
  hop->load = hop->new_load;
  touch_port(fluid, hop->port);
  if (fluid->settings.traced) line_up(fluid, k, least, now);
}

/* Whether a moving subflow's rate is brought to its port number `level`. */
static inline bool is_brought(const struct subflow *subflow, int64_t level) {
  return subflow->from <= level && level < subflow->hops;
}

/* Bring the rates of the first `count` moving subflows to their ports number `level`. */
static void bring_loads(struct core *core, struct congestion_state *fluid, int64_t level, int64_t count, double least,
                        int64_t now) {
  /* All are read before any is written: the order of connections in `changed` must not show in the rates. */
  for (int64_t k = 0; k < count; k++) {
    const struct subflow *subflow = &fluid->subflows[fluid->moving[k]];
    int64_t hop = subflow->hop + level;
    if (is_brought(subflow, level)) fluid->hops[hop].new_load = coming_to(fluid, subflow, hop, least);
  }
  for (int64_t k = 0; k < count; k++) {
    const struct subflow *subflow = &fluid->subflows[fluid->moving[k]];
    if (is_brought(subflow, level)) bring_load(core, fluid, subflow, subflow->hop + level, least, now);
  }
}

/* A port that passes on its rate may be shared otherwise than those that pass it were told: they are changed, and it returns true. */
static inline bool change_sharers(struct congestion_state *fluid, struct port *port, double least, int64_t now) {
  /* Small differences wait for the next round. Otherwise each change would change all others on the port, and each of
   * those all on the next port: most of the work, for little. */
  if (llabs(port->load - port->told) * ALIKE <= port->told) return false;
  if (port->queue <= least && port->load <= fluid->links[port->link].capacity) return false;
  port->told = port->load;
  for (int64_t m = port->first; m != NONE; m = fluid->hops[m].after) {
    change_conn(fluid, fluid->hops[m].conn);
    if (fluid->settings.tolerance > 0.0) hurry(fluid, fluid->hops[m].conn, now);
  }
  return true;
}

/* Subflows that went on from port p before its load changed, as it is nearer to their senders, have to be brought to
 * their ports once more. */
static void note_late(struct congestion_state *fluid, int64_t p, int64_t level) {
  struct congestion_counts *counts = &fluid->counts;
  for (int64_t m = fluid->ports[p].first; m != NONE; m = fluid->hops[m].after) {
    for (int64_t s = fluid->conns[fluid->hops[m].conn].subflow; s != NONE; s = fluid->subflows[s].next) {
      const struct subflow *subflow = &fluid->subflows[s];
      if (m < subflow->hop || m >= subflow->hop + level || m >= subflow->hop + subflow->hops - 1) continue;
      RESERVE(fluid, late, counts->num_late + 1);
      fluid->late[counts->num_late++] = (int32_t)s;
    }
  }
}

/* Loads at ports number `level` have changed. Where a port passes on its rate, one connection's share changes those
 * of all others there: at once, or when their rounds end. That may be in this very instant, so those that rest there
 * are woken before the next ports' turn. */
static void change_others(struct congestion_state *fluid, int64_t level, int64_t count, double least, int64_t now) {
  for (int64_t k = 0; k < count; k++) {
    const struct subflow *subflow = &fluid->subflows[fluid->moving[k]];
    if (!is_brought(subflow, level)) continue;
    int64_t p = fluid->hops[subflow->hop + level].port;
    wake_if_hot(fluid, p, now);
    if (fluid->counts.num_classes > 1) look_after(fluid, p);
    /* Shares of the first port are set in share_own_port; what leaves the last one goes to no port. */
    if (level == 0 || level == subflow->hops - 1) continue;
    bool changed = fluid->settings.traced ? have_all_moved(fluid, p) : change_sharers(fluid, &fluid->ports[p], least, now);
    if (changed) note_late(fluid, p, level);
  }
}

/* A connection's subflows move; returns the most that its own ports let it send. */
static inline int64_t move_subflows(struct congestion_state *fluid, const struct connection *one) {
  int64_t level = NEVER;
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    if (subflow->attached == 0) continue;
    if (fluid->settings.traced)
      have_moved(fluid, s, 0);
    else
      note_moving(fluid, s, 0);
    if (subflow->part > 0.0) level = least(level, fluid->ports[fluid->hops[subflow->hop].port].level);
  }
  return level;
}

/* Whether a connection may keep its rate, of which it was to have another. */
static inline bool hardly_differs(const struct congestion_state *fluid, const struct connection *one, int64_t rate,
                                  int64_t level) {
  double allowed = LEAST_CHANGE * fluid->settings.tolerance * (double)one->rate;
  return one->rate <= level && rate > 0 && fabs((double)(rate - one->rate)) < allowed;
}

/* Changed connections get the rates that their own ports let them have; all their subflows move. */
static void set_rates(struct congestion_state *fluid, int64_t now) {
  for (int64_t k = 0; k < fluid->counts.num_changed; k++) {
    struct connection *one = &fluid->conns[fluid->changed[k]];
    if (one->attached == 0) continue;
    int64_t level = move_subflows(fluid, one), rate = least(one->want, level);
    if (rate == one->rate || hardly_differs(fluid, one, rate, level)) continue;
    /* A round with two rates says little of the next one, which has only the second. */
    if (one->active != 0 && one->round < now) one->uneven = 1;
    settle_conn(fluid, fluid->changed[k], now);
    one->rate = rate;
  }
}

/* Bring the rates of moving subflows to their ports, hop by hop; more connections may change on the way. */
static void bring_hop_by_hop(struct core *core, struct congestion_state *fluid, double least, int64_t now) {
  struct congestion_counts *counts = &fluid->counts;
  for (int64_t level = 0; level < counts->most_hops; level++) {
    /* Subflows that join on the way have brought their rates to earlier ports before; they change from here on. */
    int64_t known = counts->num_changed, count = counts->num_moving;
    bring_loads(core, fluid, level, count, least, now);
    change_others(fluid, level, count, least, now);
    for (int64_t k = known; k < counts->num_changed; k++) move_subflows(fluid, &fluid->conns[fluid->changed[k]]);
  }
  counts->num_moving = 0;
}

/* Bring new rates to the ports. */
static void set_loads(struct core *core, struct congestion_state *fluid, double least, int64_t now) {
  struct congestion_counts *counts = &fluid->counts;
  set_rates(fluid, now);
  bring_hop_by_hop(core, fluid, least, now);
  /* Each turn settles one more port of a path; where paths close a circle, the rest waits for the next rounds. */
  for (int64_t turn = counts->most_hops; turn > 0 && counts->num_late > 0; turn--) {
    for (int64_t k = 0; k < counts->num_late; k++) note_moving(fluid, fluid->late[k], 0);
    counts->num_late = 0;
    bring_hop_by_hop(core, fluid, least, now);
  }
  counts->num_late = 0;
  counts->most_hops = 0;
}

/* -- who leaves ------------------------------------------------------------------------------------------------- */

/* Whether nothing of hop k is left in its port, whose queue is told apart. */
static bool is_through_traced(const struct congestion_state *fluid, const struct subflow *subflow, int64_t k) {
  const struct hop_memory *memory = &fluid->sights[k];
  /* All that came may wait behind others: then nothing leaves yet, and nothing comes any more. */
  if (fluid->hops[k].load != 0 || fluid->outs[k] != 0 || memory->boundaries != 0) return false;
  /* While its input share is paused it stays: the pause ends when the input share is down to its threshold. */
  return !fluid->settings.lossless || k == subflow->hop || fluid->inputs[memory->input].stopped == 0;
}

/* Whether nothing of hop k is left in its port, whose queue is not told apart. */
static bool is_through_untraced(const struct congestion_state *fluid, const struct subflow *subflow, int64_t k,
                                double least) {
  const struct port *port = &fluid->ports[fluid->hops[k].port];
  if (fluid->hops[k].load != 0) return false;
  /* A queue to which nothing comes still sends to the next port, where only this hop can bring it. */
  return k == subflow->hop + subflow->hops - 1 || port->queue <= least || port->load != 0;
}

/* Whether the queues on the way have passed on what was sent by a subflow. */
static bool is_through(struct core *core, struct congestion_state *fluid, const struct subflow *subflow, double least,
                       int64_t now) {
  for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
    catch_up(core, fluid, fluid->hops[k].port, now);
    bool through = fluid->settings.traced ? is_through_traced(fluid, subflow, k)
                                          : is_through_untraced(fluid, subflow, k, least);
    if (!through) return false;
  }
  return true;
}

/* Subflows by which nothing more is sent leave their ports when all that was sent is through. */
static void let_go(struct core *core, struct congestion_state *fluid, double least, int64_t now) {
  for (int64_t k = 0; k < fluid->counts.num_changed; k++) {
    int64_t c = fluid->changed[k];
    struct connection *one = &fluid->conns[c];
    if (one->attached == 0 || (one->active != 0 && one->leaving == 0)) continue;
    for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
      struct subflow *subflow = &fluid->subflows[s];
      bool done = one->active == 0 || subflow->part == 0.0;
      if (subflow->attached != 0 && done && is_through(core, fluid, subflow, least, now))
        detach_subflow(fluid, one, subflow);
    }
    if (one->leaving != 0) drop_left(fluid, c);
  }
}

/* -- when ports are looked at again ----------------------------------------------------------------------------- */

/* A port whose load changed: it may begin to queue, be empty, or cross a threshold of pauses. */
static void watch_queue(struct core *core, struct congestion_state *fluid, int64_t touched, double least,
                        int64_t now) {
  const struct congestion_counts *counts = &fluid->counts;
  int64_t link = fluid->ports[touched].link;
  wake_if_hot(fluid, touched, now);
  for (int64_t p = link; p < counts->num_links * counts->num_classes; p += counts->num_links) {
    /* A later class that comes behind a queue needs to know when that ends, too. */
    bool waited_for = is_waited_for(fluid, p);
    if (waited_for || (p >= touched && fluid->links[link].onward > 0))
      expect_empty(core, fluid, p, waited_for ? 0.0 : least, now);
    if (p < touched) continue; /* later classes get what it leaves */
    if (fluid->settings.traced) expect_boundary(core, fluid, p, now);
    if (fluid->settings.lossless || fluid->ports[p].head != NONE) expect_crossing(core, fluid, p, now);
  }
}

static void watch_queues(struct core *core, struct congestion_state *fluid, double least, int64_t now) {
  for (int64_t k = 0; k < fluid->counts.num_touched; k++) watch_queue(core, fluid, fluid->touched[k], least, now);
  fluid->counts.num_touched = 0;
}

/* -- when rounds end -------------------------------------------------------------------------------------------- */

/* Whether nothing on the path of connection `one` waits. */
static bool may_rest(const struct congestion_state *fluid, const struct connection *one) {
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
      const struct subflow_hop *hop = &fluid->hops[k];
      if (is_hot(fluid, hop->port) || (hop->back >= 0 && is_hot(fluid, hop->back))) return false;
    }
  }
  return true;
}

/* Connection `one` rests: its rounds are left out until a link on its path begins to queue. */
static void rest(struct congestion_state *fluid, struct connection *one, int64_t period, int64_t due) {
  for (int64_t s = one->subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++) {
      const struct subflow_hop *hop = &fluid->hops[k];
      fluid->ports[hop->link].hot = 0;
      if (hop->back >= 0) fluid->ports[hop->back].hot = 0;
    }
  }
  one->asleep = 1;
  fluid->counts.num_asleep++;
  one->period = period;
  one->ends = due;
  one->due = NEVER;
}

/* A round of `time` ps is longer at a slow rate, where a packet leaves once in many round trips: it ends with the
 * acknowledgement of the first packet that leaves after it began. Where between two packets it began is drawn. If the
 * control has settled it is half way, so that rounds that are left out all take as long. */
static double to_next_packet(const struct congestion_state *fluid, const struct connection *one, double time,
                             int64_t now) {
  double gap = fluid->settings.mss * 8e12 / most_of(one->pace, 1.0);
  if (time < gap) return gap;
  return time + (one->settled != 0 ? 0.5 : chance(one->salt, now)) * gap;
}

/* How long a round of a connection takes that begins now, ps. */
static double round_time(struct congestion_state *fluid, int64_t c, int64_t now) {
  const struct connection *one = &fluid->conns[c];
  if (one->wait > 0.0) return one->wait;
  double time = path_rtt(fluid, c);
  /* Credit comes without anything sent, and may be none. */
  bool by_rate = fluid->settings.gives_rate && !fluid->settings.credits;
  return by_rate && one->pace < (double)one->line ? to_next_packet(fluid, one, time, now) : time;
}

/* When a round of connection `one` ends that begins now and takes `time`. */
static int64_t round_end(const struct connection *one, double time, int64_t grid, int64_t now) {
  /* It is silent until the timer: no acknowledgement comes that could end the round before. */
  if (one->timeout_at > 0) return on_grid((double)(one->timeout_at - now), one->grid, now);
  int64_t due = on_grid(time, grid, now);
  /* A loss ends the round: the sender reacts when it hears of it. */
  if (one->known_at > 0) due = least(due, on_grid((double)(one->known_at - now), one->grid, now));
  return due;
}

/* Where nothing paces a window, a round sends no more than the window. If queues grew by what begins in this instant,
 * the round takes longer than its rate was made for. */
static void limit_burst(struct congestion_state *fluid, int64_t c, double time, int64_t now) {
  struct connection *one = &fluid->conns[c];
  if (fluid->settings.gives_rate || fluid->settings.paced) return;
  double left = one->window - sent_in_round(one, now);
  if ((double)one->rate * BYTES_PER_BPS_PS * time <= OVER * left) return;
  settle_conn(fluid, c, now);
  one->budget = left;
}

/* When the round of a connection ends that begins now; or it rests. */
static void set_round(struct congestion_state *fluid, int64_t c, int64_t now) {
  struct connection *one = &fluid->conns[c];
  /* It has nothing to send; or it was woken in this instant, and its round has an end already. */
  if (one->active == 0 || one->due > now) return;
  if (one->held != 0) { /* while it is, it has none */
    one->due = NONE;
    return;
  }
  double time = round_time(fluid, c, now), span = time;
  int64_t grid = one->grid;
  if (fluid->settings.tolerance > 0.0) {
    span = stretched(fluid, one, time);
    grid = stretched_grid(one, span);
  }
  int64_t due = round_end(one, span, grid, now);
  if (span > time)
    have_told(fluid, one);
  else
    limit_burst(fluid, c, time, now);
  /* A connection that is silent until it hears of a loss must not rest: it would be silent for ever. */
  bool rests = fluid->settings.rests && one->settled != 0 && one->spent == 0 && one->budget > one->remaining;
  if (rests && is_clean(one) && may_rest(fluid, one)) {
    rest(fluid, one, on_grid(time, one->grid, 0), due);
    return;
  }
  one->due = due;
  note_woken(fluid, c);
}

/* When rounds end that began in this instant, or whose connections were woken. */
static void set_rounds(struct core *core, struct congestion_state *fluid, int64_t now) {
  struct congestion_counts *counts = &fluid->counts;
  for (int64_t k = 0; k < counts->num_woken; k++) {
    struct connection *one = &fluid->conns[fluid->woken[k]];
    /* Its round begins in this very instant: it takes as long as links are now. */
    if (one->round == now && one->active != 0)
      one->due = on_grid(round_time(fluid, fluid->woken[k], now), one->grid, now);
  }
  for (int64_t k = 0; k < counts->num_updated; k++) set_round(fluid, fluid->updated[k], now);
  counts->num_updated = 0;
  for (int64_t k = 0; k < counts->num_woken; k++) {
    int32_t c = fluid->woken[k];
    push_event(core->calendar, fluid->conns[c].due, (struct event){now, now, NONE, 0, c, ROUND_ENDS, NONE, 0});
  }
  counts->num_woken = 0;
}

/* When each has sent all that it has, or may send, if that is before its round ends. */
static void set_drains(struct congestion_state *fluid) {
  struct congestion_counts *counts = &fluid->counts;
  for (int64_t k = 0; k < counts->num_changed; k++) {
    int64_t c = fluid->changed[k], when = NEVER;
    const struct connection *one = &fluid->conns[c];
    if (one->active == 0) continue;
    double left = least_of(one->remaining, one->budget), rate = (double)one->rate * BYTES_PER_BPS_PS;
    /* A drain beyond the end of the round would be moved then anyhow: so the heap stays small. */
    if (left <= rate * (double)(one->due - one->touched + 1)) when = drain_time(one->touched, left, rate);
    set_drain(fluid->drains, c, when);
  }
  counts->num_changed = 0;
}

/* Everything that changed at `now` comes into force. */
static void apply_changes(struct core *core, struct congestion_state *fluid, int64_t now) {
  double least = least_queue(fluid);
  /* The order matters: wants need queues as they are, shares need all wants, loads need shares; who leaves, rests or
   * drains depends on the loads. */
  set_wants(fluid, now);
  share_own_ports(fluid, now);
  set_loads(core, fluid, least, now);
  let_go(core, fluid, least, now);
  watch_queues(core, fluid, least, now);
  set_rounds(core, fluid, now);
  set_drains(fluid);
  fluid->counts.open = 0;
  fluid->counts.stamp++;
}
