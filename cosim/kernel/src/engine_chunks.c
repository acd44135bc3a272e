/* A collective's chunks, phases and queues on each of its ranks.
 *
 * A rank brings its chunks in order; each waits in the queue that its phase names. At most `active` phases run in a
 * queue of a rank at once. There is one order on all ranks: that in which each phase first came to the queue on any of
 * them. A phase that comes may begin while there is a place for it and for each one before it that has yet to come.
 * Where ranks are in step, or there are places enough, this is first come, first served, as in ASTRA-sim; elsewhere,
 * first come on each rank could have chunks wait for each other in a circle. A phase's flows exist from its first
 * rank's arrival to its last one's exit.
 *
 * Words of a rendezvous of n ranks, with q queues and p parts (chunk by chunk, phase by phase): n operations by
 * position (NONE: has not come; -2 - operation: is done), n counts of chunks left, the handle of each part's
 * sub-groups; and, where there is more than one part, what `struct queue_words` says.
 */
#include "kernel.h"

enum part_state { WAITING = 1, AHEAD = 2 }; /* waits in its queue; begun ahead of its turn */

/* Words about queues, as a rank at a position sees one of them. */
struct queue_words {
  int32_t *length; /* of each queue's order: q of them */
  int32_t *order; /* its places: p of each queue */
  int32_t *ordered; /* p flags of parts that are in one */
  int32_t *running; /* phases that run, by position and queue */
  int32_t *begun; /* and those begun in order */
  int32_t *states; /* of each part, by position */
};

static struct queue_words find_queue(const struct engine *engine, const struct rendezvous *met, int64_t queue,
                                     int64_t position) {
  const struct plan *plan = &engine->plans[met->plan];
  int64_t parts = plan->chunks * plan->phases, counts = (int64_t)plan->ranks * plan->queues;
  int32_t *words = engine->words + met->words + 2 * plan->ranks + plan->instances;
  int32_t *ordered = words + plan->queues + plan->queues * parts;
  return (struct queue_words){
      .length = words + queue,
      .order = words + plan->queues + queue * parts,
      .ordered = ordered,
      .running = ordered + parts + position * plan->queues + queue,
      .begun = ordered + parts + counts + position * plan->queues + queue,
      .states = ordered + parts + 2 * counts + position * parts,
  };
}

static void enter_later(struct engine *engine, int64_t number, int64_t part, int64_t position) {
  RESERVE(engine, enters, engine->state.num_enters + 1);
  engine->enters[engine->state.num_enters++] = (struct task){0, (int32_t)number, (int32_t)part, (int32_t)position, 0};
}

static void pump_later(struct engine *engine, int64_t number, int64_t queue, int64_t position) {
  RESERVE(engine, pumps, engine->state.num_pumps + 1);
  engine->pumps[engine->state.num_pumps++] = (struct task){0, (int32_t)number, (int32_t)queue, (int32_t)position, 0};
}

/* A rank's part comes to its queue, which is to be filled; the queue. */
static int64_t queue_part(struct engine *engine, int64_t number, int64_t part, int64_t position) {
  const struct rendezvous *met = &engine->rendezvous[number];
  int64_t queue = engine->parts[engine->plans[met->plan].part0 + part].queue;
  struct queue_words words = find_queue(engine, met, queue, position);
  words.states[part] = WAITING;
  if (words.ordered[part]) return queue;
  /* The first rank that brings it gives it its place in the order of all ranks. */
  words.ordered[part] = 1;
  words.order[(*words.length)++] = (int32_t)part;
  return queue;
}

/* A rank is here, with its chunks. */
static void bring_chunks(struct engine *engine, int64_t number, int64_t position) {
  const struct plan *plan = &engine->plans[engine->rendezvous[number].plan];
  /* A single part has nothing to wait behind: no queue is kept of it. */
  if (plan->chunks * plan->phases == 1) {
    enter_later(engine, number, 0, position);
    return;
  }
  for (int64_t chunk = 0; chunk < plan->chunks; chunk++)
    pump_later(engine, number, queue_part(engine, number, chunk * plan->phases, position), position);
}

/* Begin what has come to a queue of a rank, while places are left for all that come before it. */
static void pump(struct engine *engine, int64_t number, int64_t queue, int64_t position) {
  const struct rendezvous *met = &engine->rendezvous[number];
  int64_t active = engine->plans[met->plan].active, kept = 0;
  struct queue_words words = find_queue(engine, met, queue, position);
  for (int64_t at = *words.begun; at < *words.length && *words.running + kept < active; at++) {
    int64_t part = words.order[at];
    if (words.states[part] == WAITING) {
      words.states[part] = AHEAD;
      ++*words.running;
      enter_later(engine, number, part, position);
    } else if (words.states[part] != AHEAD) {
      kept++; /* a place for what has yet to come */
    }
  }
  /* What has begun up to a gap is out of the way for good: the next look begins behind it. */
  for (; *words.begun < *words.length && words.states[words.order[*words.begun]] == AHEAD; ++*words.begun)
    words.states[words.order[*words.begun]] = 0;
}

/* Open the flows of all of a part's sub-group. */
static int64_t open_part(struct engine *engine, int64_t number, int64_t part, const struct sub_group *sub,
                         int32_t sub_number) {
  const struct rendezvous *met = &engine->rendezvous[number];
  int64_t job = engine->ranks[met->rank].job;
  int64_t handle = open_flows(engine, sub->binding, key_high_of(job, met->iteration, met->number),
                              key_low_of(sub->lowest, part), OF_COLLECTIVE, number, met->traits);
  struct flow_group *opened = &engine->handles[handle];
  opened->part = (int32_t)part;
  opened->sub = sub_number;
  opened->exits = sub->size;
  return handle;
}

/* A rank begins a part: its arrival starts, in flows that the first one opens. */
static void enter_part(struct engine *engine, int64_t number, int64_t part, int64_t position, int64_t now) {
  const struct rendezvous *met = &engine->rendezvous[number];
  const struct plan *plan = &engine->plans[met->plan];
  const struct part *phase = &engine->parts[plan->part0 + part];
  const struct where *where = &engine->where[phase->where0 + position];
  int32_t *slot = &engine->words[met->words + 2 * plan->ranks + phase->instance0 + where->sub];
  if (*slot == NONE) *slot = (int32_t)open_part(engine, number, part, &engine->subs[phase->sub0 + where->sub], where->sub);
  hand_over_start(engine, *slot, where->place, now, now);
}

/* A rank exits a part: on to its next phase, and let the next chunk in. Its position if that was its last chunk, else
 * NONE. */
static int64_t leave_part(struct engine *engine, int64_t handle, int64_t index) {
  struct flow_group *flow = &engine->handles[handle];
  int64_t number = flow->owner, part = flow->part;
  const struct rendezvous *met = &engine->rendezvous[number];
  const struct plan *plan = &engine->plans[met->plan];
  const struct part *phase = &engine->parts[plan->part0 + part];
  int64_t position = engine->positions[engine->subs[phase->sub0 + flow->sub].position0 + index];
  /* The engine is told of all that it waits for: what is left of the group is the network's. */
  if (--flow->exits == 0) {
    engine->words[met->words + 2 * plan->ranks + phase->instance0 + flow->sub] = NONE;
    let_flows_go(engine, handle);
  }
  bool is_last = (part + 1) % plan->phases == 0;
  if (is_last && --engine->words[met->words + plan->ranks + position] == 0) return position;
  if (plan->chunks * plan->phases == 1) return NONE;
  --*find_queue(engine, met, phase->queue, position).running;
  if (is_last) {
    pump_later(engine, number, phase->queue, position);
    return NONE;
  }
  /* As ASTRA-sim: into the next queue first, then the freed place is filled. */
  int64_t next = queue_part(engine, number, part + 1, position);
  pump_later(engine, number, phase->queue, position);
  pump_later(engine, number, next, position);
  return NONE;
}
