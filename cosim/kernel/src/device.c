/* Loads and stores on GPUs with compute units, line by line: what the model is says cosim/network/device/__init__.py.
 *
 * A wavefront asks for `unroll` lines at once: a train, which is one event at each node that it comes to. A train passes
 * the stations of a GPU (unit, links of the mesh, channel, port) and the link behind them in one event, each first come,
 * first served: a station serves its lines one after the other, and the next one has the first of them as soon as it is
 * served. So of a train its head is known, and how far its lines are apart.
 */
#include "kernel.h"

enum { CHANNEL_OF_ROW = 2, FLAGS_OF_ROW = 3, ENDS = 4 };

#define TICK(time) ((time) << TICK_BITS)
#define MOST_TICKS ((int64_t)1 << 61)

/* -- events: a binary heap, by time and by the order in which they became certain ---------------------------------
 *
 * Of many events the heap has those that come soon, before `edge`. The others wait in buckets (Brown, "Calendar queues",
 * doi:10.1145/63039.63045), which are put into the heap one after the other. So the heap stays small, and its order holds.
 */

static inline bool event_before(const struct device_event *a, const struct device_event *b) {
  return (a->time < b->time) | ((a->time == b->time) & (a->order < b->order));
}

static void add_to_heap(struct device *device, struct device_event event) {
  struct device_shape *shape = &device->shape;
  RESERVE(device, heap, shape->heap_used + 1);
  struct device_event *heap = device->heap;
  int64_t at = shape->heap_used++;
  while (at > 0) {
    int64_t parent = (at - 1) >> 1;
    if (event_before(&heap[parent], &event)) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = event;
}

enum { FEW_EVENTS = 1024 };

static void push_train(struct core *core, struct device *device, int64_t time, int64_t at) {
  struct device_shape *shape = &device->shape;
  if (time >= MOST_TICKS) { /* as picoseconds it would be past what ticks count to */
    core->state.too_late = 1;
    return;
  }
  int64_t order = shape->serial++;
  if (shape->chained == 0) shape->edge = ((shape->now >> shape->bucket_bits) + 1) << shape->bucket_bits;
  if (time < shape->edge || (shape->chained == 0 && shape->heap_used < FEW_EVENTS)) {
    add_to_heap(device, (struct device_event){time, order, at});
    return;
  }
  struct device_train *train = &device->trains[at];
  int32_t *bucket = &device->buckets[(time >> shape->bucket_bits) & (DEVICE_BUCKETS - 1)];
  train->due = time;
  train->order = order;
  train->next = *bucket;
  *bucket = (int32_t)at;
  shape->chained++;
}

enum { NEAR_BUCKETS = 4 };

/* The first train of the bucket so many behind the edge. */
static inline int32_t first_soon(const struct device *device, int64_t behind) {
  const struct device_shape *shape = &device->shape;
  return device->buckets[((shape->edge >> shape->bucket_bits) + behind) & (DEVICE_BUCKETS - 1)];
}

/* The heap gets the trains of the bucket behind its edge. */
static int64_t move_edge(struct device *device) {
  struct device_shape *shape = &device->shape;
  int32_t *link = &device->buckets[(shape->edge >> shape->bucket_bits) & (DEVICE_BUCKETS - 1)];
  int64_t before = shape->chained;
  /* The trains of buckets to come are far apart in memory: have each two steps before it is looked at. */
  int32_t later = first_soon(device, 2 * NEAR_BUCKETS), soon = first_soon(device, NEAR_BUCKETS);
  if (later != NONE) __builtin_prefetch(&device->trains[later]);
  if (soon != NONE && device->trains[soon].next != NONE) __builtin_prefetch(&device->trains[device->trains[soon].next]);
  shape->edge += (int64_t)1 << shape->bucket_bits;
  while (*link != NONE) {
    struct device_train *train = &device->trains[*link];
    if (train->due >= shape->edge) { /* it comes around again before */
      link = &train->next;
      continue;
    }
    __builtin_prefetch(&device->works[train->work]);
    add_to_heap(device, (struct device_event){train->due, train->order, *link});
    *link = train->next;
    shape->chained--;
  }
  return before - shape->chained;
}

/* The edge goes to the first train in a bucket. */
static void leap_edge(struct device *device) {
  int64_t first = MOST_TICKS;
  for (int64_t k = 0; k < DEVICE_BUCKETS; k++)
    for (int32_t at = device->buckets[k]; at != NONE; at = device->trains[at].next)
      first = least(first, device->trains[at].due);
  device->shape.edge = first >> device->shape.bucket_bits << device->shape.bucket_bits;
}

/* The first event of all is in the heap, if there is one. */
static void fill_heap(struct device *device) {
  struct device_shape *shape = &device->shape;
  for (int64_t none = 0; shape->chained > 0 && (shape->heap_used == 0 || device->heap[0].time >= shape->edge);) {
    none = move_edge(device) > 0 ? 0 : none + 1;
    if (none < DEVICE_BUCKETS) continue;
    leap_edge(device);
    none = 0;
  }
}

static int64_t pop_train(struct device *device) {
  struct device_event *heap = device->heap;
  int64_t train = heap[0].train, count = --device->shape.heap_used, at = 0;
  struct device_event moved = heap[count];
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count) child += event_before(&heap[child + 1], &heap[child]);
    if (event_before(&moved, &heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
  fill_heap(device);
  return train;
}

static inline int64_t next_train_time(const struct device *device) {
  return device->shape.heap_used > 0 ? device->heap[0].time >> TICK_BITS : NEVER;
}

/* -- stations ----------------------------------------------------------------------------------------------------- */

/* A train is served by a station, from the time on that is returned. Requests and data share it in turn (fair: a request waits
 * for other requests, and for the line that is being sent), or first come, first served.
 *
 * Stations of a GPU are passed in the event that comes before all of them, so the head may be ahead of now. What it will
 * take there is put behind what is there now, not behind when it will come: who comes in between needn't wait for it. */
static inline int64_t be_served(struct device *device, struct device_station *station, struct device_train *train,
                                bool control) {
  int64_t each = control ? station->control : station->line, lines = train->lines, now = device->shape.now, start;
  if (control && device->shape.fair) {
    start = most(train->head, station->free_control);
    if (station->free > start) start = least(start + station->line, station->free);
    station->free_control = most(station->free_control, now) + lines * each;
  } else {
    start = most(train->head, station->free);
  }
  station->free = most(station->free, now) + lines * each;
  train->head = start + each;
  train->gap = most(train->gap, each);
  return start;
}

/* A train passes a station of a GPU. */
static inline void pass(struct device *device, int64_t gpu, struct device_station *station, struct device_train *train,
                        bool control, int64_t place) {
  int64_t head = train->head, cell = gpu * DEVICE_PLACES + place;
  device->waited[cell] += (be_served(device, station, train, control) - head) * train->lines;
  device->lines_at[cell] += train->lines;
}

static inline struct device_station *stations_of(const struct device *device, int64_t gpu) {
  return device->stations + gpu * device->shape.stations;
}

/* A train crosses the mesh of a GPU, from router to router. */
static void cross_mesh(struct device *device, int64_t gpu, struct device_train *train, bool control, int64_t from,
                       int64_t to) {
  const struct device_shape *shape = &device->shape;
  struct device_station *mesh = stations_of(device, gpu) + shape->units;
  int64_t pair = from * shape->routers + to;
  for (int64_t k = device->mesh_ptr[pair]; k < device->mesh_ptr[pair + 1]; k++) {
    pass(device, gpu, &mesh[device->mesh_link[k]], train, control, AT_ROUTER);
    train->head += shape->hop;
  }
}

/* Where things are: units go round the routers; channels and ports are spread over them. */
static inline int64_t router_of(const struct device_shape *shape, int64_t number, int64_t count) {
  return count >= shape->routers ? number % shape->routers : number * shape->routers / count;
}

static inline void pass_unit(struct device *device, int64_t unit, struct device_train *train, bool control) {
  int64_t units = device->shape.units;
  pass(device, unit / units, stations_of(device, unit / units) + unit % units, train, control, AT_UNIT);
}

static inline void pass_channel(struct device *device, int64_t gpu, struct device_train *train) {
  const struct device_shape *shape = &device->shape;
  pass(device, gpu, stations_of(device, gpu) + shape->units + shape->mesh + train->number % shape->channels, train, false,
       AT_CHANNEL);
}

static inline void pass_port(struct device *device, int64_t gpu, struct device_train *train, bool control, bool in) {
  const struct device_shape *shape = &device->shape;
  struct device_station *ports = stations_of(device, gpu) + shape->units + shape->mesh + shape->channels;
  pass(device, gpu, &ports[(in ? shape->ports : 0) + train->number % shape->ports], train, control, AT_PORT);
}

/* The router of a train's channel, port or unit. */
static inline int64_t channel_router(const struct device_shape *shape, const struct device_train *train) {
  return router_of(shape, train->number % shape->channels, shape->channels);
}

static inline int64_t port_router(const struct device_shape *shape, const struct device_train *train) {
  return router_of(shape, train->number % shape->ports, shape->ports);
}

static inline int64_t unit_router(const struct device_shape *shape, const struct device_work *work) {
  return router_of(shape, work->unit % shape->units, shape->units);
}

/* -- the way of a train ------------------------------------------------------------------------------------------- */

static inline bool is_get(const struct device_flow *flow) { return (flow->flags & DEVICE_GET) != 0; }

/* Whether what goes this way is data: a put's requests are, and so is what answers a get. */
static inline bool is_data(const struct device_flow *flow, bool back) { return is_get(flow) == back; }

/* Whether it is a request, an answer without data, or a flag. */
static inline bool goes_as_request(const struct device_flow *flow, bool back) {
  return !is_data(flow, back) || flow->size == 0;
}

/* A train goes over the link number `hop` of its way. */
static void cross_link(struct core *core, struct device *device, struct device_flow *flow, int64_t at, bool back) {
  struct device_train *train = &device->trains[at];
  int64_t path = back ? flow->back : flow->there;
  int64_t first = core->path_ptr[path], past = core->path_ptr[path + 1], hop = first + train->hop;
  int64_t number = core->path_link[hop];
  bool control = goes_as_request(flow, back);
  /* A switch adds up, or copies, what several rows say: the requester's own link carries it once. */
  bool paid = (flow->flags & DEVICE_MERGED) && (back ? hop + 1 == past : hop == first);
  struct device_station *link = &device->links[number];
  if (!paid) {
    int64_t head = train->head, start = be_served(device, link, train, control);
    device->link_waited[number] += (start - head) * train->lines;
    device->link_lines[number] += train->lines;
    int64_t busy = (control ? link->control : link->line) * train->lines;
    add_busy(core, number, start >> TICK_BITS, busy >> TICK_BITS);
    if (!control) core->link_bytes[number] += train->bytes;
  }
  train->head += device->link_latency[number];
  train->hop++;
  push_train(core, device, train->head, at);
}

static int64_t new_device_train(struct device *device) {
  struct device_shape *shape = &device->shape;
  int64_t at = shape->free_train;
  if (at != NONE) {
    shape->free_train = device->trains[at].next;
    return at;
  }
  RESERVE(device, trains, shape->trains_used + 1);
  return shape->trains_used++;
}

/* A wavefront of a workgroup asks for its next lines. */
static void ask(struct core *core, struct device *device, int64_t work_at) {
  const struct device_shape *shape = &device->shape;
  int64_t at = new_device_train(device);
  struct device_work *work = &device->works[work_at];
  struct device_flow *flow = &device->flows[work->flow];
  struct device_train *train = &device->trains[at];
  int64_t before = work->next * shape->unroll, lines = least(shape->unroll, flow->lines - before);
  int64_t bytes = least(lines * shape->line, flow->size - before * shape->line);
  *train = (struct device_train){shape->now, 0, (int32_t)work_at, (int32_t)lines, (int32_t)bytes, (int32_t)work->next,
                                 GOES_THERE, 0, NONE, 0, 0, 0};
  if (flow->flags >= DEVICE_BLOCK) train->number = (int32_t)((work->next + work->unit) & INT32_MAX);
  work->next += work->step;
  work->out += lines;
  flow->asked = shape->now;
  bool control = goes_as_request(flow, false);
  if (!(flow->flags & DEVICE_MERGED)) {
    device->units[work->unit].out[is_get(flow)] += lines;
    device->in_flight[flow->from] += bytes;
    device->most_in_flight[flow->from] = most(device->most_in_flight[flow->from], device->in_flight[flow->from]);
    int64_t from = unit_router(shape, work);
    pass_unit(device, work->unit, train, control);
    if (!control) { /* what is stored is loaded before */
      pass_channel(device, flow->from, train);
      cross_mesh(device, flow->from, train, false, channel_router(shape, train), from);
    }
    cross_mesh(device, flow->from, train, control, from, port_router(shape, train));
    pass_port(device, flow->from, train, control, false);
  }
  push_train(core, device, train->head, at);
}

enum { MERGED_WORK = 2 };

/* The kind of a message's workgroups. */
static inline int64_t kind_of(const struct device_flow *flow) {
  return flow->flags & DEVICE_MERGED ? MERGED_WORK : is_get(flow);
}

/* Whether a unit has no room for another train of a kind; merged lines are counted by the row that isn't merged. */
static inline bool is_full(const struct device_shape *shape, const struct device_unit *unit, int64_t kind) {
  return kind != MERGED_WORK && unit->out[kind] > 0 && unit->out[kind] + shape->unroll > shape->outstanding;
}

/* Whether none of a unit's workgroups may ask. */
static inline bool waits_for_room(const struct device_shape *shape, const struct device_unit *unit) {
  return (unit->works[0] == 0 || is_full(shape, unit, 0)) && (unit->works[1] == 0 || is_full(shape, unit, 1)) &&
         unit->works[MERGED_WORK] == 0;
}

/* A unit's workgroups ask as long as lines may be in flight: in turn (fair), or the first as long as it may. */
static void let_ask(struct core *core, struct device *device, int64_t unit_at) {
  const struct device_shape *shape = &device->shape;
  struct device_unit *unit = &device->units[unit_at];
  if (unit->wave != NONE) return; /* a computation has it */
  int64_t before = unit->last;
  for (int64_t tried = 0; tried < unit->works[0] + unit->works[1] + unit->works[MERGED_WORK];) {
    if (waits_for_room(shape, unit)) return;
    int64_t at = device->works[before].after;
    struct device_work *work = &device->works[at];
    const struct device_flow *flow = &device->flows[work->flow];
    int64_t lines = least(shape->unroll, flow->lines - work->next * shape->unroll);
    if (is_full(shape, unit, kind_of(flow)) || (work->out > 0 && work->out + lines > shape->window)) {
      before = at;
      tried++;
      continue;
    }
    ask(core, device, at);
    work = &device->works[at];
    flow = &device->flows[work->flow];
    tried = 0;
    if (work->next >= flow->trains) { /* it has asked for all */
      unit->works[kind_of(flow)]--;
      if (before == at) {
        unit->last = NONE;
        return;
      }
      device->works[before].after = work->after;
      if (unit->last == at) unit->last = (int32_t)before;
    } else if (shape->fair) {
      unit->last = (int32_t)at;
      before = at;
    }
  }
}

/* -- messages ------------------------------------------------------------------------------------------------------ */

static int64_t new_device_flow(struct device *device) {
  struct device_shape *shape = &device->shape;
  int64_t at = shape->free_flow;
  if (at != NONE) {
    shape->free_flow = device->flows[at].after;
    return at;
  }
  RESERVE(device, flows, shape->flows_used + 1);
  return shape->flows_used++;
}

static void free_device_flow(struct device *device, int64_t at) {
  device->flows[at].after = (int32_t)device->shape.free_flow;
  device->shape.free_flow = at;
}

static int64_t new_device_work(struct device *device) {
  struct device_shape *shape = &device->shape;
  int64_t at = shape->free_work;
  if (at != NONE) {
    shape->free_work = device->works[at].after;
    return at;
  }
  RESERVE(device, works, shape->works_used + 1);
  return shape->works_used++;
}

/* A message is carried by so many workgroups of the GPU that asks, which are placed on units in turn. */
static void place_works(struct core *core, struct device *device, int64_t flow_at) {
  const struct device_shape *shape = &device->shape;
  int64_t from = device->flows[flow_at].from, block = device->flows[flow_at].flags / DEVICE_BLOCK;
  int64_t trains = device->flows[flow_at].trains;
  int64_t works = block > 0 ? 1 : least(shape->workgroups, trains);
  device->flows[flow_at].works = (int32_t)works;
  int64_t first = block > 0 ? block - 1 : device->placed[from];
  if (block == 0) device->placed[from] = (first + works) % shape->units;
  for (int64_t k = 0; k < works; k++) {
    int64_t at = new_device_work(device), unit_at = from * shape->units + (first + k) % shape->units;
    struct device_unit *unit = &device->units[unit_at];
    device->works[at] = (struct device_work){k, works, 0, (int32_t)flow_at, (int32_t)unit_at, (int32_t)at, 0};
    if (unit->last != NONE) {
      device->works[at].after = device->works[unit->last].after;
      device->works[unit->last].after = (int32_t)at;
    }
    unit->last = (int32_t)at;
    unit->works[kind_of(&device->flows[flow_at])]++;
    unit->held += block == 0;
  }
  for (int64_t k = 0; k < least(works, shape->units); k++)
    let_ask(core, device, from * shape->units + (first + k) % shape->units);
}

/* -- computations: workgroups that have a unit to themselves --------------------------------------------------------- */

/* Units that nobody holds take the next workgroups of their GPU's computations, the oldest first. */
static void let_compute(struct core *core, struct device *device, int64_t gpu) {
  const struct device_shape *shape = &device->shape;
  struct device_channel_state *queue = &device->computing[gpu];
  struct device_unit *units = device->units + gpu * shape->units;
  while (queue->first != NONE) {
    struct device_flow *flow = &device->flows[queue->first];
    int64_t at = NONE, wave = (flow->lines - flow->trains) / shape->units, waves = flow->lines / shape->units;
    for (int64_t k = 0; k < shape->units && flow->trains > 0; k++) {
      if (units[k].held > 0 || units[k].wave != NONE) continue;
      if (at == NONE) {
        at = new_device_train(device);
        device->trains[at] = (struct device_train){.work = queue->first, .phase = COMPUTES};
      }
      units[k].wave = (int32_t)at;
      device->trains[at].lines++;
      flow->trains--;
    }
    if (at == NONE) return;
    int64_t took = TICK(flow->size) / waves + (wave < TICK(flow->size) % waves);
    push_train(core, device, shape->now + took, at);
    if (flow->trains > 0) return;
    queue->first = flow->after;
  }
}

/* Workgroups of a computation have ended: kernels that wait for their units begin, and others take the rest. */
static void end_wave(struct core *core, struct device *device, int64_t at) {
  struct device_train train = device->trains[at];
  struct device_flow *flow = &device->flows[train.work];
  int64_t gpu = flow->from, first = gpu * device->shape.units;
  device->trains[at].next = (int32_t)device->shape.free_train;
  device->shape.free_train = at;
  flow->waiting -= train.lines;
  if (flow->waiting == 0) {
    int64_t end = most((device->shape.now + TICK(1) - 1) >> TICK_BITS, core->state.instant);
    complete(core, flow->handle, flow->rep, flow->row, flow->origin, end, flow->cause);
    device->computed[2 * gpu] += end - flow->origin;
    device->computed[2 * gpu + 1] += flow->size;
    free_device_flow(device, train.work);
  }
  for (int64_t unit = first; unit < first + device->shape.units; unit++) {
    if (device->units[unit].wave != at) continue;
    device->units[unit].wave = NONE;
    let_ask(core, device, unit);
  }
  let_compute(core, device, gpu);
}

/* Put a flow behind the others of its channel, or of its GPU's computations. */
static void queue_flow(struct device *device, struct device_channel_state *queue, int64_t at) {
  if (queue->first != NONE)
    device->flows[queue->last].after = (int32_t)at;
  else
    queue->first = (int32_t)at;
  queue->last = (int32_t)at;
}

/* A computation has whole waves of workgroups: one on each unit, if all are free. */
static void start_computation(struct core *core, struct device *device, const struct event *e, int64_t gpu, int64_t size) {
  const struct device_shape *shape = &device->shape;
  int64_t now = core->state.instant, waves = (TICK(size) + shape->workgroup - 1) / shape->workgroup;
  int64_t at = new_device_flow(device), groups = waves * shape->units;
  device->flows[at] = (struct device_flow){
      .origin = now, .cause = now, .lines = groups, .trains = groups, .waiting = groups, .size = size,
      .handle = e->handle, .rep = e->rep, .row = e->row, .after = NONE, .from = (int32_t)gpu};
  queue_flow(device, &device->computing[gpu], at);
  let_compute(core, device, gpu);
}

/* A kernel begins, or ends: its blocks are on units in turn, which take no workgroups of computations until it ends. */
static void hold_units(struct core *core, struct device *device, int64_t gpu, int32_t flags) {
  int64_t units = device->shape.units, blocks = flags / DEVICE_BLOCK;
  for (int64_t block = 0; block < blocks; block++)
    device->units[gpu * units + block % units].held += flags & DEVICE_BEGINS ? 1 : -1;
  if (flags & DEVICE_ENDS) let_compute(core, device, gpu);
}

/* A message starts. */
static void start_message(struct core *core, struct device *device, int64_t event_at) {
  const struct device_shape *shape = &device->shape;
  struct event e = core->calendar->events[event_at];
  free_event(core->calendar, event_at);
  core->state.num_started++;
  int64_t path = core->store->groups[e.handle].path + e.row, now = core->state.instant;
  const int32_t *ends = device->row_ends + ENDS * path;
  int64_t size = core->store->rows[e.row].size;
  int32_t flags = ends[FLAGS_OF_ROW];
  /* A mark, two participants on one endpoint, or what asks for data: here each line is asked for. */
  bool asks = flags >= DEVICE_BLOCK && (flags & DEVICE_GET) && size == 0;
  bool is_mark = core->path_ptr[path] == core->path_ptr[path + 1], computes = is_mark && flags == DEVICE_COMPUTES;
  if ((is_mark && (!computes || size == 0)) || asks) {
    if (is_mark && flags >= DEVICE_BLOCK && !computes) hold_units(core, device, ends[0], flags);
    complete(core, e.handle, e.rep, e.row, now, now, e.cause);
    return;
  }
  if (now >= MOST_TICKS >> TICK_BITS || (computes && size >= MOST_TICKS >> TICK_BITS)) {
    core->state.too_late = 1;
    return;
  }
  if (computes) {
    start_computation(core, device, &e, ends[0], size);
    return;
  }
  int64_t at = new_device_flow(device), lines = most((size + shape->line - 1) / shape->line, 1);
  if (size == 0) flags &= ~DEVICE_GET; /* a flag is stored, never asked for */
  bool get = flags & DEVICE_GET;
  int64_t back = device->path_back[path];
  device->flows[at] = (struct device_flow){
      .origin = now, .cause = now, .end = 0, .lines = lines,
      .trains = (lines + shape->unroll - 1) / shape->unroll, .waiting = lines, .size = size,
      .there = get ? back : path, .back = get ? path : back, .handle = e.handle, .rep = e.rep, .row = e.row,
      .channel = ends[CHANNEL_OF_ROW], .after = NONE, .flags = flags,
      .from = get ? ends[1] : ends[0], .to = get ? ends[0] : ends[1], .works = 0};
  queue_flow(device, &device->channels[ends[CHANNEL_OF_ROW]], at);
  place_works(core, device, at);
}

/* All of a message has landed: it completes, and so do those behind it in its channel that waited for it. */
static void land_message(struct core *core, struct device *device, int64_t at) {
  struct device_channel_state *channel = &device->channels[device->flows[at].channel];
  int64_t end = 0;
  while (channel->first != NONE && device->flows[channel->first].waiting == 0) {
    int64_t first = channel->first;
    struct device_flow *flow = &device->flows[first];
    end = most(end, flow->end);
    complete(core, flow->handle, flow->rep, flow->row, flow->origin,
             most((end + TICK(1) - 1) >> TICK_BITS, core->state.instant), flow->cause);
    channel->first = flow->after;
    if (channel->first != NONE) device->flows[channel->first].end = most(device->flows[channel->first].end, end);
    flow->channel = NONE; /* it is told; its answers may still be on their way */
    if (flow->works == 0) free_device_flow(device, first);
  }
}

static inline int64_t latency_of(const struct core *core, const struct device *device, int64_t path) {
  int64_t latency = 0;
  for (int64_t hop = core->path_ptr[path]; hop < core->path_ptr[path + 1]; hop++)
    latency += device->link_latency[core->path_link[hop]];
  return latency;
}

/* What a message's time went to, once all of it has landed. */
static void spend(const struct core *core, struct device *device, const struct device_flow *flow) {
  int64_t *spent = device->spent + flow->from * DEVICE_SPENT, origin = TICK(flow->origin);
  if (flow->size == 0) {
    spent[ON_FLAGS] += flow->end - origin;
    return;
  }
  int64_t way = device->shape.memory + latency_of(core, device, flow->there);
  if (is_get(flow)) way += latency_of(core, device, flow->back);
  spent[ON_ROOM] += flow->asked - origin;
  spent[ON_WAY] += way;
  spent[ON_RATES] += flow->end - flow->asked - way;
}

/* Lines have landed, the last of them when the train's tail has. */
static void land(struct core *core, struct device *device, struct device_flow *flow, const struct device_train *train) {
  flow->end = most(flow->end, train->head + (train->lines - 1) * train->gap);
  flow->waiting -= train->lines;
  if (flow->waiting > 0) return;
  spend(core, device, flow);
  land_message(core, device, flow - device->flows);
}

/* A train's answer is there: its wavefront may ask for more. */
static void come_back(struct core *core, struct device *device, int64_t at) {
  struct device_train train = device->trains[at];
  struct device_work *work = &device->works[train.work];
  struct device_flow *flow = &device->flows[work->flow];
  int64_t unit = work->unit;
  device->trains[at].next = (int32_t)device->shape.free_train;
  device->shape.free_train = at;
  work->out -= train.lines;
  if (!(flow->flags & DEVICE_MERGED)) {
    device->units[unit].out[is_get(flow)] -= train.lines;
    device->in_flight[flow->from] -= train.bytes;
  }
  bool lets_go = work->out == 0 && work->next >= flow->trains;
  if (lets_go) {
    device->units[unit].held -= flow->flags < DEVICE_BLOCK;
    work->after = (int32_t)device->shape.free_work;
    device->shape.free_work = train.work;
    if (--flow->works == 0 && flow->channel == NONE) free_device_flow(device, flow - device->flows);
  }
  let_ask(core, device, unit);
  if (lets_go) let_compute(core, device, unit / device->shape.units);
}

/* A train comes to the GPU that is asked: lines land there, or are read; then the answer leaves. */
static void serve(struct core *core, struct device *device, int64_t at) {
  const struct device_shape *shape = &device->shape;
  struct device_train *train = &device->trains[at];
  struct device_flow *flow = &device->flows[device->works[train->work].flow];
  bool stores = is_data(flow, false), control = goes_as_request(flow, false);
  pass_port(device, flow->to, train, control, true);
  cross_mesh(device, flow->to, train, control, port_router(shape, train), channel_router(shape, train));
  if (flow->size > 0)
    pass_channel(device, flow->to, train);
  else
    train->head += shape->flag;
  train->head += shape->memory;
  if (stores) land(core, device, flow, train);
  control = goes_as_request(flow, true);
  cross_mesh(device, flow->to, train, control, channel_router(shape, train), port_router(shape, train));
  pass_port(device, flow->to, train, control, false);
  train->phase = COMES_BACK;
  train->hop = 0;
  push_train(core, device, train->head, at);
}

/* A train is back at the GPU that asked: at its unit, once its tail is there. */
static void take_back(struct core *core, struct device *device, int64_t at) {
  const struct device_shape *shape = &device->shape;
  struct device_train *train = &device->trains[at];
  const struct device_work *work = &device->works[train->work];
  struct device_flow *flow = &device->flows[work->flow];
  bool control = goes_as_request(flow, true);
  if (!(flow->flags & DEVICE_MERGED)) {
    pass_port(device, flow->from, train, control, true);
    cross_mesh(device, flow->from, train, control, port_router(shape, train), unit_router(shape, work));
    if (!control) pass_unit(device, work->unit, train, control);
  }
  train->phase = IS_THROUGH;
  int64_t tail = train->head + (train->lines - 1) * train->gap;
  if (is_data(flow, true)) land(core, device, flow, train);
  push_train(core, device, tail, at);
}

/* A train comes to a node: to a switch, to the GPU that is asked, or back to the one that asks. */
static void reach_node(struct core *core, struct device *device, int64_t at) {
  struct device_train *train = &device->trains[at];
  if (train->phase == COMPUTES) {
    end_wave(core, device, at);
    return;
  }
  struct device_flow *flow = &device->flows[device->works[train->work].flow];
  bool back = train->phase == COMES_BACK;
  int64_t path = back ? flow->back : flow->there;
  if (train->phase == IS_THROUGH)
    come_back(core, device, at);
  else if (train->hop < core->path_ptr[path + 1] - core->path_ptr[path])
    cross_link(core, device, flow, at, back);
  else if (back)
    take_back(core, device, at);
  else
    serve(core, device, at);
}

/* -- the loop ------------------------------------------------------------------------------------------------------ */

static void open_device_instant(struct core *core, struct device *device) {
  struct core_state *state = &core->state;
  RESERVE(device, instant, core->calendar->state.num_events);
  int64_t found = 0;
  for (int64_t at = take_instant(core->calendar); at != NONE; at = core->calendar->events[at].next)
    device->instant[found++] = (int32_t)at;
  state->cursor = 0;
  state->instant_size = found;
  RESERVE(device, spare, found);
  RESERVE(device, other, found);
  sort_instant(core, device->instant, device->spare, device->other, found);
}

/* Run every instant before the horizon and before any completion's reaction could matter. In one instant, messages
 * start first; then the trains go on that follow from what was before. */
int64_t run_device(struct core *core, struct device *device, int64_t horizon) {
  struct core_state *state = &core->state;
  for (;;) {
    int64_t status = release_dependents(core);
    if (status != DONE) return status;
    if (state->cursor < state->instant_size) {
      state->num_events++;
      start_message(core, device, device->instant[state->cursor++]);
      continue;
    }
    int64_t start = next_event_time(core->calendar), train = next_train_time(device);
    state->next = least(start, train);
    if (state->next >= least(horizon, state->bound)) return DONE;
    if (state->num_pending >= state->report_at && state->next > state->instant) return DONE;
    state->instant = state->next;
    state->num_events++;
    if (start <= train) {
      device->shape.now = TICK(start);
      open_device_instant(core, device);
    } else {
      device->shape.now = device->heap[0].time;
      reach_node(core, device, pop_train(device));
    }
  }
}
