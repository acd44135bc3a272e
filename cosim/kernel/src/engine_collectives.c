/* Collectives: who meets whom, and what is written down when the last one leaves. */
#include "kernel.h"

/* -- plans by (group as its members name it, kind of collective, turn) ------------------------------------------------ */

static inline int64_t plan_key(int64_t comm, int64_t what, int64_t turn) {
  return comm << (WHAT_BITS + TURN_BITS) | what << TURN_BITS | turn;
}

/* Where a plan is in the hash table, or where it belongs. There is always an empty place. */
static int64_t plan_place(const struct engine *engine, int64_t key) {
  int64_t mask = engine->plan_places_len - 1, place = (int64_t)mix((uint64_t)key) & mask;
  while (engine->plan_places[place] != 0 && engine->plans[engine->plan_places[place] - 1].key != key)
    place = (place + 1) & mask;
  return place;
}

/* At least twice as many places as plans: every collective looks here, and runs of taken places grow fast. */
static void make_room_for_plan(struct engine *engine) {
  int64_t need = engine->state.num_plans + 1, size = 64;
  if (2 * need <= engine->plan_places_len) return;
  while (size < 4 * need) size *= 2;
  RESERVE(engine, plan_places, size);
  engine->plan_places_len = size;
  memset(engine->plan_places, 0, (size_t)size * sizeof *engine->plan_places);
  for (int64_t plan = 0; plan < engine->state.num_plans; plan++)
    engine->plan_places[plan_place(engine, engine->plans[plan].key)] = (int32_t)plan + 1;
}

/* Plans are added in the order of their numbers. */
int64_t add_plan(struct engine *engine, int64_t comm, int64_t what, int64_t turn, int64_t plan) {
  CATCH_OUT_OF_MEMORY;
  make_room_for_plan(engine);
  engine->plans[plan].key = plan_key(comm, what, turn);
  engine->plan_places[plan_place(engine, engine->plans[plan].key)] = (int32_t)plan + 1;
  engine->state.num_plans = plan + 1;
  return DONE;
}

/* -- rendezvous --------------------------------------------------------------------------------------------------------- */

static int64_t new_rendezvous(struct engine *engine) {
  struct engine_state *state = &engine->state;
  int64_t found = state->free_rendezvous;
  if (found == NONE) {
    RESERVE(engine, rendezvous, state->rendezvous_used + 1);
    return state->rendezvous_used++;
  }
  state->free_rendezvous = engine->rendezvous[found].next;
  return found;
}

/* Words for one more rendezvous of a plan, as they are before anyone comes: where they begin. */
static int64_t take_words(struct engine *engine, struct plan *plan) {
  int64_t first = plan->free;
  if (first != NONE) {
    plan->free = engine->words[first];
  } else {
    first = engine->state.words_used;
    RESERVE(engine, words, first + plan->words);
    engine->state.words_used += plan->words;
  }
  int32_t *words = engine->words + first;
  for (int64_t k = 0; k < plan->ranks; k++) {
    words[k] = NONE;
    words[plan->ranks + k] = plan->chunks;
  }
  int64_t handles = 2 * (int64_t)plan->ranks, others = handles + plan->instances;
  for (int64_t k = handles; k < others; k++) words[k] = NONE;
  memset(words + others, 0, (size_t)(plan->words - others) * sizeof *words);
  return first;
}

/* A group's first rank comes: its rendezvous, or NONE where its plan is not known. */
static int64_t come_first(struct engine *engine, int64_t number, const struct operation *one, int64_t now) {
  int64_t comm_number = engine->members[engine->ranks[number].ref0 + one->ref].comm;
  struct comm *comm = &engine->comms[comm_number];
  struct comm_group *group = &engine->groups[comm->group];
  int32_t iteration = iteration_of(engine, number, one);
  /* Turns go on within an iteration, and begin anew with the next: all iterations fare alike. */
  int64_t turn = group->iteration == iteration ? group->turn : 0;
  if (engine->plan_places_len == 0) return NONE;
  int64_t plan_number = (int64_t)engine->plan_places[plan_place(engine, plan_key(comm_number, one->what, turn))] - 1;
  if (plan_number == NONE) return NONE;
  struct plan *plan = &engine->plans[plan_number];
  group->turn = plan->turn;
  group->iteration = iteration;
  int64_t found = new_rendezvous(engine);
  engine->rendezvous[found] = (struct rendezvous){
      .words = take_words(engine, plan),
      .start = now,
      .ready = NONE,
      .serial = engine->state.serial++,
      .comm = (int32_t)comm_number,
      .occurrence = one->occurrence,
      .iteration = iteration,
      .plan = (int32_t)plan_number,
      /* That of the group's lowest rank, which all members agree on. */
      .number = one->occurrence < comm->ops ? engine->numbers[comm->op0 + one->occurrence] : one->number,
      .what = one->what,
      .rank = (int32_t)number,
      .op = one->number,
      .next = comm->open,
      .traits = is_driven(engine, number) ? one->last : iteration,
  };
  comm->open = (int32_t)found;
  if (engine->repeats != NULL) engine->repeats->jobs[engine->ranks[number].job].under_way++;
  return found;
}

/* A rank starts its part of a collective; DONE, or why it can't: then nothing was changed. */
static int64_t meet(struct engine *engine, int64_t number, int64_t op, int64_t now) {
  const struct operation *one = operation_of(engine, number, op);
  const struct member *member = &engine->members[engine->ranks[number].ref0 + one->ref];
  if (member->comm == NONE) return NEED_GROUP;
  const struct comm *comm = &engine->comms[member->comm];
  int32_t iteration = iteration_of(engine, number, one);
  int64_t found = comm->open;
  /* Few are open at once: as many as a group's collectives overlap. */
  for (; found != NONE; found = engine->rendezvous[found].next) {
    const struct rendezvous *open = &engine->rendezvous[found];
    if (open->occurrence == one->occurrence && open->iteration == iteration) break;
  }
  if (found == NONE) found = come_first(engine, number, one, now);
  if (found == NONE) return NEED_PLAN;
  struct rendezvous *met = &engine->rendezvous[found];
  /* The first to come says what is done; another size or root is a mistake of the program. */
  if (met->what != one->what) {
    engine->state.which = found;
    return WRONG_COLLECTIVE;
  }
  /* That it has come, and which operation ends when it leaves. */
  engine->words[met->words + member->position] = (int32_t)op;
  if (++met->arrived == comm->size) met->ready = now;
  if (is_driven(engine, number)) engine->tickets[one->first].messages = engine->plans[met->plan].messages;
  if (engine->plans[met->plan].carried)
    tell_carrier(engine, found, member->position);
  else
    bring_chunks(engine, found, member->position);
  return DONE;
}

/* The last rank is done: write the collective down, forget it. */
static void close_rendezvous(struct engine *engine, int64_t number, int64_t now) {
  struct engine_state *state = &engine->state;
  struct rendezvous *met = &engine->rendezvous[number];
  RESERVE(engine, collective_log, state->num_collective_log + 1);
  engine->collective_log[state->num_collective_log++] = (struct ended_collective){
      met->start, met->ready, now, met->comm, met->iteration, met->number, met->plan, met->rank, met->op};
  if (engine->repeats != NULL) engine->repeats->jobs[engine->ranks[met->rank].job].under_way--;
  int32_t *link = &engine->comms[met->comm].open;
  while (*link != number) link = &engine->rendezvous[*link].next;
  *link = met->next;
  /* All rendezvous of a plan have as many words: the next one takes these. */
  struct plan *plan = &engine->plans[met->plan];
  engine->words[met->words] = (int32_t)plan->free;
  plan->free = met->words;
  met->next = (int32_t)state->free_rendezvous;
  state->free_rendezvous = number;
}

/* A rank is done with a collective; DONE, or TOO_EARLY where it is done before it came. */
static int64_t leave_rendezvous(struct engine *engine, int64_t number, int64_t position, int64_t now, int64_t cause) {
  struct rendezvous *met = &engine->rendezvous[number];
  const struct comm *comm = &engine->comms[met->comm];
  int32_t *word = &engine->words[met->words + position];
  int64_t op = *word;
  /* Its last flow is there before the rank is: the algorithm doesn't wait for what the rank brings. */
  if (op == NONE) {
    engine->state.which = number;
    engine->state.place = position;
    return TOO_EARLY;
  }
  /* Nobody may leave twice, and the place still says which operation it was. */
  *word = (int32_t)(-2 - op);
  end_now(engine, engine->comm_ranks[comm->rank0 + position], op, now, cause);
  if (++met->left == comm->size) close_rendezvous(engine, number, now);
  return DONE;
}

/* A rank exits a part of a collective; DONE, or TOO_EARLY. */
static int64_t leave(struct engine *engine, int64_t handle, int64_t index, int64_t now, int64_t cause) {
  int64_t number = engine->handles[handle].owner;
  int64_t position = leave_part(engine, handle, index);
  return position == NONE ? DONE : leave_rendezvous(engine, number, position, now, cause);
}

/* -- what code carries --------------------------------------------------------------------------------------------------- */

/* Start a flow of a rendezvous that code carries, now; its ticket. */
int64_t carry_flow(struct engine *engine, int64_t now, int64_t met, int64_t binding, int64_t key_low) {
  CATCH_OUT_OF_MEMORY;
  const struct rendezvous *of = &engine->rendezvous[met];
  int64_t key_high = key_high_of(engine->ranks[of->rank].job, of->iteration, of->number);
  int64_t ticket = take_ticket(engine, 1);
  engine->state.now = now;
  int64_t handle = open_flows(engine, binding, key_high, key_low, OF_CARRIER, ticket, of->traits);
  hand_over_start(engine, handle, 0, now, now);
  return ticket;
}

/* A rank is done now with a rendezvous that code carries, in so many messages; DONE or TOO_EARLY. */
int64_t leave_carried(struct engine *engine, int64_t now, int64_t met, int64_t position, int64_t messages) {
  CATCH_OUT_OF_MEMORY;
  engine->state.now = now;
  const struct rendezvous *of = &engine->rendezvous[met];
  int64_t op = engine->words[of->words + position];
  int64_t number = engine->comm_ranks[engine->comms[of->comm].rank0 + position];
  if (op != NONE && is_driven(engine, number))
    engine->tickets[operation_of(engine, number, op)->first].messages = messages;
  return leave_rendezvous(engine, met, position, now, now);
}
