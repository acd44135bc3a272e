/* Cheapest paths by distance tables (cosim/topology/hop_tables.py), and the least loaded of equal paths. */
#include "kernel.h"

enum {
  FAR = 1 << 30,       /* distance of a node from which the destination can't be reached */
  NUM_KNOWN = 1 << 12, /* places for known ways; a power of two */
  MOST_HOPS = 64,      /* of one of several equal paths */
  TRIES_PER_PATH = 4,
};

/* More paths than anybody asks for; a product is counted no further, so that it can't overflow. */
static const int64_t MANY_PATHS = (int64_t)1 << 40;

/* -- distances ------------------------------------------------------------------------------------------------------ */

/* The queue of a search: a ring with each column of the core once at most. */
struct search {
  int64_t head, tail;
  int64_t width; /* columns */
};

static inline void enqueue_column(struct hop_tables *t, struct search *s, int64_t column) {
  if (t->queued[column]) return;
  t->queued[column] = 1;
  t->queue[s->tail] = column;
  s->tail = s->tail < s->width ? s->tail + 1 : 0;
}

static inline int64_t dequeue_column(struct hop_tables *t, struct search *s) {
  int64_t column = t->queue[s->head];
  s->head = s->head < s->width ? s->head + 1 : 0;
  t->queued[column] = 0;
  return column;
}

/* The cost of the cheapest way from each node of the core to a root, into `row`.
 *
 * A search that corrects labels, with a queue, which is plain breadth-first search where every cost is 1. A node that
 * is as far as all others, but for one link at most, brings none of them nearer, and is passed by: of a tree's leaves no
 * link is looked at.
 */
static void measure_distances(struct hop_tables *t, int64_t root, int32_t *row) {
  struct search search = {.width = t->rows_cols};
  int64_t to_reach = search.width, farthest = 0, node = root, far = 0;
  for (int64_t column = 0; column < search.width; column++) row[column] = FAR;
  if (t->column_of[root] >= 0) {
    row[t->column_of[root]] = 0;
    to_reach--;
  }
  for (;;) {
    bool may_help = to_reach > 0 || far + t->least < farthest;
    int64_t end = may_help ? t->core_ptr[node + 1] : t->core_ptr[node];
    for (int64_t k = t->core_ptr[node]; k < end; k++) {
      int64_t link = t->core_link[k], column = t->column_of[t->link_src[link]], d = far + t->cost[link];
      if (d >= row[column]) continue;
      to_reach -= row[column] == FAR;
      farthest = most(farthest, d);
      row[column] = (int32_t)d;
      enqueue_column(t, &search, column);
    }
    if (search.head == search.tail) return;
    int64_t column = dequeue_column(t, &search);
    node = t->core[column];
    far = row[column];
  }
}

/* Fill the next rows with the distances to these roots. */
int64_t fill_rows(struct hop_tables *tables, int64_t count, const int64_t *roots) {
  CATCH_OUT_OF_MEMORY;
  RESERVE(tables, queue, tables->rows_cols + 1);
  RESERVE(tables, queued, tables->rows_cols);
  for (int64_t k = 0; k < count; k++) {
    measure_distances(tables, roots[k], &tables->rows[tables->used * tables->rows_cols]);
    tables->row_of[roots[k]] = (int32_t)tables->used++;
  }
  return DONE;
}

/* -- the links out of a node that are on a cheapest way -------------------------------------------------------------- */

/* What is left from a node on the way to a goal. */
static inline int64_t cost_from(const struct hop_tables *t, int64_t node, int64_t goal, const int32_t *row) {
  int64_t left = FAR, column = t->column_of[node];
  if (node == goal)
    left = 0;
  else if (column >= 0)
    left = (int64_t)row[column] + t->stub_cost[node] + t->offset_of[goal];
  /* A near node's own way may be shorter than the way round by the root that its row would give. */
  for (int64_t k = t->near_ptr[goal]; k < t->near_ptr[goal + 1]; k++)
    if (t->near_node[k] == node) left = least(left, t->near_cost[k]);
  return left;
}

/* What all of a way costs; a source that doesn't forward has no distance of its own. */
static int64_t cost_of_way(const struct hop_tables *t, int64_t src, int64_t goal, const int32_t *row) {
  int64_t best = cost_from(t, src, goal, row);
  for (int64_t k = t->out_ptr[src]; k < t->out_ptr[src + 1]; k++) {
    int64_t link = t->out_link[k];
    best = least(best, t->cost[link] + cost_from(t, t->link_dst[link], goal, row));
  }
  return best;
}

/* How many links out of a node are on a cheapest way to a goal: into `found`, by number. */
static int64_t cheapest_links(const struct hop_tables *t, int64_t node, int64_t goal, int32_t *found) {
  const int32_t *row = &t->rows[most(t->row_of[t->root_of[goal]], 0) * t->rows_cols];
  int64_t best = FAR, ways = 0;
  for (int64_t k = t->out_ptr[node]; k < t->out_ptr[node + 1]; k++) {
    int64_t link = t->out_link[k];
    int64_t d = t->cost[link] + cost_from(t, t->link_dst[link], goal, row);
    if (d < best) {
      best = d;
      ways = 0;
    }
    if (d == best && d < FAR) found[ways++] = (int32_t)link;
  }
  return ways;
}

/* The same from a node of the core to a root that is nearer than by any two links.
 *
 * Looked for from the root's side: a spine leads to more leaves than a leaf is led to by spines.
 */
static int64_t straight_ways(const struct hop_tables *t, int64_t node, int64_t root, int64_t distance, int32_t *found) {
  int64_t ways = 0;
  for (int64_t k = t->core_ptr[root]; k < t->core_ptr[root + 1]; k++) {
    int64_t link = t->core_link[k];
    if (t->link_src[link] == node && t->cost[link] == distance) found[ways++] = (int32_t)link;
  }
  return ways;
}

/* Put a link where its number belongs among `ways`, once; how many there are then. */
static int64_t insert_link(int32_t *found, int64_t ways, int32_t link) {
  int64_t at = ways;
  while (at > 0 && found[at - 1] > link) at--;
  if (at > 0 && found[at - 1] == link) return ways;
  for (int64_t later = ways; later > at; later--) found[later] = found[later - 1];
  found[at] = link;
  return ways + 1;
}

/* The same out of a goal's root. Looked for from the goal's side, for a root may have hundreds of links. */
static int64_t ways_down(const struct hop_tables *t, int64_t root, int64_t goal, int32_t *found) {
  int64_t best = FAR, ways = 0;
  for (int64_t k = t->in_ptr[goal]; k < t->in_ptr[goal + 1]; k++) {
    int64_t link = t->in_link[k], near = t->link_src[link], d = t->cost[link];
    if (near != root) {
      int64_t behind = t->in_ptr[near];
      if (t->in_ptr[near + 1] - behind != 1 || t->link_src[t->in_link[behind]] != root) continue;
      link = t->in_link[behind];
      d += t->cost[link];
    }
    if (d > best) continue;
    if (d < best) {
      best = d;
      ways = 0;
    }
    ways = insert_link(found, ways, (int32_t)link);
  }
  return ways;
}

static bool is_near(const struct hop_tables *t, int64_t node, int64_t goal) {
  for (int64_t k = t->near_ptr[goal]; k < t->near_ptr[goal + 1]; k++)
    if (t->near_node[k] == node) return true;
  return false;
}

/* -- one path for each flow ----------------------------------------------------------------------------------------- */

/* Room for what is known. A node has at most all links for candidates: past that much of the pool, begin anew. */
static void make_room_for_ways(struct hop_tables *t) {
  RESERVE(t, known, NUM_KNOWN);
  RESERVE(t, pool, 2 * t->out_link_len);
  if (t->pool_used <= t->out_link_len) return;
  t->pool_used = 0;
  memset(t->known, 0, NUM_KNOWN * sizeof *t->known);
}

/* The links at a node that are on a cheapest way to a goal: how many; `first`: where they are in the pool. */
static int64_t candidates(struct hop_tables *t, int64_t node, int64_t goal, int64_t *first) {
  int64_t root = t->root_of[goal];
  int32_t *found = &t->pool[*first = t->pool_used];
  if (node == root) return ways_down(t, root, goal, found);
  /* All who pass a node of the core on the way to a root have the same candidates there, whatever endpoint behind the
   * root they go to; only nodes near the endpoint know a way of their own. */
  bool goes_to_root = t->column_of[node] >= 0 && t->stub_cost[node] == 0 && !is_near(t, node, goal);
  if (!goes_to_root) return cheapest_links(t, node, goal, found);
  struct known_ways *known = &t->known[(node * 31 + root) & (NUM_KNOWN - 1)];
  if (known->ways > 0 && known->node == node && known->root == root) {
    *first = known->first;
    return known->ways;
  }
  int64_t distance = t->rows[t->row_of[root] * t->rows_cols + t->column_of[node]];
  int64_t ways = distance < 2 * t->least ? straight_ways(t, node, root, distance, found)
                                         : cheapest_links(t, node, goal, found);
  *known = (struct known_ways){node, root, t->pool_used, ways};
  t->pool_used += ways;
  return ways;
}

/* A flow on its way, and what says which of several ways it takes. */
struct traveller {
  int64_t choice;
  uint64_t pair, hash; /* of source, destination and seed; of these and the channel */
  int64_t digits;      /* each node with w candidates takes one digit in base w */
  int64_t channel;
  int64_t nic;  /* which of several ways out of its source it took; NONE: there was one */
  int64_t cost; /* of all its way */
};

/* With the node's own number: nodes that hash alike would all pick the same of their ways. */
static inline int64_t hashed_way(uint64_t hash, int64_t node, int64_t ways) {
  uint64_t x = mix(hash + (uint64_t)node * GOLDEN);
  return (int64_t)(((x >> 32) * (uint64_t)ways) >> 32);
}

/* Which of so many ways a traveller takes at a switch. */
static inline int64_t choose_switch_way(struct traveller *who, int64_t node, int64_t ways) {
  if (who->choice == FIRST_WAY) return 0;
  if (who->choice == HASHED_WAY) return hashed_way(who->hash, node, ways);
  int64_t chosen = who->digits % ways;
  who->digits /= ways;
  if (chosen >= 0) return chosen;
  who->digits--; /* rounded down, as the digits of a negative number are */
  return chosen + ways;
}

/* Which of so many ways a traveller takes at a node.
 *
 * An endpoint with several NICs chooses one by the channel, whatever its fabric's switches go by. On the second half of
 * its way several ways are several NICs of the goal, of which the same one is taken: both ends know their NICs.
 */
static int64_t choose_way(const struct hop_tables *t, struct traveller *who, int64_t node, int64_t src, int64_t goal,
                          int64_t ways) {
  if (ways == 1) return 0;
  const int32_t *row = &t->rows[most(t->row_of[t->root_of[goal]], 0) * t->rows_cols];
  if (who->nic == NONE && (node == src || who->choice == WAY_BY_CHANNEL)) {
    bool hashed = who->choice == HASHED_WAY;
    who->nic = hashed ? hashed_way(mix(who->pair), node, ways) : choose_switch_way(who, node, ways);
    if (who->choice != WAY_BY_CHANNEL) who->nic = (who->nic + who->channel) % ways;
    who->cost = cost_of_way(t, src, goal, row);
    return who->nic;
  }
  if (who->nic == NONE) return choose_switch_way(who, node, ways);
  if (2 * cost_from(t, node, goal, row) <= who->cost) {
    /* A destination's own digits say which of its NICs its first channel has. */
    if (who->choice == WAY_BY_DESTINATION) return (choose_switch_way(who, node, ways) + who->channel) % ways;
    return who->nic % ways;
  }
  return who->choice == FIRST_WAY ? who->channel % ways : choose_switch_way(who, node, ways);
}

/* Write a flow's links from `at` on; where they end, or NONE: there is no path. */
static int64_t follow_tables(struct hop_tables *t, int64_t src, int64_t goal, struct traveller *who, int64_t at) {
  int64_t node = src, last = t->last_link[goal];
  while (node != goal) {
    int64_t pick = last;
    if (last < 0 || t->link_src[last] != node) {
      make_room_for_ways(t);
      int64_t first, ways = candidates(t, node, goal, &first);
      if (ways == 0) return NONE;
      pick = t->pool[first + choose_way(t, who, node, src, goal, ways)];
    }
    RESERVE(t, found, at + 1);
    t->found[at++] = (int32_t)pick;
    node = t->link_dst[pick];
  }
  return at;
}

/* A path for each flow: path k takes found[ptr[k]] to found[ptr[k + 1]]. NONE, or the number of the first without one.
 *
 * At each node the candidates are the out-links on a cheapest way, in link order. `choice` says which is taken: the
 * first; by a hash of (src, dst, channel, seed) and the node; or by the destination's place or the channel, digit by
 * digit. On the way to a root the candidates are those of all who go there, and remembered.
 */
int64_t find_paths(struct hop_tables *tables, int64_t count, const int32_t *src, const int32_t *dst,
                   const int32_t *channel, int64_t choice, int64_t seed, int64_t *ptr) {
  CATCH_OUT_OF_MEMORY;
  for (int64_t k = 0; k < count; k++) {
    struct traveller who = {.choice = choice, .channel = most(channel[k], 0), .nic = NONE};
    if (choice == HASHED_WAY) {
      who.pair = mix(mix(mix((uint64_t)seed + GOLDEN) + (uint64_t)src[k]) + (uint64_t)dst[k]);
      who.hash = mix(who.pair + (uint64_t)channel[k]);
    }
    who.digits = choice == WAY_BY_DESTINATION ? tables->place_of[dst[k]] : channel[k];
    int64_t end = follow_tables(tables, src[k], dst[k], &who, ptr[k]);
    if (end == NONE) return k;
    ptr[k + 1] = end;
  }
  return NONE;
}

/* -- several paths for each pair ------------------------------------------------------------------------------------ */

/* A path by its number: at each node on the way the number's next digit, in base (ways there), says which of the
 * cheapest links is taken. So counting from 0 up finds every path once, one link of the first node after the other.
 * Where there are more paths than wanted, counting starts at a hash of the pair: nearby numbers differ at the nodes
 * near the source and, from pair to pair, everywhere. */
struct numbered_path {
  int64_t hops;    /* NONE: there is no path, or only a longer one than there is room for */
  int64_t product; /* of the ways at its nodes: so many numbers there are at least */
  int64_t rest;    /* digits left over: another number of a path that there is */
};

/* Write the links of the path with a number to `links`. */
static struct numbered_path follow_number(struct hop_tables *t, int64_t node, int64_t goal, int64_t digits,
                                          int32_t *links) {
  struct numbered_path path = {0, 1, digits};
  int64_t last = t->last_link[goal];
  while (node != goal) {
    int64_t pick = last;
    if (path.hops == MOST_HOPS) return (struct numbered_path){NONE, path.product, path.rest};
    if (last < 0 || t->link_src[last] != node) {
      int64_t ways = cheapest_links(t, node, goal, t->ways_out);
      if (ways == 0) return (struct numbered_path){NONE, path.product, path.rest};
      pick = t->ways_out[path.rest % ways];
      path.rest /= ways;
      path.product = least(path.product * ways, MANY_PATHS);
    }
    links[path.hops++] = (int32_t)pick;
    node = t->link_dst[pick];
  }
  return path;
}

/* Whether the path that was written last, of `hops` links, is one of those from `first` on. */
static bool is_found(const struct hop_tables *t, int64_t first, int64_t last, int64_t hops) {
  const int64_t *ptr = t->found_ptr;
  size_t size = (size_t)hops * sizeof *t->found;
  for (int64_t p = first; p < last; p++)
    if (ptr[p + 1] - ptr[p] == hops && memcmp(&t->found[ptr[p]], &t->found[ptr[last]], size) == 0) return true;
  return false;
}

/* Write up to `wanted` paths of a pair behind the first `paths`; how many, or NONE. */
static int64_t find_equal_paths_of(struct hop_tables *t, int64_t src, int64_t dst, int64_t wanted, int64_t paths) {
  int64_t first = paths, number = 0, total = 1, start = 0;
  RESERVE(t, found_ptr, paths + wanted + 2);
  RESERVE(t, found, t->found_ptr[paths] + (wanted + 1) * MOST_HOPS);
  /* How many numbers there are is known only by following some: the greatest product of ways so far. */
  for (int64_t tries = 1; number < total && paths - first < wanted && tries <= TRIES_PER_PATH * wanted; tries++) {
    int64_t at = t->found_ptr[paths], digits = (start + number++) % total;
    struct numbered_path path = follow_number(t, src, dst, digits, &t->found[at]);
    if (path.hops == NONE) return NONE;
    total = most(total, path.product);
    if (tries == 1 && total > wanted) {
      /* More than are wanted: begin somewhere else for each pair. */
      start = (int64_t)(mix(mix((uint64_t)src + GOLDEN) + (uint64_t)dst) >> 24) % total;
      number = 0;
      continue;
    }
    if (path.rest > 0 || (start > 0 && is_found(t, first, paths, path.hops))) continue;
    t->found_ptr[++paths] = at + path.hops;
  }
  return paths - first;
}

/* All cheapest paths of pairs, no more than `most_paths` of each, pair after pair; `count`: how many of each. NONE, or
 * the number of the first pair without a path. */
int64_t find_equal_paths(struct hop_tables *tables, int64_t num_pairs, const int32_t *src, const int32_t *dst,
                         int64_t most_paths, int64_t *count) {
  CATCH_OUT_OF_MEMORY;
  RESERVE(tables, ways_out, tables->out_link_len);
  RESERVE(tables, found_ptr, 1);
  int64_t paths = 0;
  for (int64_t pair = 0; pair < num_pairs; pair++) {
    count[pair] = find_equal_paths_of(tables, src[pair], dst[pair], most_paths, paths);
    if (count[pair] == NONE) return pair;
    paths += count[pair];
  }
  return NONE;
}

/* -- the least loaded of equal paths (the scheduler Crux) ----------------------------------------------------------- */

/* The busiest link of a path, and the sum over its links. */
struct path_load {
  double highest, total;
};

static inline struct path_load load_of(const int32_t *links, int64_t hops, const double *load, const double *mine) {
  struct path_load sum = {0.0, 0.0};
  for (int64_t k = 0; k < hops; k++) {
    double one = load[links[k]] + mine[links[k]];
    sum.highest = most_of(sum.highest, one);
    sum.total += one;
  }
  return sum;
}

/* The row of the chosen path of each pair into `chosen`, job after job: the one whose busiest link has least load, then
 * that with least in all, then the first.
 *
 * The next pairs[j] pairs are those of job j, the next count[p] rows of `ptr` and `links` the paths of pair p, which
 * sends sent_bps[p]. `share`, [jobs, links] of zeros, is filled with the part of each link's time that each job takes.
 * `load`, zeros, is what all jobs so far take.
 */
void least_loaded_paths(int64_t jobs, const int64_t *pairs, const int64_t *count, const int64_t *ptr,
                         const int32_t *links, const double *rate_bps, const double *sent_bps, int64_t num_links,
                         double *load, double *share, int64_t *chosen) {
  int64_t row = 0, pair = 0;
  for (int64_t job = 0; job < jobs; job++) {
    double *mine = &share[job * num_links];
    for (int64_t left = pairs[job]; left > 0; left--, pair++) {
      struct path_load best = {-1.0, 0.0};
      for (int64_t k = 0; k < count[pair]; k++, row++) {
        struct path_load one = load_of(&links[ptr[row]], ptr[row + 1] - ptr[row], load, mine);
        bool better = one.highest < best.highest || (one.highest == best.highest && one.total < best.total);
        if (k > 0 && !better) continue;
        best = one;
        chosen[pair] = row;
      }
      for (int64_t at = ptr[chosen[pair]]; at < ptr[chosen[pair] + 1]; at++)
        mine[links[at]] += sent_bps[pair] / rate_bps[links[at]];
    }
    for (int64_t link = 0; link < num_links; link++) load[link] += mine[link];
  }
}
