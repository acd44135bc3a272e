/* What Python and the kernel share: records, containers, constants, and the functions that Python calls.
 *
 * Python reads this file, too (cosim/kernel/layout.py), so that nothing is written down twice. It keeps to a small
 * part of C:
 *
 *   record     A struct of int8_t to int64_t, uint64_t and double, without implied padding. Python sees an array of
 *              them as a structured numpy array.
 *   container  A struct of COLUMNs (arrays), GRIDs (arrays of two dimensions), GROWN columns, single records, and
 *              pointers to further containers. Python has an object for it (cosim/kernel/columns.py).
 *   EXPORT     A function that Python calls. `T *x` of a number or a record is a numpy array. One that finds no memory
 *              returns NO_MEMORY (CATCH_OUT_OF_MEMORY), which Python raises as an error.
 *   enum       Constants that Python knows by the same names.
 *
 * The memory of a COLUMN or a GRID is numpy's: Python replaces it between two calls. The memory of a GROWN column is
 * the kernel's, which grows it (RESERVE in memory.c); name_len is its room, whatever is in use.
 */
#ifndef COSIM_KERNEL_H
#define COSIM_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COLUMN(type, name) type *name; int64_t name##_len
#define GROWN(type, name) type *name; int64_t name##_len
#define GRID(type, name) type *name; int64_t name##_rows; int64_t name##_cols
#define EXPORT __attribute__((visibility("default")))
#define LOOP EXPORT /* a network's loop or a control: Python takes its address, and calls it by run_network and others */

/* Of a function that only fetches: gcc finds that it has no effect, and leaves its calls out, where it isn't inlined before
 * it looks. */
#define FETCHES static inline __attribute__((always_inline))

#define NEVER (((int64_t)1 << 62) - 1) /* ps; beyond it, sums would leave 64 bits */
#define PS_PER_NS 1000
#define MOST_NS ((double)(NEVER / PS_PER_NS - 1))

enum nothing { NONE = -1 };

#define NO_MEMORY INT64_MIN

/* Why a loop gave control back to Python; 0 to 19 are the same for all loops. */
enum stop {
  DONE = 0,
  TOO_LATE = 1, /* something would happen at NEVER or later */
  PAUSED = 2, /* so much was done that others may want a word: it is to be called again */
};

/* -- calendar.c: events by instant ------------------------------------------------------------------------------ */

struct calendar_state {
  int64_t num_instants;
  int64_t num_events;
  int64_t free_event; /* a list through event.next, NONE at its end */
  int64_t events_used; /* from here on, events were never used */
  int64_t free_bucket; /* a list through bucket.head */
  int64_t buckets_used;
  int64_t hash_shift;
};

struct event {
  int64_t cause; /* when it became certain */
  int64_t origin; /* when its flow started */
  int32_t handle, rep, row;
  int32_t hop; /* what it is about: the model's */
  int32_t next; /* of the same instant */
  int32_t pad;
};

struct bucket {
  int64_t time;
  int32_t head, tail; /* its events */
};

struct instant {
  int64_t time;
  int64_t bucket;
};

struct calendar {
  struct calendar_state state;
  GROWN(struct event, events);
  GROWN(struct bucket, buckets);
  GROWN(int32_t, hashes); /* bucket + 1, by time; a power of two of them */
  GROWN(struct instant, heap);
};

/* -- dependencies.c: tables of flows, groups of them under way, and what waits for what ------------------------- */

/* A flow is (handle of its group, repetition, row): repetitions are numbered through all blocks of a table, rows
 * through all tables. */

struct store_state {
  int64_t num_known;
  int64_t num_released;
  int64_t cells_used;
  int64_t pages_used;
  int64_t num_reaches;
};

struct table {
  int64_t flows;
  int64_t cells; /* of all pages, made when a group is opened; 0: each page when a dependency reaches it */
  int64_t free; /* first page of a list of runs of pages that closed groups gave back */
  int32_t rep, reps; /* its repetitions */
  int32_t pages; /* of each group: one a repetition, or none */
  int32_t row; /* its first row */
};

struct row {
  int64_t size, delay, reaction;
  int32_t first, middle, last; /* successors [first, middle) wait for its completion, [middle, last) for its start */
  int32_t src, dst;
  int32_t waits; /* for so many */
};

struct successor {
  int32_t row;
  int32_t reach;
};

/* Of successors, in which repetitions; many have the same. */
struct reach {
  int32_t rep; /* so many later */
  int32_t low, high; /* where it is in [low, high] in its table */
};

struct repetition {
  int64_t base; /* number of its first flow */
  int32_t row, rows;
  int32_t cell_row, cell_rows; /* those among which are all that wait for several */
};

struct group {
  int64_t key_high, key_low;
  int64_t left; /* flows to complete */
  int64_t path; /* path + row finds the row's links */
  int64_t page; /* page + repetition in the table finds the page */
  int32_t rep, reps; /* 0 where nothing is open */
  int64_t release; /* whether its dependencies are followed here */
  int32_t table;
  int32_t traits; /* the model's number of what it says of its job */
};

/* A repetition of a group: where its cells start (NONE: no dependency has reached it), and how many of its flows that
 * wait for several are not released yet. */
struct page {
  int64_t cell, left;
};

struct cell {
  int64_t ready; /* the latest dependency so far */
  int64_t waits; /* how many are left */
};

enum moment_of_flow { COMPLETED = 0, STARTED = 1 };

/* A flow whose completion or start is known, and not yet told to what waits for it. */
struct known {
  int64_t time;
  int32_t handle, rep, row, kind;
};

struct released {
  int64_t start, cause;
  int32_t handle, rep, row, pad;
};

struct store {
  struct store_state state;
  COLUMN(struct table, tables);
  COLUMN(struct row, rows);
  COLUMN(struct successor, successors);
  COLUMN(struct repetition, reps);
  COLUMN(int64_t, unused); /* first cell of the free runs of 2^k cells, by k */
  GROWN(struct group, groups);
  GROWN(struct page, pages);
  GROWN(struct cell, cells);
  GROWN(struct known, known);
  GROWN(struct released, released);
  GROWN(struct reach, reaches);
};

EXPORT int64_t open_group(struct store *store, int64_t handle, int64_t table, int64_t key_high, int64_t key_low,
                          int64_t path, int64_t traits, int64_t release);
EXPORT void close_group(struct store *store, int64_t handle);
EXPORT int64_t find_flows(const struct store *store, int64_t count, const int32_t *handle, const int64_t *index,
                          int32_t *rep, int32_t *row);
EXPORT int64_t drain_some(struct store *store);
EXPORT int64_t note_flows(struct store *store, int64_t count, const int32_t *handle, const int32_t *rep,
                          const int32_t *row, const int64_t *time, int64_t kind);
EXPORT int64_t count_down(struct store *store, int64_t num_handles, int64_t *left, int64_t count, const int32_t *handle,
                          const int64_t *index, const int64_t *time, int8_t *known);
EXPORT int64_t turn_round(struct store *store, int64_t row0, int64_t num_blocks, const int64_t *block_row,
                          const int64_t *block_repeat, const int64_t *block_base, const int64_t *dep_ptr,
                          const int64_t *dep_distance, const int8_t *dep_kind, int64_t *ptr, int64_t *mid, int64_t fill,
                          struct successor *successors);

/* -- core.c: what all networks of this process have ------------------------------------------------------------- */

struct core_state {
  int64_t grant;
  int64_t bound; /* the first time at which a completion's reaction could matter */
  int64_t num_pending;
  int64_t num_near; /* the first of those; all others come after `near_end`, and may be reacted to at `far_bound` */
  int64_t near_end, far_bound;
  int64_t most_near; /* where there are more, near ones are told from others anew */
  int64_t report_at; /* pending completions at which a loop stops, so that reports stay small */
  int64_t cursor, instant_size; /* events of the instant under way that are done, and all of them */
  int64_t instant; /* its time */
  int64_t serial; /* its number */
  int64_t num_started, num_completed, num_events;
  int64_t bin_bits; /* a bin of link_busy is 2^bin_bits ps wide: a division would take longer than the rest */
  int64_t looking; /* 1: the loop runs on a copy, to find its first completion, which is `bound` then */
  int64_t too_late; /* 1: something would complete at NEVER or later */
  int64_t next; /* where a loop that is done would go on; NEVER: nothing is left */
};

/* A completion that is certain, since `cause`, but not reported. */
struct pending {
  int64_t time, start, cause;
  int32_t handle, rep, row, pad;
};

/* A part of a link's rate that was in use in [start, end). */
struct link_use {
  int64_t start, end;
  double part;
  int64_t link;
};

struct link_uses {
  int64_t part; /* whose are kept; NONE */
  int64_t count;
  GROWN(int32_t, users); /* the part that uses each link, then each memory; NONE */
  GROWN(struct link_use, uses);
};

struct core {
  struct core_state state;
  struct calendar *calendar;
  struct store *store;
  struct link_uses *kept; /* what an interval's links carried, to be repeated; 0: nothing ever is */
  GROWN(struct pending, pending);
  COLUMN(int64_t, path_ptr); /* links of row p: path_link[path_ptr[p]] to path_link[path_ptr[p + 1]] */
  COLUMN(int32_t, path_link);
  COLUMN(int32_t, path_source);
  COLUMN(int64_t, path_now); /* the row whose links each takes now; empty: its own, always */
  COLUMN(int64_t, link_bytes);
  GRID(int64_t, link_busy); /* [bins, links] */
};

/* Columns of completions, and the handles of groups that ended with them. `rep` and `row` are a flow's place in the
 * store, `number` is its own in its group. */
struct reported {
  GROWN(int32_t, handle);
  GROWN(int32_t, rep);
  GROWN(int32_t, row);
  GROWN(int64_t, number);
  GROWN(int64_t, start);
  GROWN(int64_t, time);
  GROWN(int64_t, cause);
  GROWN(int32_t, closed);
  int64_t count;
  int64_t num_closed;
};

EXPORT int64_t give(struct core *core, int64_t count, const int32_t *handle, const int32_t *rep, const int32_t *row,
                    const int64_t *start, const int64_t *cause);
EXPORT int64_t report(struct core *core, int64_t grant, struct reported *to);

/* Runs a network's loop: `loop` is where it is, `columns` its own state. */
EXPORT int64_t run_network(int64_t loop, struct core *core, int64_t columns, int64_t horizon);

/* -- drains.c: the next drain of a network ------------------------------------------------------------------------ */

/* Row k: `time` and `flow` of entry k of the heap; `place`: one more than the entry of flow k, 0 where it has none. */
struct drain {
  int64_t time;
  int32_t flow, place;
};

struct drain_heap {
  GROWN(struct drain, entries);
  int64_t count; /* entries of the heap */
};

EXPORT int64_t when_drained(int64_t now, double remaining, double rate);

/* -- changes.c: links that change, and routes --------------------------------------------------------------------- */

/* What a loop asks for: changes that come after those at hand; paths for the change of routes that it has come to. */
enum ask_for_changes { MORE_CHANGES = 22, NEW_ROUTES = 23 };

enum what_changes { ROUTES = -1 };

/* After so many changes in a row with nothing to do between them, nothing will ever come of it. */
enum patience { MOST_IN_VAIN = 100000 };

/* A link has `rate` (bits/s; 0: it is dead) from `time` on. Where the link is ROUTES, routes change. */
struct change {
  int64_t time;
  int64_t link;
  double rate;
};

struct change_state {
  int64_t next; /* the number of the change that comes next */
  int64_t more; /* 1: others come after those at hand */
  int64_t in_vain; /* so many changes came since the last event ... */
  int64_t progress; /* ... which has this number */
};

struct change_list {
  struct change_state state;
  COLUMN(struct change, changes);
};

/* -- channels.c: numbers of channels ------------------------------------------------------------------------------ */

/* A channel is a (job, source, destination, channel of the pattern): `high` has the first and the last. */
struct channel_name {
  int64_t high, low;
};

struct channel_numbers {
  int64_t used;
  GROWN(struct channel_name, names); /* by number */
  GROWN(int32_t, hashes); /* one more than a name's number, 0: none; a power of two of them */
};

EXPORT int64_t number_channels(struct channel_numbers *numbers, int64_t job, int64_t count, const int32_t *src,
                               const int32_t *dst, const int32_t *channel, int32_t *found);

/* -- analytical.c: congestion_unaware and congestion_aware ------------------------------------------------------ */

struct aware_link {
  double rate; /* bytes per ns */
  double latency; /* ns */
  int64_t free; /* when it may send again, ps */
  int64_t seen; /* the last instant at which something reached it */
};

struct link_queues {
  COLUMN(struct aware_link, links);
  GROWN(int32_t, instant);
  GROWN(int32_t, spare);
  GROWN(int32_t, other);
};

struct link_rates {
  COLUMN(double, rate); /* bytes per ns */
  COLUMN(double, latency); /* ps */
  GRID(int32_t, whole); /* [bins + 1, links]: messages that fill bins are counted where they begin and end to */
};

LOOP int64_t run_aware(struct core *core, struct link_queues *queues, int64_t horizon);
LOOP int64_t run_unaware(struct core *core, struct link_rates *rates, int64_t horizon);
EXPORT void spread(struct core *core, struct link_rates *rates);

/* -- device.c: loads and stores on GPUs with compute units, line by line ------------------------------------------- */

/* Of a message's channel, what a thread block's row says: its block (1 on, so many times DEVICE_BLOCK), that the receiver
 * asks for the data, and that a switch adds it up or copies it, so that another row has paid the requester's link. */
enum device_channel { DEVICE_BLOCK = 0x100000, DEVICE_GET = 0x80000, DEVICE_MERGED = 0x40000, DEVICE_OTHER = 0x3ffff };

/* Of a mark's channel: a kernel of so many blocks (times DEVICE_BLOCK) begins or ends there; or it is a computation. */
enum device_mark { DEVICE_BEGINS = 0x80000, DEVICE_ENDS = 0x40000, DEVICE_COMPUTES = 0x7ffc0000 };

/* Where requests wait in a GPU. */
enum device_place { AT_UNIT = 0, AT_ROUTER = 1, AT_CHANNEL = 2, AT_PORT = 3, DEVICE_PLACES = 4 };

/* What a message's time goes to: all of a flag's; of data's the latency of its last line's way, until that could be asked
 * for (lines in flight), and the rest (rates). */
enum device_spent { ON_FLAGS = 0, ON_WAY = 1, ON_ROOM = 2, ON_RATES = 3, DEVICE_SPENT = 4 };

enum device_phase { GOES_THERE = 0, COMES_BACK = 1, IS_THROUGH = 2, COMPUTES = 3 };

/* Times within the model are ticks of 1/64 ps. */
enum device_tick { TICK_BITS = 6 };

/* Events that come later wait in buckets, which come around again. */
enum device_bucket { DEVICE_BUCKETS = 0x10000 };

/* What each GPU is, and how it is used. Latencies are ticks. */
struct device_shape {
  int64_t units, routers, columns, mesh, channels, ports;
  int64_t stations; /* of a GPU: units, links of the mesh, channels, ports out, ports in */
  int64_t line, control; /* bytes of a line, and of a request or an answer without data */
  int64_t unroll; /* lines that a wavefront asks for at once */
  int64_t outstanding; /* lines that a unit stores, or asks for, in flight */
  int64_t window; /* lines of a workgroup in flight */
  int64_t workgroups; /* that carry a message which is no thread block's */
  int64_t fair;
  int64_t hop, memory, flag;
  int64_t workgroup; /* ticks that a computation's workgroup has a unit, about */
  int64_t free_train, trains_used, free_work, works_used, free_flow, flows_used; /* lists, and what was ever used */
  int64_t heap_used, serial;
  int64_t chained, edge, bucket_bits; /* trains in buckets, from what time on, and how long a bucket is */
  int64_t now; /* ticks */
};

/* What serves one line after the other. */
struct device_station {
  int64_t free, free_control; /* when it has served all that comes, and all requests that come */
  int64_t line, control; /* ticks that it takes for one */
};

/* A unit's workgroups that have something to ask for: a ring, of which `last` is the last one. */
struct device_unit {
  int64_t out[2]; /* lines in flight: stored, and asked for */
  int32_t works[3]; /* of the ring: those that store, that ask, and whose lines are merged */
  int32_t last;
  int32_t held; /* blocks of kernels, and workgroups of messages that are no block's, which are on it or wait for it */
  int32_t wave; /* the train of the computation's workgroup that is on it, or NONE */
};

/* A workgroup's part of a message: trains `next`, next + step ... below the message's number of them. */
struct device_work {
  int64_t next, step, out;
  int32_t flow, unit, after, pad;
};

struct device_flow {
  int64_t origin, cause, end;
  int64_t asked; /* when it asked last, ticks */
  int64_t lines, trains, waiting; /* waiting: lines that have not landed */
  int64_t size;
  int64_t there, back; /* where the paths of its requests and of what answers them are */
  int32_t handle, rep, row, channel;
  int32_t after; /* the next one of its channel */
  int32_t flags;
  int32_t from, to; /* the GPU that asks, and the one that is asked */
  int32_t works; /* workgroups that are not through */
  int32_t pad;
};

/* Lines that a wavefront asked for at once: they go one behind the other. Or `lines` workgroups of a computation, whose
 * message `work` is, which begin and end together. */
struct device_train {
  int64_t head, gap; /* when the first is at the next station, and how far behind each other they are */
  int32_t work, lines, bytes, number;
  int32_t phase; /* on its way there, back, or through: its tail is all that is to come */
  int32_t hop; /* links of that way behind it */
  int32_t next, pad; /* next: of those that are free, or of its bucket */
  int64_t due, order; /* its event, while it is in a bucket */
};

struct device_event {
  int64_t time, order;
  int64_t train;
};

struct device_channel_state {
  int32_t first, last; /* messages of a channel: the oldest, and the newest */
};

struct device {
  struct device_shape shape;
  COLUMN(struct device_station, stations);
  COLUMN(struct device_station, links);
  COLUMN(int64_t, link_latency); /* ticks */
  COLUMN(int32_t, mesh_ptr); /* links of the mesh from router a to b: mesh_link[mesh_ptr[a * routers + b]] on */
  COLUMN(int32_t, mesh_link);
  COLUMN(struct device_unit, units);
  COLUMN(int64_t, placed); /* workgroups that each GPU was given so far */
  COLUMN(struct device_channel_state, computing); /* computations of each GPU that have workgroups to place */
  GRID(int64_t, waited); /* [GPUs, DEVICE_PLACES]: ticks that lines waited in a GPU, by place */
  GRID(int64_t, lines_at); /* and how many came there */
  GRID(int64_t, computed); /* [GPUs, 2]: ps that computations took, and would take alone */
  GRID(int64_t, spent); /* [GPUs, DEVICE_SPENT]: ticks of the messages that each GPU stored or asked for */
  COLUMN(int64_t, link_waited); /* ticks that lines waited at each link */
  COLUMN(int64_t, link_lines);
  COLUMN(int64_t, in_flight); /* bytes that each GPU has in flight, stored or asked for */
  COLUMN(int64_t, most_in_flight);
  COLUMN(int32_t, buckets); /* [DEVICE_BUCKETS]: the first train of each */
  COLUMN(int64_t, path_back); /* by row: where the way back is */
  COLUMN(int32_t, row_ends); /* by row: source, destination, channel's number, flags */
  GROWN(struct device_channel_state, channels);
  GROWN(struct device_flow, flows);
  GROWN(struct device_work, works);
  GROWN(struct device_train, trains);
  GROWN(struct device_event, heap);
  GROWN(int32_t, instant);
  GROWN(int32_t, spare);
  GROWN(int32_t, other);
};

LOOP int64_t run_device(struct core *core, struct device *device, int64_t horizon);

/* -- legs.c: links of the analytical models that change --------------------------------------------------------- */

struct leg_link {
  double rate; /* bytes per ns; 0: it is dead */
  int64_t latency; /* ps */
  int32_t head, tail; /* whom it sends, and who waits behind; NONE: nobody */
  int64_t avoided; /* 1: routing knows that it is dead */
};

/* A message that is on its way, on its leg from `hop` of its path on. */
struct leg_message {
  int64_t origin; /* when it started */
  int64_t begin; /* since when it is sending */
  int64_t touched; /* it had `left` bytes then, and `rate` since */
  int64_t since; /* `counted` bytes are in the links' statistics, up to then */
  double left;
  double rate; /* bytes per ns */
  double counted;
  int64_t path;
  int32_t handle, rep, row, hop;
  int32_t next; /* of its queue, or of the free list */
  int32_t sending;
};

struct legs {
  struct drain_heap *drains;
  struct change_list *changes;
  COLUMN(struct leg_link, lanes);
  GROWN(struct leg_message, messages);
  GROWN(int32_t, instant);
  GROWN(int32_t, spare);
  GROWN(int32_t, other);
  int64_t in_turn; /* 1: a link sends one message after the other */
  int64_t under_way; /* messages */
  int64_t free_message; /* a list through next */
  int64_t messages_used; /* from here on, they were never used */
};

LOOP int64_t run_changing(struct core *core, struct legs *legs, int64_t horizon);
EXPORT int64_t move_messages(struct core *core, struct legs *legs);

/* -- balancing.c: load balancers -------------------------------------------------------------------------------- */

enum balancing {
  MOST_STATES = 8, /* numbers of its own that a balancer or a control has for each connection */
  WEIGHT_UNIT = 1000000000, /* connections on a link are counted in billionths, so that sums are exact in any order */
  LEAST_AGAIN_PS = 1000, /* a balancer that asks again sooner would keep the clock from going on */
};

/* Why a loop stopped: Python has to ask the balancer about a batch, or to refuse what it answered. */
enum balancing_stop { CHOOSE = 25, WRONG_CHOICE = 26 };

struct balance_counts {
  int64_t on; /* 1: there is a balancer */
  int64_t splits; /* 1: it gives parts, else one path */
  int64_t looks; /* 1: it looks at loads, queues and marks of paths */
  int64_t one_by_one; /* 1: each that chooses is a batch of its own */
  int64_t kernel; /* address of its compiled part; 0: Python asks it */
  int64_t num_states;
  int64_t least_pause; /* ps; who pauses for longer in a message chooses again */
  int64_t most_paths; /* of any pair: so many places in `seen` has each row */
  int64_t num_choosing; /* at this instant */
  int64_t next; /* the first of them that is in the batch under way */
  int64_t num_rows; /* of that batch */
  int64_t asked; /* 1: the balancer was asked about it */
  int64_t num_counted; /* how often bytes of a connection were counted on its links */
  int64_t taken; /* how many of its answers were followed */
  int64_t wrong; /* the row of one that can't be followed */
  int64_t num_choices, num_changes; /* in all so far: choices, and those that changed a path */
};

/* What a connection has chosen. */
struct chosen_route {
  int64_t idle_since;
  int64_t pause; /* ps; because of which it is asked again; 0: because of something else */
  int64_t due; /* when it asked to be asked again; NONE */
  int64_t arrives; /* when all that went by paths it has left is there */
  int64_t latency; /* of its slowest path */
  int64_t sent; /* bytes of the message that its links have counted */
  int64_t part; /* its first in `parts`; NONE: it has one path */
  int64_t salt; /* its random numbers come from it */
  int32_t pair;
  int32_t path; /* number among its pair's; NONE: several, or none yet */
  int32_t choosing; /* 1: it is in the list of those that choose at this instant */
  int32_t known; /* 1: it has chosen before */
  int32_t job;
  int32_t begins_message; /* 1: it begins a message */
};

/* Two endpoints: their candidates are `candidates[first]` to `candidates[first + count - 1]`. */
struct endpoint_pair {
  int64_t first, count;
};

/* A path that a pair has to choose from; its links lie from `begin` to `end`. */
struct candidate {
  int64_t begin, end;
  int64_t own, own_end; /* those between are not links of every path of the pair */
  int64_t latency;
  double rate; /* bits/s, of its slowest link */
  double minimal; /* 1; 0 for a detour */
  int64_t users; /* choices that took it, for the page */
};

/* What a balancer is shown of a connection, and where it answers: cosim/network/balancing/contract.py. */
struct choice {
  int64_t conn;
  int64_t begin; /* its paths are `paths[begin]` to `paths[begin + paths - 1]` */
  double first, begins_message, idle, size, left, rate, line, rtt, base_rtt, marked, chance, hash, job, priority, paths;
  double path, again;
};

/* And of each of its paths. */
struct seen_path {
  double part, alive, minimal, hops, rate, latency, load, flows, queue, marked;
};

struct balance {
  struct balance_counts counts;
  GROWN(struct chosen_route, routes); /* by connection */
  COLUMN(struct endpoint_pair, pairs);
  COLUMN(struct candidate, candidates);
  COLUMN(int32_t, links); /* of all candidates, one after the other */
  GROWN(double, parts); /* of a connection, as many as its pair has paths */
  GROWN(double, state); /* MOST_STATES of each connection */
  GROWN(struct choice, rows); /* of the batch under way */
  GROWN(struct seen_path, seen);
  GROWN(int32_t, choosing); /* connections that choose at this instant */
  COLUMN(int64_t, crowd); /* by link: connections that use it, in billionths */
  COLUMN(int32_t, dead); /* by link: 1 where it is known to be down */
  COLUMN(int32_t, spot); /* by link: NONE, or where a path under way has it already */
  COLUMN(double, parameters);
};

/* Balancers that are compiled, plug-ins too, are called by their address with these five: rows of a batch, the paths
 * of all of them, state by connection, and the balancer's parameters. */
typedef void (*balancer_kernel)(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                                const double *parameters);
LOOP void choose_adaptive(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                          const double *parameters);
LOOP void choose_flowlet(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                         const double *parameters);
LOOP void choose_least_loaded(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                              const double *parameters);
LOOP void choose_reps(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                      const double *parameters);
LOOP void choose_spray(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                       const double *parameters);
LOOP void choose_ugal(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                      const double *parameters);
LOOP void choose_valiant(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                         const double *parameters);
LOOP void choose_weighted(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                          const double *parameters);

/* -- fluid.c, filling.c, sharing.c, fair_routes.c, fair_share.c ----------------------------------------------------- */

/* After all classes of priority. */
enum no_class { NO_CLASS = 2147483647 };

/* What happened to a link since the last filling: flows only left it; or came, too, of which each seems to fit with
 * room to spare, at the level at which another link will hold it back; or came, and that is not known. */
enum what_happened { LEFT = 1, FITS = 2, CAME = 3 };

struct fluid_counts {
  int64_t begin; /* one more than the flow that transfers next in its channel; 0: none does */
  int64_t free_flow, flows_used; /* a list through fluid_message.next, and from where on none was ever used */
  int64_t free_member, members_used; /* the same through fluid_member.after */
  int64_t num_members; /* that flows have */
  int64_t num_dirty;
  int64_t visit; /* the number of this filling, or the last one */
  int64_t sharing; /* the number of the first filling of this sharing, or the last one */
  int64_t num_rising; /* flows of this filling */
  int64_t num_ahead; /* moments of this filling */
  int64_t num_found; /* flows that this sharing looks at */
  int64_t num_kept; /* links that it keeps in mind, as what they carry may have changed */
  int64_t num_looked; /* flows that all fillings so far have looked at */
  int64_t num_changed; /* rates that have changed so far */
  double first_level; /* the first moment at which a flow that has left since the last filling was frozen ... */
  int64_t first_priority; /* ... and its class; NO_CLASS: none has left */
};

/* A flow that transfers: what a filling reads of it, in one cache line. */
struct fluid_flow {
  int64_t visit; /* the last filling that has found it */
  double level; /* at which it was frozen; below 0: it never was */
  double new_level; /* the same in this filling; below 0: it rises */
  double rate; /* bytes per ps, since `touched` */
  double remaining; /* bytes at `touched` */
  int64_t touched;
  int32_t by; /* the link that froze it */
  int32_t chain; /* the next flow found that this link froze */
  int32_t member; /* its first membership */
  int32_t traits; /* its class */
};

/* The message of the same number, which may wait in its channel. */
struct fluid_message {
  int64_t origin; /* when it started */
  int64_t counted; /* bytes of it that were counted on links that it has left */
  int32_t handle, rep, row;
  int32_t next; /* in its channel */
};

/* A flow on a link. Between fillings, a link's flows are in the order in which they were frozen. */
struct fluid_member {
  int32_t flow, link;
  int32_t before, after; /* among the link's flows */
  int32_t sibling; /* the flow on its next link */
};

struct fluid_link {
  int64_t visit; /* the last filling in which it differed */
  double full_level; /* when it was first full ... */
  int64_t load; /* what its flows take of it, of WHOLE: see sharing.c */
  double capacity; /* bytes per ps */
  double level; /* the last moment of this class so far */
  int64_t gone; /* the weight that was frozen there, not yet taken from `left` */
  int32_t full_priority; /* ... and for which class; NO_CLASS: it was not full */
  int32_t rising; /* flows */
  int16_t dirty; /* what happened to it, or 0 */
  int16_t rechecks; /* so often it is looked at before it is taken to have room */
  int16_t kept; /* 1: it is in the list of those that are kept in mind */
  int16_t room; /* 1: it has some */
  double left; /* bytes per ps */
  int64_t weight; /* that rises, of the lowest class that does */
  double used; /* bytes per ps, since `since` */
  int64_t since;
  int64_t latency;
  int64_t chained; /* the filling that `chain` is of */
  int32_t first, last; /* its flows */
  int32_t chain; /* the flows found that it froze before */
  int32_t priority; /* the lowest class that rises */
};

/* What a group's flows weigh, in billionths, and their class. */
struct fluid_class {
  int64_t weight, priority;
};

/* A moment of a filling: a link that froze flows there before; or, as -1 - link, one that is full there at the
 * earliest. */
struct fluid_moment {
  double level;
  int32_t priority, what;
};

struct fluid_channel {
  int32_t head, tail; /* its flow under way and the last one that waits behind it, or NONE */
  int64_t seen; /* the last instant with a start */
};

struct fluid {
  struct fluid_counts counts;
  struct drain_heap *drains;
  struct change_list *changes;
  struct balance *balance; /* 0: there is no balancer that chooses */
  GROWN(struct fluid_flow, flows);
  GROWN(struct fluid_message, messages);
  GROWN(struct fluid_member, members);
  GROWN(int64_t, parts); /* by member: the part of the flow's weight that goes this way; empty: all of it, always */
  GROWN(struct fluid_link, links);
  GROWN(struct fluid_moment, ahead); /* a heap */
  GROWN(int32_t, dirty); /* links */
  GROWN(int32_t, kept); /* links */
  GROWN(int32_t, found); /* flows */
  GROWN(int32_t, instant);
  GROWN(int32_t, spare);
  GROWN(int32_t, other);
  COLUMN(struct fluid_channel, channels);
  COLUMN(struct fluid_class, classes); /* by the traits of a group */
  COLUMN(int32_t, channel_of); /* by row, beside core.path_ptr */
};

LOOP int64_t run_fair(struct core *core, struct fluid *fluid, int64_t horizon);
EXPORT int64_t share_links(struct core *core, struct fluid *fluid, int64_t now);
EXPORT int64_t move_flows(struct core *core, struct fluid *fluid, const int64_t *so_far);
EXPORT int64_t choose_anew(struct fluid *fluid);
EXPORT void settle_uses(struct core *core, struct fluid *fluid, int64_t now);

/* -- congestion: state ------------------------------------------------------------------------------------------ */

/* Rates are whole bits per second, so that what flows add to a link and take from it sums exactly, in any order: a
 * link's load is a function of the flows on it, and nothing depends on the order of calls. Queues are bytes, integrated
 * between changes of load.
 *
 * Records are whole cache lines of 64 bytes, their fields in the order in which a round asks for them. Only Python adds
 * connections, subflows, hops, ports and links: pointers to those stay good while a loop runs. */

enum congestion_sizes {
  NUM_CLASSES = 8, /* of priority, as PFC has them (IEEE 802.1Qbb) */
  BINS = 32, /* of the queue's histogram, in a power of two, from 256 bytes to 4 GiB */
  QUEUE_BINS = 769, /* 1 + 24 * BINS */
};

/* Why the loop gives control back. */
enum congestion_stop {
  ASK_CONTROL = 30, /* about the batch of `num_waiting` rows */
  WRONG_ANSWER = 31, /* a compiled control wrote what is no number */
  DEADLOCK = 33, /* port `stuck` - 1 pauses itself */
  NEED_SUBFLOWS = 35, /* by paths that a balancer chose, and by which a connection never went */
};

/* `hop` of an event: what happens. `row` is a connection, or a port. */
enum congestion_event {
  FLOW_STARTS = 0, /* (row: of the flow, as everywhere) */
  ROUND_ENDS = 1, /* of a connection */
  MAY_CROSS = 2, /* a port's queue may cross a threshold of PFC, or a last byte leave it */
  QUEUE_EMPTIES = 3, /* of a port, if it does */
  CHOOSES_AGAIN = 4, /* a connection wants to choose its paths again */
  BOUNDARY_PASSES = 5, /* the first rate boundary in a port's queue is at its head */
};

struct congestion_counts {
  int64_t num_links, num_classes; /* classes of priority, in use: a port is class * num_links + link */
  int64_t begin; /* the connection that takes its next flow, plus one */
  int64_t num_changed; /* connections with a new rate */
  int64_t num_updated; /* connections with a round to open */
  int64_t num_woken; /* connections with a round to end, which isn't in the calendar yet */
  int64_t batch_size; /* connections whose control is to be asked */
  int64_t num_waiting; /* rows of the batch that the control was asked about */
  int64_t num_hosts; /* own ports to share anew */
  int64_t num_touched; /* ports whose load changed */
  int64_t num_moving; /* subflows whose loads are brought to their ports */
  int64_t most_hops; /* of those subflows */
  int64_t num_late; /* subflows that were brought to ports before others changed what these pass on */
  int64_t num_active; /* connections that send */
  int64_t num_asleep; /* connections that rest */
  int64_t num_sights; /* hops of the batch in `telemetry` */
  int64_t kernel; /* where the control's function is; 0: Python has the control */
  int64_t num_updates; /* how often controls were asked */
  int64_t stamp; /* number of the instant in which something changes */
  int64_t visit; /* number of the search for circles of pauses */
  int64_t open; /* 1: the instant has changes that are not applied yet */
  int64_t stuck; /* a port that pauses itself, plus one; 0: none */
  int64_t free_flow, flows_used; /* a list through `next`; from here on, flows were never used */
  int64_t free_boundary, boundaries_used;
  int64_t free_input, inputs_used;
  int64_t free_last, lasts_used;
};

/* What control and scenario say, 1 for yes. */
struct congestion_settings {
  double mss; /* bytes of a packet on the wire, headers and telemetry with it */
  int64_t payload; /* of those, bytes of a message */
  double slope, intercept; /* they give the gain (MLTCP) */
  double least_rto; /* the least timeout, ps */
  double tolerance; /* how far a rate may be off before it is worked out anew, in proportion; 0: not at all */
  int64_t num_states; /* columns that the control has */
  int64_t gives_rate; /* a control says a rate, not a window */
  int64_t paced; /* a window is spread over the round trip */
  int64_t lossless; /* ports pause each other, instead of dropping packets */
  int64_t trims; /* ports cut packets down to their headers, instead of dropping them */
  int64_t settles; /* a control that answered as before goes on to, while nothing changes */
  int64_t rests; /* rounds of who has settled may be left out */
  int64_t wants_telemetry;
  int64_t scaled; /* growth is multiplied by the gain here, not by the control */
  int64_t balanced; /* a load balancer chooses paths */
  int64_t changing; /* links fail or slow down */
  int64_t traced; /* queues are told apart by subflow, as paths may change or ports pause */
  int64_t credits; /* receivers say what may be sent */
};

/* The flows of one (job, source, destination, channel), which go one at a time, and its control's state. */
struct connection {
  int64_t due; /* when its round ends; NONE: it has none */
  int64_t touched; /* since when it has its rate, bits/s */
  int64_t rate;
  double remaining; /* bytes of its flow at `touched`, as they are on the wire: all of a connection's are, unless said */
  double budget; /* bytes that it may send at its rate */
  double round_sent; /* bytes of this round, before `touched` */
  double owed; /* lost bytes of it that aren't sent again yet */
  double size; /* bytes of its flow */
  int32_t subflow; /* the first of its subflows */
  int32_t leaving; /* so many of them are listed, but have no part of it any more */
  int32_t coflow; /* NONE: nobody said */
  int32_t priority;
  int32_t active; /* it has something to send */
  int32_t attached; /* so many of its subflows are on ports */
  int32_t asleep; /* it rests: its rounds are left out */
  int32_t settled; /* its control answered as before */
  int64_t sent; /* whole bytes of its flow that were counted, without headers */
  int64_t want; /* its rate, before its own port is shared */
  int64_t round; /* when its round began */
  double base; /* a round trip without queues, ps; the mean over its subflows */
  double window, pace, wait; /* what its control said: bytes, bits/s, ps */
  double seen_rtt; /* what the round before saw, which the control is shown */
  double seen_marked;
  double marking; /* part of what its path marked when its last round ended */
  int64_t line; /* bits/s of its first port */
  int64_t grid; /* rounds end on multiples of it, ps */
  int64_t payload; /* bytes of its flow without headers */
  double lost; /* packets that its control was not told of yet */
  double resent; /* packets that were sent again in this round */
  int64_t known_at; /* when the sender hears of the first that is lost; 0: none is */
  int64_t timeout_at; /* until when it is silent, as some are lost again; 0: it did not come to that */
  double before_sent; /* bytes of the round before */
  int64_t lost_since; /* when losses were counted last */
  double debt; /* lost bytes that its control was told of in no whole packet yet */
  int32_t flow, tail; /* the flow under way, and the last one that waits; NONE: none is */
  int32_t stride; /* so many rounds are to be taken at once, where there is a tolerance */
  int32_t job;
  int16_t known; /* its control has said something */
  int16_t uneven; /* its rate changed in the midst of its round */
  int32_t bursts; /* its first round after a silence: a window leaves in a burst, where nothing paces it */
  int32_t spent; /* it is silent until its round ends */
  int32_t held; /* a link of a subflow is dead */
  double weight;
  int64_t salt; /* what its random numbers come from */
  int64_t counted; /* bytes of its flow that links have counted */
  int64_t period; /* of its rounds, where several are taken at once, or while it rests: then the first would end at `ends` */
  int64_t ends;
  int64_t hops; /* links of the longest of its paths */
  int64_t arrived; /* nothing of it arrives before */
  int64_t seen; /* number of the instant in which a flow of it started last */
  double rtt; /* as it was found at `rtt_at` */
  int64_t rtt_at;
  double marked; /* part of its last round that was */
  int64_t choices; /* the subflows that it may choose are in `choices` from here on */
};

/* A path of a connection, and what part of its bytes goes that way: ECMP is one subflow with all of it. */
struct subflow {
  int32_t hop, hops; /* its hops: the first, and how many */
  int32_t conn;
  int32_t next; /* of the same connection */
  double part;
  int64_t want; /* of its first port, bits/s */
  double base; /* a round trip without queues, ps */
  int64_t latency; /* of all its links, ps */
  int64_t store; /* a packet's time on all links but the first, ps */
  int16_t attached; /* it is on the ports of its path: as long as what was sent that way is on the way */
  int16_t from; /* its loads are brought to its ports from this one on, while it moves */
  int32_t listed; /* it is among its connection's subflows; 2: and had a part until this instant */
};

/* A subflow on a port. */
struct subflow_hop {
  int64_t load; /* what it brings there, bits/s */
  int64_t new_load; /* the same from now on */
  double marks, lost; /* the port's counters when the round began; when losses were counted last */
  int64_t leads; /* it is the first hop of this subflow, plus one; 0: it is no first hop */
  int32_t port, link;
  int32_t conn;
  int32_t after, before; /* in the list of the port's hops */
  int32_t back; /* the same cable's link the other way, where acknowledgements wait; NONE: they don't */
};

/* The rest of a hop. */
struct hop_memory {
  int64_t kept; /* the last load above 0 */
  double of; /* what its class had of the link before, then */
  double served; /* bytes that its port had served when the round began */
  double queue, rate; /* what telemetry says next */
  int64_t back_next; /* the next hop whose acknowledgements wait on the same link */
  double gone; /* the port's losses, up to which what it lost of this load is counted */
  int32_t boundaries; /* so many of it wait in its port's queue */
  int32_t input; /* where ports pause: what the port before brings there */
};

/* What a subflow asks its last link for, and what it takes of that while its connection is held back elsewhere. */
struct credit {
  int64_t asked, taken;
};

/* One class of priority on one link: those of the first class lie side by side, then those of the second. */
struct port {
  int64_t load; /* bits/s */
  double queue; /* bytes */
  double marks, losses; /* the fraction that was marked or lost, times ps: ever growing */
  double served; /* bytes, ever growing */
  int64_t stamp; /* of the instant in which it was touched last */
  int32_t first; /* of its hops */
  int16_t hot; /* of the first class: who rests on the link was woken */
  int16_t listed; /* of the first class: it is among the hosts to share anew */
  int32_t link;
  int32_t paused; /* by so many ports after it */
  int64_t own; /* what the subflows that begin here want, bits/s */
  int64_t told; /* the load when all that pass here were last looked at */
  int64_t level; /* a connection that begins here gets no more */
  double peak; /* the longest queue so far */
  double marked; /* bytes */
  int64_t drop_from; /* when it began to drop */
  double duty; /* the part of its time in which nobody pauses it */
  int32_t stops; /* it pauses so many of its input shares */
  int32_t head; /* the first of the last bytes that wait in its queue */
  double dropped; /* bytes */
  int64_t paused_ps, since, resumed; /* paused for so long, since when, and when it last went on */
  int64_t check, empties; /* when it is to be looked at for thresholds, and when its queue may be gone */
  int32_t inputs; /* the first of its input shares */
  int32_t tail; /* the last of the last bytes */
  double left; /* what classes before it left of the link when those that pass here were last told, bits/s */
};

struct port_link {
  int64_t capacity; /* bits/s; 0 while it is dead */
  int64_t touched; /* up to when its queues are settled */
  double busy; /* ps of it that are not counted yet */
  double mark_from, mark_all, mark_most; /* RED: bytes, bytes, and the probability there */
  double buffer; /* bytes */
  int64_t latency; /* ps */
  int64_t onward; /* subflows on it that go on from where it ends */
  double pause, resume; /* bytes of an input share */
  int64_t back_first; /* the first hop whose acknowledgements wait here */
  int64_t nominal; /* the capacity that it was built with */
  int64_t asked; /* where its receiver grants credit: what those ask for who aren't held back elsewhere */
  int64_t taken; /* and what those take who are, bits/s */
  int64_t told; /* the level of its own connections when all of them were told */
  int64_t given; /* what they may send at the level, bits/s */
  int64_t loop; /* bits/s that a class's credit lets through, where the other end grants some; else NEVER */
};

/* Flows that have to go by a link: they aren't complete before it can have brought them. */
struct passing {
  int64_t counts; /* 1: the flows whose path has this link can't go round it */
  int64_t since; /* since when some are under way without a break */
  double bytes; /* of them on the wire, in those that have ended */
  int64_t flows; /* under way */
  int64_t last; /* when the last that ended is there */
};

/* A port's queue, told apart. */
struct line {
  int64_t out; /* the sum of what leaves as it came, of each hop `outs` */
  int64_t told; /* the same when all that pass here were last looked at */
  int64_t due; /* when its first rate boundary is looked for */
  int32_t head, tail; /* its boundaries */
  double turns; /* bytes served for each bit/s of `out`, ever growing, up to when it had served `since` */
  double since;
};

/* From here on `hop` brought `load` to its port. */
struct rate_boundary {
  double leaves; /* when the port has served so many bytes */
  int64_t load;
  int32_t hop;
  int32_t next;
};

/* A flow that has started and not drained; or one whose last bytes stand in queues. */
struct sent_flow {
  int64_t origin; /* when it started */
  int32_t handle, rep, row;
  int32_t next; /* of its connection */
  int64_t arrives; /* of those last bytes that have gone through, when the last is at its receiver */
  int32_t lasts; /* so many last bytes, one a subflow, stand in queues */
  int32_t priority;
};

/* The last byte of a flow that goes by a subflow, in a queue. */
struct last_byte {
  double leaves; /* when the port has served so many bytes */
  int32_t flow, subflow;
  int32_t hop;
  int32_t next; /* of the same queue */
};

/* What a port brings to one after it. */
struct input_share {
  int64_t load; /* comes, bits/s */
  int64_t out; /* its part of what leaves */
  double bytes; /* of it in the queue there at `at`, when that port's line was at `turns` */
  int64_t at;
  double turns;
  int32_t port; /* that brings it */
  int32_t next; /* of the same queue */
  int32_t hops; /* by so many */
  int32_t stopped; /* it is paused */
};

struct sender_traits {
  double weight;
  int32_t coflow, priority, job;
  int32_t pad;
};

struct coflow {
  int64_t sent, size; /* bytes */
};

/* What a control is shown of a connection, and where it answers (window, rate, wait, slow_start):
 * cosim/network/congestion/contract.py. */
struct control_row {
  int64_t conn; /* its state is `state[conn * MOST_STATES]` and on */
  int64_t begin; /* its hops are `telemetry[begin]` to `telemetry[begin + hops - 1]` */
  double first; /* 1: the control does not know this connection */
  double elapsed, rtt, base_rtt, marked, again, lost, timeout, acked, delivered, flight, limited, mss, line, sent, size;
  double coflow_sent, coflow_size, job, priority, weight, hops, window, rate, wait, slow_start, gain, chance, granted;
  double lost_inside;
};

/* Telemetry of a hop: bytes queued, bits/s sent over the round, and the link's bits/s. */
struct hop_sight {
  double queue, tx, capacity;
};

/* Controls that are compiled, plug-ins too, are called by their address with these five: rows of a batch, the hops of
 * all of them, state by connection, and the control's parameters. */
typedef void (*control_kernel)(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                               const double *parameters);

/* What a control had said and remembered before it was asked. */
struct answer_before {
  double window, rate;
  double rounds; /* that have ended together, and about which it was not asked yet */
  double low, high; /* answers between them hardly move what is sent */
  double state[8]; /* MOST_STATES of them */
};

struct congestion_state {
  struct congestion_counts counts;
  struct congestion_settings settings;
  struct drain_heap *drains; /* by connection */
  struct change_list *changes;
  struct balance *balance;
  GROWN(struct connection, conns);
  GROWN(int64_t, stamps); /* beside the conns: of the instant in which it changed last */
  GROWN(struct subflow, subflows);
  GROWN(struct subflow_hop, hops);
  GROWN(struct hop_memory, sights); /* beside the hops */
  GROWN(struct port, ports);
  GROWN(struct port_link, links);
  GROWN(struct passing, passing); /* beside the links */
  GROWN(struct credit, credits); /* beside the subflows, where receivers grant credit */
  GROWN(double, inside); /* beside the conns: bytes lost before the receiver's port that the control wasn't told of */
  GROWN(double, state); /* beside the conns, MOST_STATES of each: the control's own */
  GROWN(struct line, lines); /* beside the ports, where queues are traced */
  GROWN(int64_t, outs); /* beside the hops, where queues are traced: what leaves the port of it, bits/s */
  GROWN(int32_t, subflow_of); /* beside the hops, where queues are traced */
  GROWN(int64_t, moved); /* beside the subflows, where queues are traced: the stamp when it moved last */
  GROWN(struct rate_boundary, boundaries);
  GROWN(struct sent_flow, flows);
  GROWN(struct last_byte, lasts);
  GROWN(struct input_share, inputs);
  GROWN(struct control_row, rows); /* the batch */
  GROWN(struct hop_sight, telemetry); /* of the rows, one after the other */
  GROWN(struct answer_before, before); /* beside the rows */
  GROWN(int32_t, changed);
  GROWN(int32_t, updated);
  GROWN(int32_t, woken);
  GROWN(int32_t, hosts);
  GROWN(int32_t, touched);
  GROWN(int32_t, moving);
  GROWN(int32_t, late);
  GROWN(int32_t, scan); /* ports that a search for circles has met */
  GROWN(int64_t, visits); /* beside the ports: the last search that met them */
  GROWN(int32_t, instant);
  GROWN(int32_t, starts); /* events of the instant that start flows, and room to sort them */
  GROWN(int32_t, spare);
  GROWN(int32_t, other);
  COLUMN(struct sender_traits, traits); /* by the groups' number */
  COLUMN(struct coflow, coflows);
  COLUMN(int32_t, channel_of); /* beside path_ptr: the connection */
  COLUMN(int32_t, choices); /* subflows by the paths that connections may choose; NONE: there is none yet */
  COLUMN(int64_t, mine); /* beside the links, where there is a balancer: what who chooses brings there, while it looks */
  COLUMN(double, parameters); /* of the control */
  GRID(double, histogram); /* [links, QUEUE_BINS]: bytes served by queue length, but for those that met none */
};

LOOP int64_t run_congestion(struct core *core, struct congestion_state *fluid, int64_t horizon);
EXPORT int64_t reroute(struct core *core, struct congestion_state *fluid, int64_t count, const int32_t *conns,
                       const int32_t *subflows);
EXPORT int64_t choose_all_anew(struct congestion_state *fluid, int64_t num_conns);
EXPORT void settle_all_queues(struct core *core, struct congestion_state *fluid, int64_t now);

/* -- controls.c: congestion controls ---------------------------------------------------------------------------- */

LOOP void update_cubic(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                       const double *parameters);
LOOP void update_dcqcn(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                       const double *parameters);
LOOP void update_dctcp(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                       const double *parameters);
LOOP void update_fixed(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                       const double *parameters);
LOOP void update_hpcc(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                      const double *parameters);
LOOP void update_newreno(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                         const double *parameters);
LOOP void update_nscc(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                      const double *parameters);
LOOP void update_rccc(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                      const double *parameters);
LOOP void update_swift(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                       const double *parameters);
LOOP void update_timely(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                        const double *parameters);
EXPORT double cube_root(double x);
EXPORT double none_of(double p, double count);

/* -- hybrid.c: two networks in one run -------------------------------------------------------------------------- */

/* What the loop stops for: a part asks something (hybrid_state); a flow would have to be given to a part for its past,
 * which is a mistake of ours. */
enum hybrid_stop { PART_ASKS = 40, GIVEN_TOO_LATE = 41 };

struct hybrid_state {
  int64_t round; /* the instant of the round under way */
  int64_t step; /* of the round, that comes next */
  int64_t over; /* the instant whose rounds are over */
  int64_t which, status; /* which part asks, and what */
};

struct hybrid_part {
  int64_t loop, columns; /* where they are */
  int64_t next; /* when it goes on */
  int64_t granted; /* how far it may be said to have gone */
  int64_t marks; /* how many it was given */
};

/* By part: where a row of the whole's paths is in the part's paths, NONE where the other one carries it; how many flows
 * of a binding it carries, at the binding's first row. */
struct hybrid_row {
  int64_t path[2];
  int64_t flows[2];
};

/* By part: its number of something of the whole's. */
struct hybrid_number {
  int32_t number[2];
};

struct hybrid {
  struct hybrid_state state;
  struct core *core0;
  struct core *core1;
  struct reported *reported;
  COLUMN(struct hybrid_part, parts);
  COLUMN(struct hybrid_row, rows);
  COLUMN(struct hybrid_number, tables);
  COLUMN(struct hybrid_number, traits);
};

LOOP int64_t run_hybrid(struct core *core, struct hybrid *pair, int64_t horizon);

/* -- engine: programs on ranks ---------------------------------------------------------------------------------- */

/* Why the engine's loop gave control back to Python: what only Python can make or say, or what is wrong. */
enum engine_stop {
  ASK_NETWORK = 100, /* one that is not in this process, up to engine_state.horizon */
  NEED_TRAITS, /* what the network calls a job's iteration, `which`, is not known */
  NEED_PACE, /* how long a rank's computations take in the iteration that begins */
  NEED_GROUP, /* a collective's group is not known */
  NEED_PLAN, /* nor is its plan */
  NEED_START, /* whoever directs a job has to say when a rank may go on */
  NEED_ACCESS, /* the flows of an access to a memory node are not known */
  NO_PEER, /* a rank has nobody at the other end */
  WRONG_SIZE, /* two ends disagree on a size, of message `which` */
  WRONG_COLLECTIVE, /* ranks disagree on a collective, of rendezvous `which` */
  TOO_EARLY, /* a rank left rendezvous `which`, at position `place`, before it came */
  NO_PROGRESS, /* the network stands still */
  AFTER_TIME, /* something would end at NEVER or later */
  TELL, /* what somebody waits for has ended, or the instant `hold` has ended all it had: nothing was started since */
};

/* Kinds of operations. OP_REMOTE: an access that is a message. OP_TRANSFER: a message that nobody asks for. */
enum operation_kind { OP_COMPUTE, OP_COLLECTIVE, OP_SEND, OP_RECV, OP_ACCESS, OP_REMOTE, OP_TRANSFER };

/* Whose a flow group is; from OF_COLLECTIVE on the network starts flows that wait for others. */
enum flow_owner { OF_MESSAGE, OF_REQUEST, OF_CARRIER, OF_COLLECTIVE, OF_ACCESS };

/* Parts in flow keys; those below are the chunks and phases of collectives, so that keys never meet. */
enum key_part { REQUEST_PART = 4094, MESSAGE_PART = 4095 };

enum engine_size {
  REQUEST_BYTES = 8192, /* of a rendezvous request, as ASTRA-sim sends it */
  COMM_BITS = 25, /* of a plan's key: its group, */
  WHAT_BITS = 24, /* its kind of collective, */
  TURN_BITS = 14, /* and its turn; together never negative */
  SIZE_BITS = 36, /* of a bound row: bytes below, the number of its pair of endpoints above, or -1 for a mark */
  LONG_BIT = 35, /* of these bits: where its bytes are in `long_sizes` is below */
  FCT_BINS = 3648, /* each picosecond below 64, then 64 for each power of two: 1.6 % wide at most */
};

/* What a rank has rows of, in the order of the arrays `counts` and `first`. */
enum rank_rows { ROWS_OF_CELLS, ROWS_OF_SLOTS, ROWS_OF_LANES, ROWS_OF_MEMBERS, ROWS_OF_PORTS };

struct engine_state {
  int64_t now;
  int64_t granted; /* how far the network has gone */
  int64_t horizon; /* how far it may go */
  int64_t round; /* of starts */
  int64_t at_rank, at_lane, at_op; /* what is being started; NONE: nothing */
  int64_t which, place; /* what a stop is about */
  int64_t num_agenda, num_ending, num_reactions, num_touched;
  int64_t num_begins, begins_at; /* lists that are worked off have a number and a place */
  int64_t num_pumps, pumps_at;
  int64_t num_enters, enters_at;
  int64_t num_dispatches, dispatches_at;
  int64_t num_opened, opened_at;
  int64_t num_starts, starts_at;
  int64_t given; /* starts that the network was given since it was last through */
  int64_t free_handle, handles_used; /* a list through flow_group.next */
  int64_t free_rendezvous, rendezvous_used;
  int64_t free_message, messages_used;
  int64_t words_used;
  int64_t num_plans;
  int64_t num_log, most_log; /* operations that ended, and how many there may be before Python takes them */
  int64_t last_end; /* of an operation, whether it was kept or not */
  int64_t num_collective_log;
  int64_t serial; /* of the next rendezvous */
  int64_t ops_done;
  int64_t num_advances; /* how often the network was asked */
  int64_t start_at; /* when the rank that is next may begin an iteration, of a directed job; NONE: to be asked */
  int64_t keeps_messages, num_kept;
  int64_t since; /* since when what ended may not be logged yet, as it is repeated (engine_repeats.c); NEVER */
  int64_t hold; /* an instant at which others have a word before anything starts; NONE */
  int64_t num_told;
  int64_t free_ticket, tickets_used;
  int64_t free_op, num_free; /* operations of the pool: a list through operation.waits */
  int64_t num_issued;
  uint64_t digest[2], op_digest[2];
  int64_t messages; /* that completed; marks are none */
  int64_t fct_min, fct_max, fct_sum, fct_carries; /* of their times; the sum is fct_sum + fct_carries * 2^62 */
  int64_t under_way;  /* groups of flows */
  int64_t may_go_on; /* 1: somebody may have more to do once nothing is left: time stays at what ended last */
};

/* An operation of a program, once for each slot (cosim/engine/program_columns.py), of which it is `number`; such a row is what is
 * called an operation below. */
struct operation {
  int64_t duration, size;
  int32_t kind;
  int32_t lane; /* its stream; the last of a program has no limit */
  int32_t waits; /* for so many */
  int32_t first, last; /* its successors; of a driven rank's: its ticket, and which traits of its job its message has */
  int32_t what; /* a collective's number of (collective, size, root) */
  int32_t ref; /* a collective's group among the program's; of a message its port among the program's */
  int32_t occurrence; /* collectives on that group before */
  int32_t slot, number;
  int32_t early; /* how many of `waits` lie before the first iteration when that is new; of a driven rank's: its row of
                    `issued` */
  int32_t ahead; /* so many like it go first, and then one before each of its lane that has 0 */
};

struct program {
  int32_t op0, ops; /* its operations, so many in each slot */
  int32_t lanes, lane0; /* lane_base[lane0 + lane]: where a lane's heap is in a rank's cells */
  int32_t roots, root0; /* what waits for the iteration alone */
  int32_t ahead; /* so many operations are ahead */
  int32_t pad;
};

struct job {
  int64_t rank0;
  int64_t end0; /* ends of an iteration are at iteration_ends[end0 + iteration * ranks] */
  int64_t trait0; /* traits[trait0 + iteration]: what the network calls its weight, priority and coflow */
  int32_t ranks, iterations;
  int32_t rendezvous; /* whether a RECV asks for its message */
  int32_t open; /* so many iterations may be under way on a rank */
  int32_t directed; /* 1: somebody is told after a rank's last iteration; 2: and asked before each */
  int32_t watched; /* whether somebody is told when an iteration of a rank ends */
};

struct rank {
  int64_t cell0; /* its operations' cells */
  int64_t pace0; /* its durations where they are its own, for iterations before `paced`; NONE */
  int64_t finish;
  int64_t cause, cause_round; /* when that became certain which lets operations start in this round */
  int32_t program, job, number;
  int32_t iteration, oldest; /* the last and first that has begun and not ended */
  int32_t origin; /* first operation of the oldest iteration's slot */
  int32_t paced;
  int32_t slot0, lane0, ref0, port0;
  int32_t touched;
  int32_t device; /* the memory that serves it; NONE: no access waits for another */
  int32_t issued; /* operations that a driven one was given */
};

struct rank_slot {
  int32_t iteration;
  int32_t left; /* operations to end */
};

struct rank_cell {
  int64_t started; /* when an operation started; NONE: it is not under way */
  int32_t waits; /* for so many more */
  int32_t ready; /* not the operation's: the cells of a lane hold the heap of its ready operations */
};

struct lane {
  int32_t busy; /* the operation that holds the stream; NONE */
  int32_t count; /* ready for it */
  int64_t owed; /* so many that are ahead go before the next one that isn't */
  int64_t ahead; /* so many of those have yet to start, in all iterations */
};

/* A rank's place in a group that its program names; NONE: not looked up. */
struct member {
  int32_t comm, position;
};

/* One end of messages of a rank. */
struct rank_port {
  int32_t channel; /* where both ends meet */
  int32_t binding; /* what it sends (a RECV: its request), or the flows of an access; NONE: not looked up */
  int32_t peer, pad;
};

/* A group as its members name it. */
struct comm {
  int64_t rank0; /* ranks by position */
  int32_t group;
  int32_t op0, ops; /* the numbers of its collectives in its lowest rank's program */
  int32_t open; /* its first rendezvous under way; NONE */
  int32_t size, pad;
};

/* Where the plan of a group's operation before stopped (cosim/pattern/plan.py). */
struct comm_group {
  int32_t turn, iteration;
};

/* A plan on a group: parts from `part0` on, chunk by chunk, phase by phase. */
struct plan {
  int64_t key;
  int64_t free; /* words given back: a list through their first; NONE */
  int64_t words; /* of each rendezvous */
  int32_t ranks, chunks, phases;
  int32_t active; /* phases that run in a queue of a rank at once */
  int32_t queues, part0;
  int32_t instances; /* sub-groups of all parts */
  int32_t turn; /* of the operation after */
  int32_t carried; /* whether code gives its messages as they come; then it has no parts */
  int32_t pad;
  int64_t messages; /* of each time; 0 where code gives them */
};

struct part {
  int64_t where0; /* by position its sub-group and place */
  int64_t sub0;
  int32_t queue, instance0;
};

struct where {
  int32_t sub, place;
};

struct sub_group {
  int64_t position0;
  int32_t binding; /* the flows that carry it */
  int32_t lowest; /* rank */
  int32_t size, pad;
};

/* A flow table on endpoints. */
struct binding {
  int64_t flows;
  int64_t react_from; /* flows from here on are what the engine waits for */
  int64_t info; /* its rows of `info` */
  int64_t path; /* what the network calls it */
  int32_t table;
  int32_t block, blocks;
  int32_t pad;
};

/* A collective of a group under way. Its words: engine_chunks.c. */
struct rendezvous {
  int64_t words;
  int64_t start, ready;
  int64_t serial;
  int32_t comm, occurrence, iteration, plan;
  int32_t number; /* in flow keys */
  int32_t what;
  int32_t rank, op; /* of who came first */
  int32_t arrived, left;
  int32_t next;
  int32_t traits; /* which of its job its messages have */
};

/* Messages of one (job, sender, receiver, tag) of which one end is posted; all lack the same one. */
struct message_channel {
  int32_t head, tail;
};

/* A SEND and its RECV, as far as they are posted; ranks NONE: not yet. */
struct message {
  int64_t size; /* as who came first has it */
  int32_t send_number, recv_number; /* of the operations in their programs */
  int32_t send_rank, send_op, send_iteration;
  int32_t recv_rank, recv_op, recv_iteration;
  int32_t requested, arrived;
  int32_t next;
  int32_t port; /* the receiver's */
};

/* A flow group in flight. */
struct flow_group {
  int64_t key_high, key_low;
  int64_t left; /* flows to complete */
  int32_t binding;
  int32_t kind; /* enum flow_owner */
  int32_t owner; /* rendezvous, message, rank or ticket */
  int32_t part, sub;
  int32_t exits; /* to tell the owner of */
  int32_t holds; /* the network and the owner, until they let go */
  int32_t next;
};

/* An entry of a heap, by (time, high, low). */
struct due {
  int64_t time, high, low, cause;
  int32_t a, b;
};

/* Operations that somebody waits for. */
struct ticket {
  int32_t left; /* to end */
  int32_t next; /* of the free list */
  int64_t row; /* the first of `issued` */
  int64_t messages; /* of the collective that they are */
};

/* A ticket that is through, or a job of which an iteration of a rank ended; or a rank that came to a rendezvous that
 * code carries. The others are NONE. */
struct told {
  int32_t ticket, job;
  int32_t met, position;
};

/* An operation that a driven rank is to begin; `ref` is its message's binding or port, `traits` the class of it. */
struct asked {
  int64_t rank, kind, like, size, ref, traits, peer, tag;
  int64_t ticket; /* which it is given when it is issued */
};

/* An operation of a driven rank, as results are made of it; they stand in the order in which they were issued. */
struct issued {
  int64_t duration, size;
  int64_t end;
  int32_t rank, like, peer, tag;
};

struct task {
  int64_t cause;
  int32_t owner, part, position, pad;
};

struct opened {
  int32_t handle, iteration;
};

struct flow_start {
  int64_t index, start, cause;
  int32_t handle, pad;
};

/* An operation that ended. */
struct ended_operation {
  int64_t start, end;
  int32_t rank, op, iteration, pad;
};

/* A collective that ended; rank and operation of who came first. */
struct ended_collective {
  int64_t start, ready, end;
  int32_t comm, iteration, number, plan, rank, op;
};

/* A flow table's block: its first flow and row, rows in one repetition. */
struct flow_block {
  int64_t base, row, rows;
};

/* A message that arrived, where every one is kept. */
struct kept_message {
  int64_t key_high, key_low;
  int64_t pair, size;
  int64_t start, end;
};

/* Bytes that arrived. */
struct arrival {
  int64_t bytes;
  int32_t pair, bin;
};

struct traffic_state {
  int64_t num_pairs;
  int64_t pairs; /* that there are bins for */
  int64_t bins, most_cells; /* of each pair; of all */
  int64_t bin_bits; /* a bin is 2^bin_bits ps wide */
  int64_t num_arrivals;
  int64_t num_long;
};

/* Pairs of endpoints, numbered in the order in which they were first met, and the bytes between them over time. */
struct traffic {
  struct traffic_state state;
  GROWN(int64_t, codes); /* source << 32 | destination */
  GROWN(int32_t, hashes); /* pair + 1, by code; a power of two of them */
  GROWN(struct arrival, arrivals); /* as long as they are few for so many pairs */
  GROWN(int64_t, bytes); /* [bins, pairs], from then on */
  GROWN(int64_t, long_sizes); /* of rows of 32 GiB and more */
};

/* Networks of which intervals are repeated: what their state is while nothing is under way. */
enum { WAKE = -2 }; /* in `due.b`: a part has slept */
enum repeated_network { STATELESS = 1, LINKS_IN_TURN = 2, FAIR_LINKS = 3 };

/* What repeats: engine_repeats.c. */
struct repeats_state {
  int64_t network;
  int64_t ranks; /* in use */
  int64_t due; /* 1: a part may be in a state to look at */
  int64_t ended; /* 1: an iteration of a job ended on all its ranks */
  int64_t stale; /* 1: parts are to be found anew, and nothing from before is of use */
  int64_t is_full; /* 1: no other interval is kept */
  int64_t recorder; /* the part of which an interval is kept now; NONE */
  int64_t num_running, num_claims, num_held;
  int64_t num_ops, num_flows, num_sums, num_collectives, num_messages; /* of all intervals */
  int64_t collectives_before, messages_before; /* the interval that is kept now */
};

struct seen_state {
  uint64_t digest[2];
};

/* Jobs that share something, and an interval between two of their states that are the same but for times and iteration
 * numbers: where its rows begin and end. */
struct repeated_part {
  int64_t due; /* 1: its state is to be looked at */
  int64_t asleep; /* until when; 0: it is awake */
  int64_t num_seen;
  int64_t away; /* states to come up to the end of the interval that is kept; 0: none is kept now */
  int64_t is_whole; /* 1: an interval, which began in the state `begin`, has ended in it, and is being repeated */
  int64_t time; /* when it began; then, how long it is */
  int64_t next_change; /* before it; then, of it */
  int64_t ops0, ops, flows0, flows, uses0, uses, collectives0, collectives, messages0, messages;
  int64_t times; /* so often it was repeated */
  int64_t bins, pairs, links, bytes, bytes_end; /* of `sums`: by bin of a completion time, by pair, twice by link */
  int64_t first_arrival, last_arrival, first_use, last_use; /* when, in the interval as it was simulated */
  int64_t arrivals, took, took_carries; /* messages that arrived, and how long they took together */
  uint64_t begin[2];
};

/* What rows of an interval add up to: messages, bytes, or picoseconds. */
struct repeated_sum {
  int64_t at, amount;
};

struct repeated_job {
  int64_t part; /* one of the jobs that it shares something with; NONE: it doesn't run */
  int64_t ended; /* iterations that ended on all ranks */
  int64_t behind; /* ranks that ended no more */
  int64_t under_way; /* groups of flows, and collectives */
  int64_t least; /* what an iteration takes at least */
  int64_t step; /* iterations before the interval; then, of it */
  int64_t taken; /* iterations */
};

struct repeated_flow {
  int64_t key_high, key_low;
  int64_t time, took, bytes;
  int32_t pair, bin; /* pair: NONE for a mark */
};

/* A job has flows of a binding. */
struct claim {
  int32_t binding, job;
};

struct repeats {
  struct repeats_state state;
  COLUMN(struct repeated_job, jobs);
  GROWN(struct repeated_part, parts); /* by job */
  GROWN(struct seen_state, seen); /* a ring of each part */
  GROWN(int32_t, running); /* jobs */
  GROWN(struct claim, claims);
  GROWN(int8_t, claimed); /* by binding */
  GROWN(struct due, held); /* of what sleeps, times from then on */
  GROWN(struct ended_operation, ops);
  GROWN(struct repeated_flow, flows);
  GROWN(struct repeated_sum, sums);
  GROWN(int64_t, scratch); /* 0 throughout, but while sums are made */
  GROWN(struct ended_collective, collectives);
  GROWN(struct kept_message, messages);
  GROWN(int64_t, link_bytes); /* before the interval of who uses it; then, of it */
  GROWN(int32_t, oldest); /* of each rank, the same */
  GROWN(int32_t, group_jobs); /* of each of `groups` */
};

/* Jobs and all that is under way of them. Python writes the COLUMNs, most of them before a run; the loop the others. */
struct engine {
  struct engine_state state;
  struct traffic *traffic;
  struct repeats *repeats; /* 0: every iteration is simulated */
  COLUMN(struct operation, ops);
  COLUMN(int32_t, successors);
  COLUMN(struct program, programs);
  COLUMN(int32_t, roots);
  COLUMN(int32_t, lane_base);
  COLUMN(struct job, jobs);
  COLUMN(struct rank, ranks);
  COLUMN(int8_t, is_kept); /* whether a rank's operations are; empty: those of all are */
  COLUMN(struct rank_slot, slots);
  COLUMN(struct rank_cell, cells);
  COLUMN(struct lane, lanes);
  COLUMN(int64_t, pace);
  COLUMN(int64_t, iteration_ends);
  COLUMN(int32_t, traits);
  COLUMN(int64_t, free_at); /* when each memory device will have served all who came */
  COLUMN(struct member, members);
  COLUMN(struct rank_port, ports);
  COLUMN(struct comm, comms);
  COLUMN(int32_t, comm_ranks);
  COLUMN(int32_t, numbers);
  COLUMN(struct comm_group, groups);
  COLUMN(struct plan, plans);
  COLUMN(struct part, parts);
  COLUMN(struct where, where);
  COLUMN(struct sub_group, subs);
  COLUMN(int32_t, positions);
  COLUMN(struct binding, bindings);
  COLUMN(struct message_channel, channels);
  COLUMN(struct flow_block, blocks);
  COLUMN(int64_t, info); /* of bound rows: SIZE_BITS */
  COLUMN(int64_t, fct); /* messages by completion time */
  GROWN(int32_t, plan_places); /* plan + 1, by its key; a power of two of them */
  GROWN(struct rendezvous, rendezvous);
  GROWN(int32_t, words);
  GROWN(struct message, messages);
  GROWN(struct flow_group, handles);
  GROWN(struct due, agenda); /* a heap: operations that end, and when that is */
  GROWN(struct due, ending); /* a heap: what somebody has end at this instant; few, where an agenda may be long */
  GROWN(struct due, reactions); /* a heap: completions that the engine waits for */
  GROWN(struct due, touched); /* a heap: ranks that may start something, by round */
  GROWN(int32_t, begins); /* ranks that may begin an iteration */
  GROWN(struct task, pumps); /* queues of a rank to fill */
  GROWN(struct task, enters); /* parts of a collective that a rank begins */
  GROWN(struct task, dispatches); /* messages to send */
  GROWN(struct opened, opened); /* flow groups for the network */
  GROWN(struct flow_start, starts); /* and flows */
  GROWN(struct ended_operation, log);
  GROWN(struct ended_collective, collective_log);
  GROWN(struct kept_message, kept);
  GROWN(struct ticket, tickets);
  GROWN(struct told, told);
  GROWN(struct issued, issued);
  COLUMN(struct asked, asked); /* what Python asked for since the loop ran last */
};

/* Operations that ended, as the columns that results are made of. */
struct kept_operations {
  COLUMN(int32_t, jobs); /* of each rank */
  COLUMN(int32_t, numbers); /* its number in its job */
  COLUMN(int32_t, job);
  COLUMN(int32_t, iteration);
  COLUMN(int32_t, rank);
  COLUMN(int32_t, op);
  COLUMN(int64_t, start);
  COLUMN(int64_t, end);
  GROWN(struct ended_operation, spare);
  int64_t count;
};

/* A job's operations as its table has them, and what is found of them on the way: the ends of each program are found as
 * the first of the rows that have it. */
struct table_columns {
  COLUMN(int64_t, first); /* row of each program */
  COLUMN(int32_t, like); /* prototype of each row */
  COLUMN(int64_t, duration);
  COLUMN(int64_t, size);
  COLUMN(int64_t, peer);
  COLUMN(int64_t, tag);
  COLUMN(int64_t, dep_first);
  COLUMN(int32_t, dep);
  GRID(int64_t, lagged); /* [k, 3]: row, operation of its program, how many iterations before */
  COLUMN(int32_t, kind); /* of a prototype */
  COLUMN(int32_t, ahead); /* of a prototype */
  COLUMN(int32_t, stream); /* of a prototype, in ascending order of names; the last is no stream */
  COLUMN(int32_t, end); /* of a prototype: ends of messages of one number differ by columns alone; NONE: it is none */
  COLUMN(int32_t, end_first); /* the first end of each program */
  COLUMN(int32_t, end_row); /* the row of each end */
  COLUMN(int32_t, hashes); /* end, by what it is; NONE */
  COLUMN(int32_t, seen); /* scratch, by row */
  COLUMN(int32_t, count); /* scratch, by stream */
  COLUMN(int32_t, lane); /* scratch, by stream */
};

/* What is found of a job's ends of messages: channels, and flows of what goes out at each port. */
struct meetings {
  COLUMN(int32_t, program_of); /* each rank's */
  COLUMN(int64_t, stride); /* of a prototype: along the axis on which the other end is, */
  COLUMN(int64_t, axis_size); /* 0: it says a rank, or nobody, */
  COLUMN(int64_t, offset);
  COLUMN(int32_t, channel_of); /* of a prototype */
  COLUMN(int32_t, sender); /* of each channel */
  COLUMN(int32_t, receiver);
  COLUMN(int64_t, tag);
  COLUMN(int32_t, hashes); /* channel, by those three; NONE */
  COLUMN(int32_t, port); /* of each flow */
  COLUMN(int32_t, source);
  COLUMN(int32_t, target);
  COLUMN(int64_t, size_bytes);
  COLUMN(int32_t, channel);
};

/* Where a job's rows begin. */
struct first_rows {
  int64_t op, successor, lane, root, program;
};

EXPORT int64_t run_engine(struct engine *engine, int64_t loop, int64_t core, int64_t columns, int64_t until,
                          int64_t turns);
EXPORT int64_t next_engine_instant(const struct engine *engine);
EXPORT int64_t issue_asked(struct engine *engine, int64_t now, int64_t count);
EXPORT int64_t issue_all(struct engine *engine, int64_t now, int64_t count, const int32_t *ranks,
                         const int64_t *durations, const int32_t *ref, const int32_t *occurrence, int64_t kind,
                         int64_t like, int64_t size, int64_t what, int64_t traits);
EXPORT int64_t begin_ranks(struct engine *engine, int64_t first, int64_t count, int64_t now);
EXPORT int64_t count_completions(struct engine *engine, int64_t from, int64_t to, int64_t count,
                                 const int32_t *handle, const int64_t *index,
                                 const int64_t *start, const int64_t *time, const int64_t *cause);
EXPORT int64_t carry_flow(struct engine *engine, int64_t now, int64_t met, int64_t binding, int64_t key_low);
EXPORT int64_t leave_carried(struct engine *engine, int64_t now, int64_t met, int64_t position, int64_t messages);
EXPORT int64_t add_plan(struct engine *engine, int64_t comm, int64_t what, int64_t turn, int64_t plan);
EXPORT int64_t number_rows(struct traffic *traffic, int64_t count, const int32_t *src, const int32_t *dst,
                           const int64_t *size, int64_t *info);
EXPORT int64_t write_programs(struct engine *engine, struct table_columns *source, const struct first_rows *first,
                              int64_t slots);
EXPORT void count_rank_rows(const struct engine *engine, int64_t program0, int64_t ranks, const int32_t *program_of,
                            int64_t slots, const int32_t *groups, const int32_t *end_first, int64_t *counts);
EXPORT void write_ranks(struct engine *engine, int64_t job, int64_t program0, int64_t ranks, const int32_t *program_of,
                        int64_t slots, const int32_t *groups, const int32_t *end_first, const int64_t *first,
                        int64_t paced);
EXPORT void write_ports(struct engine *engine, struct table_columns *source, struct meetings *found, int64_t rank0,
                        int64_t channel0, int64_t rendezvous, int64_t *counts);
EXPORT int64_t keep_operations(struct kept_operations *to, int64_t count, struct ended_operation *rows,
                               int64_t settled);

/* -- prepared.c: many runs that begin in one state ------------------------------------------------------------------ */

/* How something of a container is copied: words of it; an array of a fixed length; or a GROWN column. */
enum copy_kind { COPY_WORDS, COPY_ARRAY, COPY_GROWN };

/* Where that is in the state that runs begin in, and in the one that they run on: the words themselves, or those that
 * have a column's address. `size`: bytes of it, of a GROWN column those of a row. */
struct copied_part {
  int64_t from, to, size, kind;
};

/* A number that runs differ in: where its column's address is, and how many bytes on it lies. */
struct run_place {
  int64_t column, offset;
};

/* What came of a run. `status`: DONE, UNFINISHED, or what only Python could have answered. */
struct run_outcome {
  int64_t status;
  int64_t end; /* of its last operation */
  int64_t messages;
  uint64_t digest[2];
};

enum run_status { UNFINISHED = -1 }; /* a rank, or a message, waits for what doesn't come */

struct prepared {
  struct engine *engine; /* that runs run on, with the network's loop, core and columns */
  int64_t loop, core, columns;
  COLUMN(struct copied_part, copied);
  COLUMN(struct run_place, places);
  GRID(int64_t, numbers); /* [runs, places], bit by bit */
  GRID(int64_t, starts); /* [runs, jobs] */
  GRID(int64_t, ends); /* [runs, iterations of all jobs]: when each has ended on all ranks */
  COLUMN(struct run_outcome, outcomes); /* by run */
};

EXPORT int64_t run_prepared(struct prepared *prepared, int64_t first, int64_t count);

/* -- prover.c, routing.c and other loops that Python calls ------------------------------------------------------ */

/* prover.c: a template's messages moved on chunk values, in one of two extreme orders. */

/* What replay_late found, beside DONE. */
enum replay_fault {
  NEVER_RELEASED = 1, /* a flow waits for nothing, so that nothing starts it */
  BEFORE_FIRST = 2,   /* a dependency reaches before flow 0 */
  NOT_LOCAL = 3,      /* a flow waits for one that its sender can't see */
};

/* A message that was read at its start, and is not written yet. */
struct carried {
  int32_t payload; /* where its words begin */
  int32_t row;
  int32_t chunk; /* the first that it is written to; NONE: it carries nothing, or has been written */
};

struct chunk_replay {
  COLUMN(int32_t, src); /* the template's columns, by row */
  COLUMN(int32_t, dst);
  COLUMN(int64_t, dep_ptr);
  COLUMN(int64_t, dep_distance);
  COLUMN(int8_t, dep_kind);
  COLUMN(int64_t, block_row);
  COLUMN(int64_t, block_repeat);
  COLUMN(int64_t, chunk); /* in [0, places), as are the next two; steps on with each repetition */
  COLUMN(int64_t, chunk_step);
  COLUMN(int64_t, shift);
  COLUMN(int32_t, chunk_count);
  COLUMN(int8_t, action);
  COLUMN(uint64_t, values); /* what every rank holds of every chunk: by rank, `stride` words each */
  COLUMN(int32_t, tag); /* empty, or `values` has one copy of each chunk at the rank where it starts, one at rank tag */
  COLUMN(struct carried, window); /* by number of the flow; a power of two, longer than any dependency */
  COLUMN(uint64_t, payload); /* a ring: what messages carry */
  int64_t stride, places;
  int64_t per_rank; /* where there are tags, chunks that start at each rank */
  int64_t bits; /* 1: a reduction unites sets of contributors; 0: it adds fingerprints */
  int64_t watch_rank, watch_chunk; /* the cell whose last writer is asked for */
  int64_t writer; /* that flow, or NONE */
  int64_t flow, dependency; /* what is wrong, where something is */
};

EXPORT void replay_early(struct chunk_replay *given);
EXPORT int64_t replay_late(struct chunk_replay *given);

/* routing.c: cheapest paths. */

enum way { FIRST_WAY = 0, HASHED_WAY = 1, WAY_BY_DESTINATION = 2, WAY_BY_CHANNEL = 3 };

/* The links on a cheapest way from a node to a root: pool[first] to pool[first + ways]. */
struct known_ways {
  int64_t node, root, first;
  int64_t ways; /* 0: nothing is known */
};

/* What the columns are: cosim/topology/hop_tables.py. */
struct hop_tables {
  COLUMN(int32_t, link_src);
  COLUMN(int32_t, link_dst);
  COLUMN(int32_t, cost);
  COLUMN(int64_t, out_ptr);
  COLUMN(int32_t, out_link);
  COLUMN(int64_t, in_ptr);
  COLUMN(int32_t, in_link);
  COLUMN(int32_t, root_of);
  COLUMN(int32_t, offset_of);
  COLUMN(int64_t, near_ptr);
  COLUMN(int32_t, near_node);
  COLUMN(int32_t, near_cost);
  COLUMN(int32_t, last_link);
  COLUMN(int64_t, core);
  COLUMN(int32_t, column_of);
  COLUMN(int32_t, stub_cost);
  COLUMN(int64_t, core_ptr);
  COLUMN(int32_t, core_link);
  COLUMN(int32_t, row_of);
  COLUMN(int64_t, place_of);
  GRID(int32_t, rows);
  int64_t least; /* the lowest cost of a link */
  int64_t used; /* rows */
  GROWN(int64_t, queue); /* of fill_rows: columns of the core that became nearer */
  GROWN(int8_t, queued);
  GROWN(struct known_ways, known); /* a hash table that forgets */
  GROWN(int32_t, pool);
  GROWN(int32_t, ways_out); /* of find_equal_paths: the links out of a node that are on a cheapest way */
  int64_t pool_used;
  GROWN(int32_t, found); /* links of the paths that were asked for, path after path */
  GROWN(int64_t, found_ptr); /* of find_equal_paths: path p takes found[found_ptr[p]] to found[found_ptr[p + 1]] */
};

EXPORT int64_t fill_rows(struct hop_tables *tables, int64_t count, const int64_t *roots);
EXPORT int64_t find_paths(struct hop_tables *tables, int64_t count, const int32_t *src, const int32_t *dst,
                          const int32_t *channel, int64_t choice, int64_t seed, int64_t *ptr);
EXPORT int64_t find_equal_paths(struct hop_tables *tables, int64_t num_pairs, const int32_t *src, const int32_t *dst,
                                int64_t most_paths, int64_t *count);
EXPORT void least_loaded_paths(int64_t jobs, const int64_t *pairs, const int64_t *count, const int64_t *ptr,
                                const int32_t *links, const double *rate_bps, const double *sent_bps,
                                int64_t num_links, double *load, double *share, int64_t *chosen);

/* server.c: what a network simulator behind the protocol waits for and reads. */

/* A flow that a server knows; what waits for it is a list of edges. */
struct awaited_flow {
  int64_t id, key_high, key_low, reaction, delay;
  int64_t ready; /* the latest of what it waits for, so far */
  int64_t start, time; /* NONE until known */
  int32_t waits; /* for so many */
  int32_t handle;
  int64_t first; /* edge of its list; NONE: nobody waits */
};

struct edge {
  int64_t to; /* the flow that waits, by slot */
  int64_t next;
  int64_t kind; /* COMPLETED or STARTED: what it waits for */
};

struct edges {
  GROWN(struct edge, edges);
  int64_t unused; /* a list of those given back; NONE: there are none */
  int64_t used; /* how many were ever taken */
  int64_t live; /* how many are in lists of flows */
};

EXPORT int64_t await_others(struct edges *edges, struct awaited_flow *flows, int64_t count, const int64_t *slots,
                            const int64_t *ptr, const int64_t *others, const int8_t *kinds, int64_t *out);
EXPORT int64_t tell_awaiting(struct edges *edges, struct awaited_flow *flows, int64_t count, const int64_t *slots,
                             const int64_t *times, int64_t kind, int64_t *out);

/* injected.c: flows that a client gives to a simulator elsewhere, as the protocol has them. */

enum pages { PAGE_BITS = 10 }; /* of an id, that say where in its page it is (cosim/protocol/pages.py) */

struct given_flow {
  int64_t index, reaction;
  int64_t start; /* NONE: not told yet */
  int32_t handle;
  int32_t done;
};

/* By handle. `row` and `endpoint` say where its table's rows and its endpoints begin. */
struct open_group {
  int64_t key_high, key_low, coflow, coflow_bytes;
  double weight;
  int64_t row, endpoint, flows;
  int64_t left; /* flows to complete; 0: it isn't open */
  int32_t job, channel, priority, pad;
};

struct given_row {
  int64_t size, delay, reaction;
  int32_t src, dst, channel, pad;
};

/* A flow on its way into a request. */
struct given_place {
  int64_t index, row, start, cause;
  int32_t handle, pad;
};

struct given_flows_state {
  uint64_t digest[2]; /* of what completed */
};

struct given_flows {
  struct given_flows_state state;
  COLUMN(struct given_flow, flows); /* in pages: `place` says where, `left` how many of each are not done */
  COLUMN(int64_t, place);
  COLUMN(int64_t, left);
  COLUMN(struct open_group, groups);
  COLUMN(struct given_row, rows);
  COLUMN(int32_t, endpoints);
  GROWN(struct given_place, order);
  GROWN(int32_t, ended); /* groups, by the completions that were told last */
  int64_t pages_done; /* by these: no row of them is left */
};

/* A flow with all that a message says of it: cosim/protocol/flat_flows.py. */
struct flat_flow {
  int64_t key_high, key_low, size_bytes, start_ps, cause_ps, coflow, coflow_bytes, reaction_delay_ps, delay_ps;
  double weight;
  int32_t src, dst, channel, priority, job, pad;
};

/* What an advance brings. Of what is not flows, the fields as they are on the wire. */
struct advance_request {
  GROWN(struct flat_flow, flows);
  COLUMN(int64_t, dependency_ptr); /* empty: nothing waits */
  COLUMN(int64_t, dependency_id);
  COLUMN(int8_t, dependency_kind);
  COLUMN(int8_t, paths);
  COLUMN(int8_t, starts);
  COLUMN(int8_t, changes);
  GROWN(int8_t, bytes);
  int64_t first_id, count;
};

/* What is read of an answer; those of its numbers that aren't there are 0. */
struct advance_answer_state {
  int64_t sequence, more, granted, credit;
  uint64_t digest[2];
  int64_t has_digest;
  int64_t count; /* completions, of all parts so far */
  int64_t is_uneven; /* columns of one of them differ in length */
  int64_t kept_begin, kept_end; /* of `kept` */
};

struct advance_answer {
  struct advance_answer_state state;
  GROWN(int64_t, id);
  GROWN(int64_t, start);
  GROWN(int64_t, time);
  GROWN(int64_t, cause);
  GROWN(int8_t, kept); /* the part last read, but for its digest and how long it took */
};

enum advance_reading { IS_ADVANCED, IS_NOT_ADVANCED, IS_BROKEN };

/* What is wrong with a completion that a simulator tells. */
enum untrue {
  NOT_OPEN,
  DONE_TWICE,
  OUT_OF_GRANT,
  OUT_OF_ORDER, /* it started before its time, or after its completion */
  BEFORE_BEGIN,
  CERTAIN_AFTER,
  PAST_REACTION,
  UNTRUES,
};

EXPORT int64_t give_flows(struct given_flows *given, struct advance_request *request, int64_t already, int64_t id,
                          int64_t count, const int32_t *handle, const int64_t *index, const int64_t *row,
                          const int64_t *start, const int64_t *cause);
EXPORT int64_t size_flows(const struct advance_request *request, int64_t low, int64_t high);
EXPORT int64_t write_advance(struct advance_request *request, int64_t low, int64_t high, int64_t more, int64_t horizon,
                             int64_t budget, int64_t oldest);
EXPORT int64_t read_answer(struct advance_answer *answer, const int8_t *bytes, int64_t length);
EXPORT int64_t complete_given(struct given_flows *given, int64_t known, int64_t since,
                              const struct advance_answer *answer, int32_t *handle, int64_t *columns);

/* flow_list.c: lines of six numbers. */

EXPORT int64_t read_flow_list(int64_t length, const int8_t *text, int64_t most_ranks, int64_t *src, int64_t *dst,
                              int64_t *size, int64_t *start);

/* bounds.c: how long a search's runs take at least. */

struct chart {
  COLUMN(int64_t, program); /* by row of a workload's table, as the next four */
  COLUMN(int64_t, stream);
  COLUMN(int64_t, dep_first);
  COLUMN(int64_t, dep);
  COLUMN(int64_t, meets); /* the SEND that a RECV meets, or NONE */
  COLUMN(int64_t, order); /* rows, each after what it waits for */
  int64_t num_programs, num_streams;
};

EXPORT int64_t order_rows(int64_t num_programs, const int64_t *first, const int64_t *meets, int64_t *order,
                          int8_t *placed, int64_t *at);
EXPORT void end_iteration(const struct chart *chart, const int64_t *takes_ps, const int64_t *arrives_ps, int64_t *free,
                          int64_t *start, int64_t *end, int64_t *ends);
EXPORT void end_flows(int64_t num_blocks, const int64_t *block_row, const int64_t *block_repeat, const int64_t *dep_ptr,
                      const int64_t *dep_distance, const int8_t *dep_kind, const int64_t *delay_ps,
                      const int64_t *takes_ps, int64_t *start, int64_t *end);

/* -- memory.c --------------------------------------------------------------------------------------------------- */

EXPORT int64_t abi(void);
EXPORT int64_t resize(int64_t column, int64_t item_size, int64_t length);
EXPORT void release_memory(int64_t data);

#endif
