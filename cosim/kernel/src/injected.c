/* Completions of flows that a client gave to a simulator elsewhere (cosim/protocol/injector.py). */
#include "kernel.h"

/* What is wrong with a completion; UNTRUES: nothing. */
static enum untrue judge(const struct given_flow *flow, int64_t before, int64_t granted, int64_t start, int64_t time,
                         int64_t cause) {
  if (flow->done) return DONE_TWICE;
  /* At the old grant itself is right: an instant may take several rounds. */
  if (time < before || time > granted) return OUT_OF_GRANT;
  if (start > time || (flow->start != NONE && flow->start > start)) return OUT_OF_ORDER;
  if (start < 0) return BEFORE_BEGIN;
  if (cause > time) return CERTAIN_AFTER;
  if (time + least(flow->reaction, NEVER - time) < granted) return PAST_REACTION;
  return UNTRUES;
}

/* Enter completions that were told with a grant after the one before; how many groups and pages ended, or where one is
 * wrong NONE - (UNTRUES * its number + what is). Flows are in pages: `place` says where, `left` how many of each are
 * not done. */
int64_t complete_given(struct given_flow *flows, int64_t given, const int64_t *place, int64_t *left,
                       struct open_group *groups, int64_t before, int64_t granted, int64_t count, const int64_t *ids,
                       const int64_t *start, const int64_t *time, const int64_t *cause, int32_t *handle,
                       int64_t *index, int64_t *key_high, int64_t *key_low) {
  int64_t ended = 0;
  for (int64_t k = 0; k < count; k++) {
    int64_t id = ids[k], page = id >> PAGE_BITS;
    if (id < 0 || id >= given || place[page] == NONE) return NONE - (UNTRUES * k + NOT_OPEN);
    struct given_flow *flow = &flows[place[page] + (id & ((1 << PAGE_BITS) - 1))];
    enum untrue found = judge(flow, before, granted, start[k], time[k], cause[k]);
    if (found != UNTRUES) return NONE - (UNTRUES * k + found);
    struct open_group *group = &groups[flow->handle];
    flow->done = 1;
    ended += (--left[page] == 0) + (--group->left == 0);
    handle[k] = flow->handle;
    index[k] = flow->index;
    key_high[k] = group->key_high;
    key_low[k] = group->key_low + flow->index;
  }
  return ended;
}
