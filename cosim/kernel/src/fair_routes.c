/* Paths that a balancer chooses, in fair_share: what it is shown, and how a flow goes over to its answer.
 *
 * A flow that has parts is on each link with the part of its weight that goes that way, all of it at one rate: max-min
 * sharing with a coefficient for each link. So the link with the least for its part holds back the others. What has gone
 * by a path when its flow leaves it arrives by it.
 */
#include "kernel.h"

enum { ROUTE_AGAIN = 1 }; /* `hop` of an event: a connection (row) asked to be asked again */

#define PART_DUST 1e-3 /* of 1e-9 of a weight: what parts of a whole lose by rounding */

static inline bool has_balancer(const struct fluid *fluid) {
  return fluid->balance != NULL && fluid->balance->counts.on != 0;
}

static inline bool is_choosing(const struct fluid *fluid) {
  return has_balancer(fluid) && fluid->balance->counts.num_choosing > 0;
}

/* A connection begins a message: it chooses when time leaves the instant. */
static void begin_on_route(struct fluid *fluid, int64_t c) {
  fluid->balance->routes[c].sent = 0;
  choose_at_end(fluid->balance, c, true);
}

/* Count a flow among those on its links, or no longer. */
static void count_in_crowd(struct fluid *fluid, int64_t f, int64_t sign) {
  const struct fluid_flow *flow = &fluid->flows[f];
  double whole = (double)fluid->classes[flow->traits].weight;
  /* One membership a link, whatever the paths that go over it: a link is counted once. */
  for (int64_t m = flow->member; m != NONE; m = fluid->members[m].sibling) {
    double part = (double)weight_of(fluid, m, flow);
    fluid->balance->crowd[fluid->members[m].link] += sign * (int64_t)(part / whole * WEIGHT_UNIT + 0.5);
  }
}

/* Count bytes on the links of a connection's paths; `sent`: of its message, so far. */
static void count_on_route(struct core *core, struct fluid *fluid, int64_t c, int64_t sent) {
  struct balance *balance = fluid->balance;
  struct chosen_route *route = &balance->routes[c];
  const struct endpoint_pair *pair = &balance->pairs[route->pair];
  struct parting parting = part_bytes(balance, sent - route->sent);
  route->sent = sent;
  for (int64_t k = 0; k < pair->count; k++) {
    double part = part_of(balance, c, k);
    if (part == 0.0) continue;
    const struct candidate *path = &balance->candidates[pair->first + k];
    int64_t mine = next_bytes(&parting, part);
    for (int64_t at = path->begin; at < path->end; at++) core->link_bytes[balance->links[at]] += mine;
  }
}

/* A flow that has drained is about to leave its links; when its last byte arrives. */
static int64_t end_on_route(struct core *core, struct fluid *fluid, int64_t f, int64_t c) {
  int64_t now = core->state.instant;
  struct chosen_route *route = &fluid->balance->routes[c];
  count_on_route(core, fluid, c, core->store->rows[fluid->messages[f].row].size);
  count_in_crowd(fluid, f, -1);
  route->due = NONE;
  route->idle_since = now;
  route->arrives = most(now + route->latency, route->arrives);
  return route->arrives;
}

/* What others bring to the links that not all paths share. */
static void look_along(const struct fluid *fluid, const struct choice *row, const struct fluid_flow *flow) {
  const struct balance *balance = fluid->balance;
  const struct endpoint_pair *pair = &balance->pairs[balance->routes[row->conn].pair];
  for (int64_t k = 0; k < pair->count; k++) {
    const struct candidate *path = &balance->candidates[pair->first + k];
    struct seen_path *seen = &balance->seen[row->begin + k];
    double mine = flow->member != NONE ? seen->part : 0.0;
    for (int64_t at = path->own; at < path->own_end; at++) {
      const struct fluid_link *link = &fluid->links[balance->links[at]];
      double load = link->capacity > 0.0 ? (link->used - mine * flow->rate) / link->capacity : 1.0;
      double crowd = (double)balance->crowd[balance->links[at]] / WEIGHT_UNIT - mine;
      seen->load = most_of(load, seen->load);
      seen->flows = most_of(crowd, seen->flows);
    }
  }
}

/* Fill in the rows of a batch. */
static void show_batch(const struct core *core, struct fluid *fluid, int64_t now) {
  struct balance *balance = fluid->balance;
  for (int64_t n = 0; n < balance->counts.num_rows; n++) {
    struct choice *row = show_choice(balance, n, now);
    const struct chosen_route *route = &balance->routes[row->conn];
    const struct candidate *first = &balance->candidates[balance->pairs[route->pair].first];
    int64_t f = fluid->channels[row->conn].head;
    const struct fluid_flow *flow = &fluid->flows[f];
    row->size = (double)core->store->rows[fluid->messages[f].row].size;
    row->left = left_of(flow, now);
    row->rate = flow->rate * BPS_PER_BYTE_PS;
    row->line = fluid->links[balance->links[first->begin]].capacity * BPS_PER_BYTE_PS;
    row->base_rtt = 2.0 * (double)(route->known ? route->latency : first->latency);
    row->rtt = row->base_rtt;
    row->marked = 0.0;
    row->priority = (double)fluid->classes[flow->traits].priority;
    if (balance->counts.looks) look_along(fluid, row, flow);
  }
}

/* Links failed, or came back: all that send choose again, at this instant. */
int64_t choose_anew(struct fluid *fluid) {
  CATCH_OUT_OF_MEMORY;
  for (int64_t c = 0; c < least(fluid->channels_len, fluid->balance->routes_len); c++) {
    int64_t f = fluid->channels[c].head;
    if (f != NONE && fluid->flows[f].member != NONE) choose_at_end(fluid->balance, c, false);
  }
  return DONE;
}

/* What a flow has sent by now went by its old paths: it is counted on them, and they are left. */
static void leave_route(struct core *core, struct fluid *fluid, int64_t f, int64_t c, int64_t now) {
  struct chosen_route *route = &fluid->balance->routes[c];
  int64_t size = core->store->rows[fluid->messages[f].row].size;
  count_on_route(core, fluid, c, size - (int64_t)ceil(left_of(&fluid->flows[f], now)));
  count_in_crowd(fluid, f, -1);
  leave_path(fluid, f);
  fluid->flows[f].level = -1.0; /* to the filling it is a new one */
  route->arrives = most(route->arrives, now + route->latency);
}

/* Put a flow, or a part of it, on the links of a path. */
static void go_along(struct fluid *fluid, int64_t f, const struct candidate *path, double part) {
  struct balance *balance = fluid->balance;
  struct fluid_flow *flow = &fluid->flows[f];
  int64_t whole = fluid->classes[flow->traits].weight;
  /* Rounded up: a link is never given more than it has. */
  int64_t weight = most((int64_t)ceil(part * (double)whole - PART_DUST), 1);
  for (int64_t at = path->begin; at < path->end; at++) {
    int64_t link = balance->links[at];
    /* Paths of a pair share links: `spot` says which membership a link has already. */
    if (balance->spot[link] == NONE) {
      flow->member = (int32_t)join_link(fluid, f, link, flow->member, CAME);
      balance->spot[link] = flow->member;
      if (balance->counts.splits) {
        RESERVE(fluid, parts, fluid->members_len);
        fluid->parts[flow->member] = 0;
      }
    }
    int64_t m = balance->spot[link];
    if (balance->counts.splits) fluid->parts[m] = least(fluid->parts[m] + weight, whole);
  }
}

/* Put a flow on the links of what its connection has chosen. */
static void go_by_choice(struct fluid *fluid, int64_t f, int64_t c) {
  struct balance *balance = fluid->balance;
  struct chosen_route *route = &balance->routes[c];
  const struct endpoint_pair *pair = &balance->pairs[route->pair];
  route->latency = 0;
  for (int64_t k = 0; k < pair->count; k++) {
    double part = part_of(balance, c, k);
    if (part == 0.0) continue;
    const struct candidate *path = &balance->candidates[pair->first + k];
    route->latency = most(route->latency, path->latency);
    go_along(fluid, f, path, part);
  }
  for (int64_t m = fluid->flows[f].member; m != NONE; m = fluid->members[m].sibling)
    balance->spot[fluid->members[m].link] = NONE;
  count_in_crowd(fluid, f, 1);
}

/* Have those of a batch go where the balancer said. */
static void follow_answers(struct core *core, struct fluid *fluid, int64_t now) {
  struct balance *balance = fluid->balance;
  struct balance_counts *counts = &balance->counts;
  for (; counts->taken < counts->num_rows; counts->taken++) {
    int64_t n = counts->taken, c = balance->rows[n].conn, f = fluid->channels[c].head;
    struct chosen_route *route = &balance->routes[c];
    bool changed = is_answer_new(balance, n);
    if (changed && fluid->flows[f].member != NONE) leave_route(core, fluid, f, c, now);
    take_answer(balance, n);
    counts->num_choices++;
    counts->num_changes += changed && route->known;
    route->known = 1;
    route->begins_message = 0;
    route->choosing = 0;
    if (changed || fluid->flows[f].member == NONE) go_by_choice(fluid, f, c);
    route->due = NONE;
    if (!asks_again(balance, n)) continue;
    route->due = now + (int64_t)balance->rows[n].again;
    push_event(core->calendar, route->due, (struct event){now, now, NONE, 0, (int32_t)c, ROUTE_AGAIN, NONE, 0});
  }
  end_batch(balance);
}

/* Have a batch of those that choose at this instant do so: shown, asked, checked, followed. DONE, or what Python has to
 * do. */
static int64_t choose_routes(struct core *core, struct fluid *fluid, int64_t now) {
  struct balance *balance = fluid->balance;
  if (!balance->counts.asked) {
    begin_batch(balance);
    show_batch(core, fluid, now);
    int64_t status = have_answered(balance);
    if (status != DONE) return status;
  }
  int64_t status = check_batch(balance);
  if (status == DONE) follow_answers(core, fluid, now);
  return status;
}
