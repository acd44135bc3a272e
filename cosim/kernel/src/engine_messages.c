/* Sends and receives: they meet by (sender, receiver, tag), in the order in which they are posted.
 *
 * A SEND's message leaves when the SEND starts, and ends it when it has arrived; a RECV ends at the arrival, or at once
 * if the message was there before it (ASTRA-sim's semantics). With rendezvous the RECV first sends REQUEST_BYTES to the
 * sender, and the message waits for it.
 */
#include "kernel.h"

/* Flow keys say what a flow is, not when it was made: digests and ties don't depend on how a run was cut. */
static inline int64_t key_high_of(int64_t job, int64_t iteration, int64_t op) {
  return job << 51 | iteration << 31 | op;
}

static inline int64_t key_low_of(int64_t rank, int64_t part) { return rank << 44 | part << 32; }

/* A rank's operation. */
static inline const struct operation *operation_of(const struct engine *engine, int64_t rank, int64_t op) {
  return &engine->ops[engine->programs[engine->ranks[rank].program].op0 + op];
}

/* The iteration that a rank's operation is of. */
static inline int32_t iteration_of(const struct engine *engine, int64_t rank, const struct operation *one) {
  return engine->slots[engine->ranks[rank].slot0 + one->slot].iteration;
}

static void dispatch_later(struct engine *engine, int64_t message, int32_t part, int64_t cause) {
  RESERVE(engine, dispatches, engine->state.num_dispatches + 1);
  engine->dispatches[engine->state.num_dispatches++] = (struct task){cause, (int32_t)message, part, 0, 0};
}

static int64_t new_message(struct engine *engine) {
  struct engine_state *state = &engine->state;
  int64_t found = state->free_message;
  if (found == NONE) {
    RESERVE(engine, messages, state->messages_used + 1);
    found = state->messages_used++;
  } else {
    state->free_message = engine->messages[found].next;
  }
  engine->messages[found] = (struct message){.send_rank = NONE, .recv_rank = NONE, .next = NONE};
  return found;
}

static void forget_message(struct engine *engine, int64_t message) {
  engine->messages[message].next = (int32_t)engine->state.free_message;
  engine->state.free_message = message;
}

/* The first message of a channel that lacks this end, taken out of it, or a new one. */
static int64_t match_message(struct engine *engine, int64_t channel_number, bool is_send) {
  struct message_channel *channel = &engine->channels[channel_number];
  /* What waits in a channel waits for the same end: were there a message that lacks the other one, this end would have
   * met it. So the first tells for all, and first come is first served. */
  int64_t first = channel->head;
  if (first != NONE) {
    const struct message *one = &engine->messages[first];
    if ((is_send ? one->send_rank : one->recv_rank) == NONE) {
      channel->head = one->next;
      return first;
    }
  }
  int64_t made = new_message(engine);
  if (channel->head == NONE)
    channel->head = (int32_t)made;
  else
    engine->messages[channel->tail].next = (int32_t)made;
  channel->tail = (int32_t)made;
  return made;
}

/* A SEND or RECV starts; DONE or WRONG_SIZE. */
static int64_t post(struct engine *engine, int64_t number, int64_t op, int64_t now) {
  const struct rank *rank = &engine->ranks[number];
  const struct operation *one = operation_of(engine, number, op);
  int64_t port = rank->port0 + one->ref;
  bool is_send = one->kind == OP_SEND, rendezvous = engine->jobs[rank->job].rendezvous != 0;
  int32_t iteration = iteration_of(engine, number, one);
  int64_t found = match_message(engine, engine->ports[port].channel, is_send);
  struct message *message = &engine->messages[found];
  /* Either may have the wrong size: it is known when both are there. The first may be over by now. */
  bool is_first = message->send_rank == NONE && message->recv_rank == NONE;
  if (is_first) message->size = one->size;
  if (is_send) {
    message->send_number = one->number;
    message->send_rank = (int32_t)number;
    message->send_op = (int32_t)op;
    message->send_iteration = iteration;
  } else {
    message->recv_number = one->number;
    message->recv_rank = (int32_t)number;
    message->recv_op = (int32_t)op;
    message->recv_iteration = iteration;
    message->port = (int32_t)port;
  }
  if (message->size != one->size) {
    engine->state.which = found;
    return WRONG_SIZE;
  }
  /* A message that waited for its request is certain since that came; any other since what let its SEND start. */
  if (is_send && !rendezvous) {
    dispatch_later(engine, found, MESSAGE_PART, rank->cause);
  } else if (is_send) {
    if (message->requested) dispatch_later(engine, found, MESSAGE_PART, now);
  } else {
    if (rendezvous) dispatch_later(engine, found, REQUEST_PART, rank->cause);
    if (message->arrived) { /* before it was asked for */
      end_now(engine, number, op, now, now);
      forget_message(engine, found);
    }
  }
  return DONE;
}

/* Open a message's flow, or its request's, and start it. */
static void send_out(struct engine *engine, int64_t found, int64_t part, int64_t now, int64_t cause) {
  const struct message *message = &engine->messages[found];
  bool is_message = part == MESSAGE_PART;
  int64_t number = is_message ? message->send_rank : message->recv_rank;
  int64_t iteration = is_message ? message->send_iteration : message->recv_iteration;
  const struct rank *rank = &engine->ranks[number];
  const struct operation *one = operation_of(engine, number, is_message ? message->send_op : message->recv_op);
  int64_t port = is_message ? rank->port0 + one->ref : message->port;
  int64_t handle = open_flows(engine, engine->ports[port].binding, key_high_of(rank->job, iteration, one->number),
                              key_low_of(rank->number, part), is_message ? OF_MESSAGE : OF_REQUEST, found, iteration);
  hand_over_start(engine, handle, 0, now, cause);
}

/* A message has arrived, or a request for one. */
static void reach(struct engine *engine, int32_t kind, int64_t found, int64_t now, int64_t cause) {
  struct message *message = &engine->messages[found];
  if (kind == OF_REQUEST) {
    message->requested = 1;
    if (message->send_rank != NONE) dispatch_later(engine, found, MESSAGE_PART, cause);
    return;
  }
  /* The SEND ends where its message is; a RECV that is not posted yet finds it here. */
  message->arrived = 1;
  end_now(engine, message->send_rank, message->send_op, now, cause);
  if (message->recv_rank == NONE) return;
  end_now(engine, message->recv_rank, message->recv_op, now, cause);
  forget_message(engine, found);
}
