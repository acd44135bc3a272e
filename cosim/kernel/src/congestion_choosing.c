/* Paths that a balancer chooses, in `congestion`: what it is shown, and how a connection takes its answer. */
#include "kernel.h"

/* Count a connection among those on its links (sign 1), or no longer (-1). */
static void count_crowd(struct congestion_state *fluid, int64_t c, int64_t sign) {
  for (int64_t s = fluid->conns[c].subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    int64_t part = sign * (int64_t)(subflow->part * WEIGHT_UNIT + 0.5);
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++)
      fluid->balance->crowd[fluid->hops[k].link] += part;
  }
}

/* A connection has sent its flow. */
static void end_choice(struct congestion_state *fluid, int64_t c, int64_t now) {
  count_crowd(fluid, c, -1);
  fluid->balance->routes[c].due = NONE;
  fluid->balance->routes[c].idle_since = now;
}

/* Links failed, or came back: all that send choose again, at this instant. */
int64_t choose_all_anew(struct congestion_state *fluid, int64_t num_conns) {
  CATCH_OUT_OF_MEMORY;
  for (int64_t c = 0; c < num_conns; c++)
    if (fluid->conns[c].active) choose_at_end(fluid->balance, c, false);
  return DONE;
}

/* -- what a balancer is shown -------------------------------------------------------------------------------------- */

/* Mark what a connection itself brings to its links now (sign 1), or take the marks away (-1). */
static void bring_mine(struct congestion_state *fluid, int64_t c, int64_t sign) {
  for (int64_t s = fluid->conns[c].subflow; s != NONE; s = fluid->subflows[s].next) {
    const struct subflow *subflow = &fluid->subflows[s];
    for (int64_t k = subflow->hop; k < subflow->hop + subflow->hops; k++)
      fluid->mine[fluid->hops[k].link] += sign * fluid->hops[k].load;
  }
}

/* Fill in what a row sees of a path: of links that not all paths share. */
static void look_at_path(struct core *core, struct congestion_state *fluid, const struct candidate *path,
                         struct seen_path *seen, int64_t c, int64_t now) {
  const struct balance *balance = fluid->balance;
  int64_t links = fluid->counts.num_links;
  double mine = balance->routes[c].begins_message ? 0.0 : seen->part, unmarked = 1.0;
  for (int64_t at = path->own; at < path->own_end; at++) {
    int64_t number = balance->links[at], others = 0;
    look_at_link(core, fluid, number, now);
    const struct port_link *link = &fluid->links[number];
    for (int64_t k = 0; k < fluid->counts.num_classes; k++) others += fluid->ports[number + k * links].load;
    double load = (double)(others - fluid->mine[number]) / (double)most(link->capacity, 1);
    seen->load = most_of(load, seen->load);
    seen->flows = most_of((double)balance->crowd[number] / WEIGHT_UNIT - mine, seen->flows);
    int64_t p = number + fluid->conns[c].priority * links;
    double queue = fluid->ports[p].queue;
    if (!(queue > 0.0)) continue;
    seen->queue += queue * 8e12 / service_rate(fluid, p);
    unmarked *= 1.0 - mean_mark(queue, queue, link->mark_from, link->mark_all, link->mark_most);
  }
  seen->marked = 1.0 - unmarked;
}

/* Fill in what a row sees of all its paths. */
static void look_at_candidates(struct core *core, struct congestion_state *fluid, const struct choice *row,
                               int64_t now) {
  struct balance *balance = fluid->balance;
  const struct endpoint_pair *pair = &balance->pairs[balance->routes[row->conn].pair];
  /* Its own load is marked on its links while its paths are looked at, so that each shows what others bring: with every
   * path in turn, adding and removing are a few steps, and looking it up would be a search. */
  bring_mine(fluid, row->conn, 1);
  for (int64_t k = 0; k < pair->count; k++)
    look_at_path(core, fluid, &balance->candidates[pair->first + k], &balance->seen[row->begin + k], row->conn, now);
  bring_mine(fluid, row->conn, -1);
}

/* Fill in the rows of a batch. */
static void fill_choices(struct core *core, struct congestion_state *fluid, int64_t now) {
  struct balance *balance = fluid->balance;
  for (int64_t n = 0; n < balance->counts.num_rows; n++) {
    struct choice *row = show_choice(balance, n, now);
    const struct connection *one = &fluid->conns[row->conn];
    row->size = (double)one->payload;
    row->left = bytes_left(one, now) * (row->size / one->size);
    row->rate = (double)one->rate;
    row->line = (double)one->line;
    row->base_rtt = one->base;
    row->rtt = one->known ? one->seen_rtt : one->base;
    row->marked = one->marked;
    row->priority = (double)one->priority;
    if (balance->counts.looks) look_at_candidates(core, fluid, row, now);
  }
}

/* -- how a connection takes an answer ------------------------------------------------------------------------------ */

/* Whether the `n`-th answer names paths that its connection never took. */
static bool lacks_subflows(const struct congestion_state *fluid, int64_t n) {
  const struct balance *balance = fluid->balance;
  const struct choice *row = &balance->rows[n];
  const int32_t *choices = fluid->choices + fluid->conns[row->conn].choices;
  if (!balance->counts.splits) return choices[(int64_t)row->path] == NONE;
  for (int64_t k = 0; k < (int64_t)row->paths; k++)
    if (balance->seen[row->begin + k].part > 0.0 && choices[k] == NONE) return true;
  return false;
}

/* Have a connection go by the paths that it has chosen now. */
static void take_chosen_paths(struct core *core, struct congestion_state *fluid, int64_t c, int64_t now) {
  const struct balance *balance = fluid->balance;
  leave_paths(core, fluid, c, now);
  for (int64_t k = 0; k < balance->pairs[balance->routes[c].pair].count; k++) {
    double part = part_of(balance, c, k);
    if (part > 0.0) take_path(fluid, c, fluid->choices[fluid->conns[c].choices + k], part);
  }
  go_on(core, fluid, c, now);
}

/* Have the `n`-th of a batch go where the balancer said. */
static void follow_choice(struct core *core, struct congestion_state *fluid, int64_t n, int64_t now) {
  struct balance *balance = fluid->balance;
  int64_t c = balance->rows[n].conn;
  struct chosen_route *route = &balance->routes[c];
  bool begins_message = route->begins_message;
  if (!begins_message) count_crowd(fluid, c, -1);
  bool changed = is_answer_new(balance, n);
  take_answer(balance, n);
  balance->counts.num_choices++;
  /* A first choice is none that changes anything. */
  if (changed && route->known) balance->counts.num_changes++;
  route->known = 1;
  route->begins_message = 0;
  route->choosing = 0;
  if (changed) take_chosen_paths(core, fluid, c, now);
  count_crowd(fluid, c, 1);
  /* Only now does it begin to send: before, it had no path. */
  if (begins_message) send_flow(core, fluid, c, now);
  route->due = NONE;
  if (!asks_again(balance, n)) return;
  route->due = now + (int64_t)balance->rows[n].again;
  push_event(core->calendar, route->due, (struct event){now, now, NONE, 0, (int32_t)c, CHOOSES_AGAIN, NONE, 0});
}

/* Have a batch of those that choose at this instant do so: shown, asked, checked, taken. DONE, or what Python has to
 * see to. */
static int64_t choose_paths(struct core *core, struct congestion_state *fluid, int64_t now) {
  struct balance *balance = fluid->balance;
  if (!balance->counts.asked) {
    begin_batch(balance);
    fill_choices(core, fluid, now);
    if (have_answered(balance) != DONE) return CHOOSE;
  }
  int64_t status = check_batch(balance);
  if (status != DONE) return status;
  for (; balance->counts.taken < balance->counts.num_rows; balance->counts.taken++) {
    if (lacks_subflows(fluid, balance->counts.taken)) return NEED_SUBFLOWS;
    follow_choice(core, fluid, balance->counts.taken, now);
  }
  end_batch(balance);
  return DONE;
}
