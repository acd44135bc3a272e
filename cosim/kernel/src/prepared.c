/* Runs that begin in one state and differ in a few numbers: each on a copy, none of them through Python. */
#include "kernel.h"

enum { TURNS_AT_ONCE = 1 << 22 };

static void copy_part(const struct copied_part *part) {
  const void *from = (const void *)(intptr_t)part->from;
  void *to = (void *)(intptr_t)part->to;
  if (part->kind == COPY_WORDS) {
    memcpy(to, from, (size_t)part->size);
    return;
  }
  const struct any_column *source = from;
  struct any_column *column = to;
  if (part->kind == COPY_ARRAY) {
    if (part->size > 0) memcpy(column->data, source->data, (size_t)part->size);
    return;
  }
  if (column->len < source->len) grow(column, (size_t)part->size, source->len);
  /* What a run before has grown is let go of: rows beyond these are zero when they come again. */
  column->len = source->len;
  if (source->len > 0) memcpy(column->data, source->data, (size_t)(source->len * part->size));
}

/* Have one engine go on up to `until`, whose operations nobody keeps. */
static int64_t run_up_to(const struct prepared *prepared, int64_t until) {
  struct engine *engine = prepared->engine;
  for (;;) {
    int64_t status = run_instants(engine, (network_loop)(intptr_t)prepared->loop,
                                  (struct core *)(intptr_t)prepared->core,
                                  (void *)(intptr_t)prepared->columns, until, TURNS_AT_ONCE);
    engine->state.num_log = 0;
    if (status != PAUSED) return status;
  }
}

/* Whether all that began has ended. */
static bool all_ended(const struct engine *engine, int64_t num_jobs) {
  for (int64_t j = 0; j < num_jobs; j++) {
    const struct job *job = &engine->jobs[j];
    for (int64_t k = 0; k < job->ranks; k++)
      if (engine->ranks[job->rank0 + k].oldest < job->iterations) return false;
  }
  for (int64_t k = 0; k < engine->channels_len; k++)
    if (engine->channels[k].head != NONE) return false;
  return true;
}

/* Write down when each iteration of each job ended on its last rank. */
static void write_ends(const struct engine *engine, int64_t num_jobs, int64_t *ends) {
  for (int64_t j = 0; j < num_jobs; j++) {
    const struct job *job = &engine->jobs[j];
    for (int64_t i = 0; i < job->iterations; i++, ends++) {
      const int64_t *of_ranks = &engine->iteration_ends[job->end0 + i * job->ranks];
      *ends = 0;
      for (int64_t k = 0; k < job->ranks; k++) *ends = most(*ends, of_ranks[k]);
    }
  }
}

/* One run: jobs begin at their starts, those of one time together, by number. */
static int64_t run_one(const struct prepared *prepared, int64_t run) {
  struct engine *engine = prepared->engine;
  int64_t num_jobs = prepared->starts_cols, now = -1;
  const int64_t *starts = prepared->starts + run * num_jobs;
  for (;;) {
    int64_t next = NEVER;
    for (int64_t j = 0; j < num_jobs; j++)
      if (starts[j] > now) next = least(next, starts[j]);
    int64_t status = run_up_to(prepared, next - 1);
    if (status != DONE || next == NEVER) return status;
    now = next;
    for (int64_t j = 0; j < num_jobs; j++)
      if (starts[j] == now) begin_ranks(engine, engine->jobs[j].rank0, engine->jobs[j].ranks, now);
  }
}

/* Run `count` of the runs, from `first` on. */
int64_t run_prepared(struct prepared *prepared, int64_t first, int64_t count) {
  CATCH_OUT_OF_MEMORY;
  struct engine *engine = prepared->engine;
  int64_t num_jobs = prepared->starts_cols, num_places = prepared->places_len;
  for (int64_t run = first; run < first + count; run++) {
    for (int64_t k = 0; k < prepared->copied_len; k++) copy_part(&prepared->copied[k]);
    for (int64_t k = 0; k < num_places; k++) {
      const struct run_place *place = &prepared->places[k];
      const struct any_column *column = (const void *)(intptr_t)place->column;
      memcpy((char *)column->data + place->offset, &prepared->numbers[run * num_places + k], sizeof(int64_t));
    }
    struct run_outcome *outcome = &prepared->outcomes[run];
    int64_t status = run_one(prepared, run);
    if (status == DONE && !all_ended(engine, num_jobs)) status = UNFINISHED;
    const struct engine_state *state = &engine->state;
    *outcome = (struct run_outcome){status, state->last_end, state->messages, {0, 0}};
    for (int k = 0; k < 2; k++) outcome->digest[k] = state->digest[k] + state->op_digest[k];
    if (status == DONE) write_ends(engine, num_jobs, prepared->ends + run * prepared->ends_cols);
  }
  return DONE;
}
