/* Queues told apart by subflow (*traced*): where paths may change while a run goes on, or ports pause.
 *
 * A queue is served in the order in which its bytes came. When a subflow brings another rate to a port with a queue, a
 * *rate boundary* is put behind the bytes that stand there. The port passes on the new rate of that subflow when it
 * has served all that was before the boundary. Until then each subflow has the part of what leaves that it had of what
 * came. So every byte goes where it is sent, also along subflows by which nothing is sent any more.
 *
 * Rate boundaries nearer to each other than a packet pass together: within a packet there is no order. Where there is a
 * tolerance, those in queues from which nothing goes on pass when the queue is looked at next.
 */
#include "kernel.h"

/* A sum that changes by less than this part of it is shared as before, until the next round. */
enum { ALIKE = 16 };

#define FAR_PS 1e17 /* 28 hours: nothing is looked for farther ahead */

/* What a subflow brings to its ports, from its `from`th on, is to be worked out anew when time leaves the instant. */
static inline void have_moved(struct congestion_state *fluid, int64_t s, int64_t from) {
  struct subflow *subflow = &fluid->subflows[s];
  if (fluid->moved[s] == fluid->counts.stamp) {
    subflow->from = (int16_t)least(subflow->from, from);
    return;
  }
  if (subflow->attached == 0 || from >= subflow->hops) return;
  fluid->moved[s] = fluid->counts.stamp;
  note_moving(fluid, s, from);
  fluid->counts.open = 1;
}

/* The same where its hop k's port passes on another rate of it. */
static inline void leaves_otherwise(struct congestion_state *fluid, int64_t k) {
  int64_t s = fluid->subflow_of[k];
  /* Where there is a tolerance, what it brings to ports before waits for the end of its round. */
  have_moved(fluid, s, fluid->settings.tolerance > 0.0 ? k + 1 - fluid->subflows[s].hop : 0);
}

/* The same for all subflows on a port, if the sum that they share has changed; returns whether it has. */
static inline bool have_all_moved(struct congestion_state *fluid, int64_t p) {
  struct line *line = &fluid->lines[p];
  if (llabs(line->out - line->told) * ALIKE <= line->told) return false;
  line->told = line->out;
  for (int64_t m = fluid->ports[p].first; m != NONE; m = fluid->hops[m].after) leaves_otherwise(fluid, m);
  return true;
}

static int64_t new_boundary(struct congestion_state *fluid) {
  struct congestion_counts *counts = &fluid->counts;
  int64_t f = counts->free_boundary;
  if (f != NONE) {
    counts->free_boundary = fluid->boundaries[f].next;
  } else {
    f = counts->boundaries_used++;
    RESERVE(fluid, boundaries, counts->boundaries_used);
  }
  return f;
}

/* Hop k brings another load to its port, whose queue is settled: the new load leaves after what stands there. */
static void line_up(struct congestion_state *fluid, int64_t k, double least, int64_t now) {
  const struct subflow_hop *hop = &fluid->hops[k];
  const struct port *port = &fluid->ports[hop->port];
  struct line *line = &fluid->lines[hop->port];
  double end = port->served + port->queue;
  /* A receiver's port passes nothing on, so boundaries don't matter there, unless it pauses others. */
  bool told = fluid->links[hop->link].onward > 0 || fluid->settings.lossless;
  if (line->head == NONE && (port->queue <= least || !told)) {
    set_out(fluid, k, hop->load, end, now);
    return;
  }
  int64_t f = new_boundary(fluid);
  fluid->sights[k].boundaries++;
  fluid->boundaries[f] = (struct rate_boundary){.leaves = end, .load = hop->load, .hop = (int32_t)k, .next = NONE};
  if (line->head == NONE)
    line->head = (int32_t)f;
  else
    fluid->boundaries[line->tail].next = (int32_t)f;
  line->tail = (int32_t)f;
}

/* Have what a boundary is about come from memory. */
FETCHES void fetch_boundary(const struct congestion_state *fluid, int64_t f) {
  if (f == NONE) return;
  const struct rate_boundary *boundary = &fluid->boundaries[f];
  __builtin_prefetch(&fluid->hops[boundary->hop]);
  __builtin_prefetch(&fluid->sights[boundary->hop]);
  __builtin_prefetch(&fluid->outs[boundary->hop]);
  __builtin_prefetch(&fluid->subflow_of[boundary->hop]);
  if (boundary->next != NONE) __builtin_prefetch(&fluid->boundaries[boundary->next]);
}

/* The boundary at the head of a queue passes: the port passes on what it says from now on. */
static inline void pass_boundary(struct congestion_state *fluid, const struct port *port, struct line *line,
                              int64_t now) {
  int32_t f = line->head;
  struct rate_boundary *boundary = &fluid->boundaries[f];
  fetch_boundary(fluid, boundary->next);
  /* A dead link's queue is empty: its boundaries pass, though it has not served what was before them. */
  set_out(fluid, boundary->hop, boundary->load, least_of(boundary->leaves, port->served + port->queue), now);
  leaves_otherwise(fluid, boundary->hop);
  fluid->sights[boundary->hop].boundaries--;
  line->head = boundary->next;
  boundary->next = (int32_t)fluid->counts.free_boundary;
  fluid->counts.free_boundary = f;
}

/* The boundaries at the head of a port's queue pass. */
static void pass_boundaries(struct core *core, struct congestion_state *fluid, int64_t p, double least, int64_t now) {
  struct port *port = &fluid->ports[p];
  struct line *line = &fluid->lines[p];
  settle_queues(core, fluid, port->link, now);
  touch_port(fluid, p);
  if (line->head == NONE) return;
  /* The first of them must have come to the head; others within a packet go with it. */
  if (fluid->boundaries[line->head].leaves - port->served > 1.0 && port->queue > least) return;
  while (line->head != NONE &&
         (fluid->boundaries[line->head].leaves - port->served <= least || port->queue <= least))
    pass_boundary(fluid, port, line, now);
  have_all_moved(fluid, p);
}

/* Have boundaries pass that port p has served by now, its queue settled, if it was not looked at when they came to the head
 * (passes_unseen): its input shares are accounted for from where each stood. */
static inline void catch_up(struct core *core, struct congestion_state *fluid, int64_t p, int64_t now) {
  if (!fluid->settings.traced || fluid->settings.tolerance == 0.0 || fluid->lines[p].head == NONE) return;
  const struct port *port = &fluid->ports[p];
  struct line *line = &fluid->lines[p];
  settle_queues(core, fluid, port->link, now);
  while (line->head != NONE && (fluid->boundaries[line->head].leaves <= port->served || port->queue == 0.0))
    pass_boundary(fluid, port, line, now);
}

/* Whether boundaries in port p's queue may pass when it is looked at next, where there is a tolerance: nothing goes on from
 * there, and no input share is near a threshold. */
static inline bool passes_unseen(const struct congestion_state *fluid, int64_t p) {
  const struct port *port = &fluid->ports[p];
  const struct port_link *link = &fluid->links[port->link];
  return fluid->settings.tolerance > 0.0 && link->onward == 0 && port->stops == 0 && port->queue < link->pause;
}

/* Look again when a port has served what is before its first boundary, if loads stay as they are. */
static inline void expect_boundary(struct core *core, struct congestion_state *fluid, int64_t p, int64_t now) {
  const struct port *port = &fluid->ports[p];
  struct line *line = &fluid->lines[p];
  if (line->head == NONE || port->paused != 0 || passes_unseen(fluid, p)) return;
  double rate = left_for(fluid, p);
  if (rate <= 0.0) return;
  double before = fluid->boundaries[line->head].leaves - port->served;
  int64_t at = now + most(round_up(least_of(before / (rate * BYTES_PER_BPS_PS), FAR_PS)), 1);
  /* If it will be looked at earlier, this is worked out anew then. */
  if (line->due > now && at >= line->due) return;
  line->due = at;
  push_event(core->calendar, at, (struct event){now, now, NONE, 0, (int32_t)p, BOUNDARY_PASSES, NONE, 0});
}

/* The bits per second of hop k's subflow that leave its port. */
static inline int64_t leaves_with(const struct congestion_state *fluid, int64_t k, double least) {
  int64_t p = fluid->hops[k].port, out = fluid->outs[k];
  const struct port *port = &fluid->ports[p];
  const struct line *line = &fluid->lines[p];
  if (port->paused > 0 || out == 0) return 0;
  double rate = left_for(fluid, p);
  if (line->head == NONE && (double)line->out <= rate && port->queue <= least) return out;
  return (int64_t)((double)out * rate / (double)line->out);
}
