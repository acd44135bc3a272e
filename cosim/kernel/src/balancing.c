/* Load balancers: what networks share of choosing, and the balancers that are built in.
 *
 * A connection that begins a message, or asked to be asked again, is put on a list; when time leaves the instant all of
 * them are one batch, or one of a row each. The network shows what only it knows of paths. What balancers are:
 * cosim/network/balancing/contract.py.
 */
#include "kernel.h"

/* -- random numbers: cosim/network/chance.py ---------------------------------------------------------------------- */

static inline uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* A number from 0 to 1 for the connection of this salt, at this time. How often it drew before plays no part, so rounds
 * may be left out. */
static inline double chance(int64_t salt, int64_t now) {
  return (double)(mixed((uint64_t)salt ^ (uint64_t)now * 0x9E3779B97F4A7C15u) >> 11) * 0x1p-53;
}

/* -- choosing ------------------------------------------------------------------------------------------------------ */

static const double EVEN_STEP = 0.6180339887498949;
static const double NEAR_ONE = 1e-6; /* parts add up to 1 within this */

/* A connection chooses when time leaves this instant; `begins_message`: because it begins a message. */
static inline void choose_at_end(struct balance *balance, int64_t c, bool begins_message) {
  struct balance_counts *counts = &balance->counts;
  struct chosen_route *route = &balance->routes[c];
  if (begins_message) route->begins_message = 1;
  /* Once in the list, however many messages it begins at this instant. */
  if (route->choosing) return;
  route->choosing = 1;
  RESERVE(balance, choosing, counts->num_choosing + 1);
  balance->choosing[counts->num_choosing++] = (int32_t)c;
}

/* What everybody knows of one path of the `n`-th row. */
static void show_path(const struct balance *balance, const struct chosen_route *route, int64_t k,
                      struct seen_path *seen) {
  const struct candidate *path = &balance->candidates[balance->pairs[route->pair].first + k];
  seen->minimal = path->minimal;
  seen->hops = (double)(path->end - path->begin);
  seen->rate = path->rate;
  seen->latency = (double)path->latency;
  seen->alive = 1.0;
  for (int64_t at = path->begin; at < path->end; at++)
    if (balance->dead[balance->links[at]]) seen->alive = 0.0;
  if (route->part >= 0)
    seen->part = balance->parts[route->part + k];
  else if (route->path == k)
    seen->part = 1.0;
}

/* Fill in what every network knows of the `n`-th that chooses; its row. */
static struct choice *show_choice(struct balance *balance, int64_t n, int64_t now) {
  int64_t c = balance->choosing[balance->counts.next + n], width = balance->counts.most_paths;
  struct chosen_route *route = &balance->routes[c];
  int64_t count = balance->pairs[route->pair].count;
  struct choice *row = &balance->rows[n];
  row->conn = c;
  row->begin = n * width;
  row->first = route->known == 0;
  row->begins_message = route->begins_message;
  row->idle = (double)(route->begins_message ? now - route->idle_since : route->pause);
  route->pause = 0;
  /* A draw for this time and one for good, both from the connection's own salt: no other's choice moves them. */
  row->chance = chance(route->salt, now);
  row->hash = chance(route->salt, -1);
  row->job = route->job;
  row->paths = (double)count;
  row->path = route->path;
  row->again = 0.0;
  /* All columns, also beyond this pair's paths: rows are used again, and an answer must find no old parts. */
  memset(&balance->seen[row->begin], 0, (size_t)width * sizeof *balance->seen);
  for (int64_t k = 0; k < count; k++) show_path(balance, route, k, &balance->seen[row->begin + k]);
  return row;
}

/* Whether any path of a row is up. Where none is there is nothing to choose. */
static bool any_alive(const struct balance *balance, const struct choice *row) {
  for (int64_t k = 0; k < (int64_t)row->paths; k++)
    if (balance->seen[row->begin + k].alive != 0.0) return true;
  return false;
}

/* Put those that choose in an order that is a lot's, whatever came first. Salts are drawn for (job, source,
 * destination, channel), so that the order hangs neither on numbers nor on who came first. */
static void order_by_lot(struct balance *balance) {
  int32_t *choosing = balance->choosing;
  const struct chosen_route *routes = balance->routes;
  int64_t begin = balance->counts.num_choosing / 2, end = balance->counts.num_choosing;
  /* Heapsort, by salt: in place. */
  while (end > 1) {
    if (begin > 0) {
      begin--;
    } else {
      end--;
      int32_t last = choosing[end];
      choosing[end] = choosing[0];
      choosing[0] = last;
    }
    int64_t at = begin;
    int32_t one = choosing[at];
    for (int64_t child = 2 * at + 1; child < end; child = 2 * at + 1) {
      if (child + 1 < end && routes[choosing[child + 1]].salt > routes[choosing[child]].salt) child++;
      if (routes[choosing[child]].salt <= routes[one].salt) break;
      choosing[at] = choosing[child];
      at = child;
    }
    choosing[at] = one;
  }
}

/* Who is asked next: all that choose, or one of them; there are rows for them. */
static void begin_batch(struct balance *balance) {
  struct balance_counts *counts = &balance->counts;
  if (counts->one_by_one && counts->next == 0) order_by_lot(balance);
  counts->num_rows = counts->one_by_one ? 1 : counts->num_choosing;
  RESERVE(balance, rows, counts->num_rows);
  RESERVE(balance, seen, counts->num_rows * counts->most_paths);
}

/* Ask the balancer about a batch that is filled in: DONE, or CHOOSE where Python has to. */
static int64_t have_answered(struct balance *balance) {
  balance->counts.asked = 1;
  if (balance->counts.kernel == 0) return CHOOSE;
  ((balancer_kernel)(intptr_t)balance->counts.kernel)(balance->counts.num_rows, balance->rows, balance->seen,
                                                      balance->state, balance->parameters);
  return DONE;
}

/* Whether parts can be followed; they are made to add up to 1. */
static bool are_parts_good(struct balance *balance, const struct choice *row, bool some) {
  struct seen_path *seen = &balance->seen[row->begin];
  int64_t count = (int64_t)row->paths;
  double total = 0.0;
  for (int64_t k = 0; k < balance->counts.most_paths; k++) {
    double part = seen[k].part;
    if (!(part >= 0.0 && part <= 2.0)) return false;
    if (part > 0.0 && (k >= count || (some && seen[k].alive == 0.0))) return false;
    total += part;
  }
  if (fabs(total - 1.0) > NEAR_ONE) return false;
  /* Sums of thirds are off by rounding; bytes must not get lost by it. */
  if (total != 1.0)
    for (int64_t k = 0; k < count; k++) seen[k].part /= total;
  return true;
}

/* Whether a row's answer can be followed. */
static bool is_answer_good(struct balance *balance, const struct choice *row) {
  const struct balance_counts *counts = &balance->counts;
  if (!(row->again == 0.0 || (row->again >= LEAST_AGAIN_PS && isfinite(row->again)))) return false;
  for (int64_t k = 0; k < counts->num_states; k++)
    if (!isfinite(balance->state[row->conn * MOST_STATES + k])) return false;
  /* Where every path of a pair is down, any will do: its connection waits. */
  bool some = any_alive(balance, row);
  if (counts->splits) return are_parts_good(balance, row, some);
  if (!(row->path >= 0.0 && row->path < row->paths && row->path == floor(row->path))) return false;
  return !some || balance->seen[row->begin + (int64_t)row->path].alive != 0.0;
}

/* Whether a batch's answers can be followed: DONE, or WRONG_CHOICE. */
static int64_t check_batch(struct balance *balance) {
  struct balance_counts *counts = &balance->counts;
  /* The loop stopped in the middle of following this batch: it was checked when that began. */
  if (counts->taken != 0) return DONE;
  counts->wrong = NONE;
  for (int64_t n = 0; n < counts->num_rows; n++)
    if (!is_answer_good(balance, &balance->rows[n])) {
      counts->wrong = n;
      return WRONG_CHOICE;
    }
  return DONE;
}

/* Whether the `n`-th answer is another than what its connection has. */
static bool is_answer_new(const struct balance *balance, int64_t n) {
  const struct choice *row = &balance->rows[n];
  const struct chosen_route *route = &balance->routes[row->conn];
  if (!balance->counts.splits) return route->path != (int32_t)row->path;
  for (int64_t k = 0; k < balance->pairs[route->pair].count; k++)
    if (balance->parts[route->part + k] != balance->seen[row->begin + k].part) return true;
  return false;
}

/* A connection has the `n`-th answer from now on. */
static void take_answer(struct balance *balance, int64_t n) {
  const struct choice *row = &balance->rows[n];
  struct chosen_route *route = &balance->routes[row->conn];
  const struct endpoint_pair *pair = &balance->pairs[route->pair];
  if (!balance->counts.splits) {
    route->path = (int32_t)row->path;
    balance->candidates[pair->first + route->path].users++;
    return;
  }
  for (int64_t k = 0; k < pair->count; k++) {
    double part = balance->parts[route->part + k] = balance->seen[row->begin + k].part;
    if (part > 0.0) balance->candidates[pair->first + k].users++;
  }
}

/* Bytes that are parted over paths, as whole ones: sums of parts are rounded, so that none is lost or told twice. */
struct parting {
  int64_t bytes, given;
  double total, offset;
};

/* Another offset each time, which lie evenly between 0 and 1: bytes of many short messages go by parts, too. */
static struct parting part_bytes(struct balance *balance, int64_t bytes) {
  double offset = balance != NULL ? (double)(balance->counts.num_counted++) * EVEN_STEP : 0.0;
  return (struct parting){.bytes = bytes, .offset = offset - floor(offset)};
}

/* Bytes of the next path, which has this part of them. */
static int64_t next_bytes(struct parting *parting, double part) {
  parting->total += part;
  int64_t up_to = parting->total > 1.0 - NEAR_ONE
                      ? parting->bytes
                      : (int64_t)floor((double)parting->bytes * parting->total + parting->offset);
  int64_t mine = least(up_to, parting->bytes) - parting->given;
  parting->given += mine;
  return mine;
}

/* Whether the `n`-th is to be asked again at a time of its own. Not where every path is down: routes that change ask
 * it. */
static bool asks_again(const struct balance *balance, int64_t n) {
  const struct choice *row = &balance->rows[n];
  return row->again > 0.0 && any_alive(balance, row);
}

/* All answers of a batch are followed. */
static void end_batch(struct balance *balance) {
  struct balance_counts *counts = &balance->counts;
  counts->next += counts->num_rows;
  if (counts->next == counts->num_choosing) counts->num_choosing = counts->next = 0;
  counts->asked = counts->taken = 0;
}

/* What part of a connection goes by path `k` of its pair. */
static double part_of(const struct balance *balance, int64_t c, int64_t k) {
  const struct chosen_route *route = &balance->routes[c];
  if (balance->counts.splits) return balance->parts[route->part + k];
  return route->path == k ? 1.0 : 0.0;
}

/* -- balancers: what they are, cosim/network/balancing/balancers --------------------------------------------------- */

/* A path by a number from 0 to 1; the next one where it is down. */
static double drawn_path(const struct choice *row, const struct seen_path *paths, double lot) {
  int64_t count = (int64_t)row->paths, start = least((int64_t)(lot * (double)count), count - 1);
  for (int64_t k = 0; k < count; k++) {
    int64_t path = (start + k) % count;
    if (paths[path].alive != 0.0) return (double)path;
  }
  return (double)start;
}

static int64_t num_alive(const struct choice *row, const struct seen_path *paths) {
  int64_t count = 0;
  for (int64_t k = 0; k < (int64_t)row->paths; k++) count += paths[k].alive != 0.0;
  return count;
}

/* Where switches hash entropy `k` of a connection to: a path by lot, always the same. */
static int64_t hashed_path(const struct choice *row, int64_t k) {
  uint64_t z = (uint64_t)(int64_t)(row->hash * 0x1p53) + (uint64_t)(k + 1) * 0x9E3779B97F4A7C15u;
  return (int64_t)(mixed(z) >> 33) % (int64_t)row->paths;
}

/* Add `whole` to the parts of paths that are up: by so many entropies, which switches hash to paths, or to all alike
 * (0). */
static void give_out(const struct choice *row, struct seen_path *paths, double whole, int64_t entropies) {
  int64_t count = (int64_t)row->paths, up = 0;
  for (int64_t k = 0; k < entropies; k++) up += paths[hashed_path(row, k)].alive != 0.0;
  if (up == 0) { /* what they hash to is down: any other path */
    entropies = 0;
    up = num_alive(row, paths);
  }
  if (up == 0) {
    for (int64_t k = 0; k < count; k++) paths[k].part += whole / (double)count;
  } else if (entropies == 0) {
    for (int64_t k = 0; k < count; k++) paths[k].part += whole * paths[k].alive / (double)up;
  } else {
    for (int64_t k = 0; k < entropies; k++) {
      struct seen_path *path = &paths[hashed_path(row, k)];
      path->part += whole * path->alive / (double)up;
    }
  }
}

/* How long until a connection is asked again, ps: as its parameters say, or a round trip, but not less than they say. */
static double pause_of(const struct choice *row, double every, double least_pause) {
  return every > 0.0 ? every : most_of(row->rtt, least_pause);
}

/* Parameters: how long until the next time (ps), or 0; and how long at least. */
void choose_adaptive(int64_t n, struct choice *rows, struct seen_path *paths, double *state, const double *parameters) {
  (void)state;
  const double least_free = 1.0 / 64.0; /* of its rate that a full link counts as free: among full ones, queues decide */
  for (int64_t i = 0; i < n; i++) {
    struct choice *row = &rows[i];
    struct seen_path *mine = &paths[row->begin];
    int64_t count = (int64_t)row->paths, alive = num_alive(row, mine);
    double total = 0.0, known = 0.0;
    for (int64_t k = 0; k < count; k++) {
      struct seen_path *path = &mine[k];
      double free = path->rate * most_of(1.0 - path->load, least_free);
      path->load = free / (1.0 + path->queue / most_of(row->base_rtt, 1.0)) * path->alive;
      total += path->load;
      known += path->part * path->alive;
    }
    for (int64_t k = 0; k < count; k++) {
      struct seen_path *path = &mine[k];
      if (alive == 0)
        path->part = 1.0 / (double)count;
      else if (known == 0.0)
        path->part = path->load / total;
      else
        path->part = 0.5 * path->part * path->alive / known + 0.5 * path->load / total;
    }
    row->again = pause_of(row, parameters[0], parameters[1]);
  }
}

/* Parameters: the gap, ps. */
void choose_flowlet(int64_t n, struct choice *rows, struct seen_path *paths, double *state, const double *parameters) {
  (void)state;
  for (int64_t i = 0; i < n; i++) {
    struct choice *row = &rows[i];
    struct seen_path *mine = &paths[row->begin];
    if (row->path < 0.0 || row->idle > parameters[0] || mine[(int64_t)row->path].alive == 0.0)
      row->path = drawn_path(row, mine, row->chance);
  }
}

/* What a new connection can expect of a path: an equal share on its most used link, less where it queues. */
static double expected_rate(const struct choice *row, const struct seen_path *path) {
  return path->rate / (path->flows + 1.0) / (1.0 + path->queue / most_of(row->base_rtt, 1.0));
}

/* Takes no parameters. */
void choose_least_loaded(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                         const double *parameters) {
  (void)state, (void)parameters;
  for (int64_t i = 0; i < n; i++) {
    struct choice *row = &rows[i];
    struct seen_path *mine = &paths[row->begin];
    int64_t count = (int64_t)row->paths, start = least((int64_t)(row->chance * (double)count), count - 1);
    double best = -1.0;
    for (int64_t k = 0; k < count; k++) {
      int64_t at = (start + k) % count;
      double free = expected_rate(row, &mine[at]);
      /* Rounding must not decide between equal ones. */
      if (mine[at].alive == 0.0 || !(free > best * (1.0 + 1e-9))) continue;
      best = free;
      row->path = (double)at;
    }
    if (best < 0.0) row->path = (double)start;
  }
}

/* Parameters: how long until the next time (ps), or 0; how long at least; entropies, or 0. */
void choose_reps(int64_t n, struct choice *rows, struct seen_path *paths, double *state, const double *parameters) {
  (void)state;
  for (int64_t i = 0; i < n; i++) {
    struct choice *row = &rows[i];
    struct seen_path *mine = &paths[row->begin];
    double kept = 0.0;
    for (int64_t k = 0; k < (int64_t)row->paths; k++) {
      mine[k].part *= (1.0 - least_of(mine[k].marked, 1.0)) * mine[k].alive;
      kept += mine[k].part;
    }
    give_out(row, mine, 1.0 - kept, (int64_t)parameters[2]);
    /* Parts that add up to a little more than 1 leave less than nothing to an empty path. */
    for (int64_t k = 0; k < (int64_t)row->paths; k++) mine[k].part = most_of(mine[k].part, 0.0);
    row->again = pause_of(row, parameters[0], parameters[1]);
  }
}

/* Parameters: entropies, or 0. */
void choose_spray(int64_t n, struct choice *rows, struct seen_path *paths, double *state, const double *parameters) {
  (void)state;
  for (int64_t i = 0; i < n; i++) {
    struct choice *row = &rows[i];
    struct seen_path *mine = &paths[row->begin];
    for (int64_t k = 0; k < (int64_t)row->paths; k++) mine[k].part = 0.0;
    give_out(row, mine, 1.0, (int64_t)parameters[0]);
  }
}

/* One of the shortest paths, or of the detours, that is up; NONE: there is none. */
static int64_t drawn_of(const struct choice *row, const struct seen_path *paths, double minimal, double lot) {
  int64_t count = 0;
  for (int64_t k = 0; k < (int64_t)row->paths; k++) count += paths[k].alive != 0.0 && paths[k].minimal == minimal;
  int64_t left = (int64_t)(lot * (double)count);
  for (int64_t k = 0; k < (int64_t)row->paths; k++)
    if (paths[k].alive != 0.0 && paths[k].minimal == minimal && left-- == 0) return k;
  return NONE;
}

/* Takes no parameters. */
void choose_ugal(int64_t n, struct choice *rows, struct seen_path *paths, double *state, const double *parameters) {
  (void)state, (void)parameters;
  for (int64_t i = 0; i < n; i++) {
    struct choice *row = &rows[i];
    struct seen_path *mine = &paths[row->begin];
    double other_lot = row->chance * 65536.0; /* its last bits are as good as new */
    int64_t shortest = drawn_of(row, mine, 1.0, row->chance);
    int64_t detour = drawn_of(row, mine, 0.0, other_lot - floor(other_lot));
    if (shortest < 0 || detour < 0) {
      row->path = (double)most(most(shortest, detour), 0);
      continue;
    }
    const struct seen_path *one = &mine[shortest], *other = &mine[detour];
    bool queues = one->queue != 0.0 || other->queue != 0.0;
    double wait = queues ? one->queue : one->flows, wait_other = queues ? other->queue : other->flows;
    row->path = (double)(wait * one->hops > wait_other * other->hops ? detour : shortest);
  }
}

/* Takes no parameters. */
void choose_valiant(int64_t n, struct choice *rows, struct seen_path *paths, double *state, const double *parameters) {
  (void)state, (void)parameters;
  for (int64_t i = 0; i < n; i++) {
    struct choice *row = &rows[i];
    struct seen_path *mine = &paths[row->begin];
    if (row->begins_message != 0.0 || mine[(int64_t)row->path].alive == 0.0)
      row->path = drawn_path(row, mine, row->chance);
  }
}

/* Takes no parameters. */
void choose_weighted(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                     const double *parameters) {
  (void)state, (void)parameters;
  for (int64_t i = 0; i < n; i++) {
    struct choice *row = &rows[i];
    struct seen_path *mine = &paths[row->begin];
    int64_t count = (int64_t)row->paths;
    if (row->path >= 0.0 && mine[(int64_t)row->path].alive != 0.0) continue;
    double total = 0.0;
    for (int64_t k = 0; k < count; k++) total += mine[k].rate * mine[k].alive;
    double left = row->hash * total;
    row->path = most_of(row->path, 0.0);
    for (int64_t k = 0; k < count && left >= 0.0; k++) {
      if (mine[k].alive == 0.0) continue;
      row->path = (double)k;
      left -= mine[k].rate;
    }
  }
}
