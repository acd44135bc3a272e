/* Links that change, and routes: a network goes to the next change as to any other event. */
#include "kernel.h"

/* When the next change comes; NEVER where it matters to nobody, for there is no flow (`is_idle`). */
static inline int64_t next_change_time(const struct core *core, const struct change_list *list, bool is_idle) {
  if (list->state.next == list->changes_len) return NEVER;
  if (is_idle && core->calendar->state.num_instants == 0) return NEVER;
  return list->changes[list->state.next].time;
}

/* Whether nothing will ever come of the changes that are left; `otherwise`: when anything else comes. */
static inline bool is_in_vain(const struct change_list *list, int64_t otherwise) {
  return otherwise == NEVER && list->state.in_vain > MOST_IN_VAIN;
}

/* Go to the next change. */
static const struct change *begin_change(struct core *core, struct change_list *list) {
  struct change_state *state = &list->state;
  const struct change *one = &list->changes[state->next++];
  core->state.instant = one->time;
  state->in_vain = state->progress == core->state.num_events ? state->in_vain + 1 : 0;
  state->progress = core->state.num_events;
  return one;
}

/* A link's change was taken: DONE, the loop goes on; or MORE_CHANGES. */
static int64_t end_change(const struct change_list *list) {
  return list->state.next == list->changes_len && list->state.more ? MORE_CHANGES : DONE;
}

/* The path that is taken now where another one is. */
static inline int64_t path_now(const struct core *core, int64_t path) {
  return core->path_now_len > 0 ? core->path_now[path] : path;
}

/* Where the links of a row are now. */
static inline int64_t path_of(const struct core *core, int64_t handle, int64_t row) {
  return path_now(core, core->store->groups[handle].path + row);
}
