/* Following dependencies: times that become known go to the flows that wait for them.
 *
 * A flow that waits for one other starts when that is told. What is stored per flow that waits for several (how many
 * are left, the latest of them) lives in pages, one for each repetition of each group, made at its first touch and
 * given back when its last such flow is released: memory follows what is in flight. Tables without repeats get their
 * pages when opened; those of which no flow waits for several have none.
 *
 * Times flow ahead: as soon as a completion time is certain it is passed to the dependents, even if the clock has not
 * reached it. That is sound because it is only ever used in max(dependencies) + delay.
 */
#include "kernel.h"

/* What waits for a burst of completions is let go of in pieces: `released` stays small. */
enum { ENOUGH_RELEASED = 4096 };

static int size_class(int64_t rows) {
  int size = 0;
  while (((int64_t)1 << size) < rows) size++;
  return size;
}

/* Give a run of cells back, to the free list of its size. */
static void give_cells(struct store *store, int64_t first, int64_t rows) {
  int size = size_class(rows);
  store->cells[first].ready = store->unused[size];
  store->unused[size] = first;
}

/* Make the cells of a repetition (its number in the store). */
static void make_cells(struct store *store, int64_t page, int64_t rep) {
  const struct repetition *place = &store->reps[rep];
  int size = size_class(place->cell_rows);
  int64_t first = store->unused[size];
  if (first != NONE) {
    store->unused[size] = store->cells[first].ready;
  } else {
    first = store->state.cells_used;
    store->state.cells_used += (int64_t)1 << size;
    RESERVE(store, cells, store->state.cells_used);
  }
  int64_t left = 0;
  for (int64_t k = 0; k < place->cell_rows; k++) {
    int64_t waits = store->rows[place->cell_row + k].waits;
    store->cells[first + k] = (struct cell){0, waits};
    left += waits > 1;
  }
  store->pages[page] = (struct page){first, left};
}

/* Pages for a group that is opened: a run that another group of its table gave back, or new ones. */
static int64_t take_pages(struct store *store, struct table *table) {
  int64_t page = table->free;
  if (page != NONE) {
    table->free = store->pages[page].left;
    return page;
  }
  page = store->state.pages_used;
  RESERVE(store, pages, page + table->pages);
  store->state.pages_used += table->pages;
  return page;
}

static void open_known_group(struct store *store, int64_t handle, int64_t table, int64_t key_high, int64_t key_low,
                             int64_t path, int64_t traits, bool release) {
  RESERVE(store, groups, handle + 1);
  struct table *known = &store->tables[table];
  int64_t page = take_pages(store, known);
  store->groups[handle] = (struct group){
      .key_high = key_high,
      .key_low = key_low,
      .left = known->flows,
      .path = path,
      .page = page,
      .rep = known->rep,
      .reps = known->reps,
      .release = release,
      .table = (int32_t)table,
      .traits = (int32_t)traits,
  };
  /* Repetitions get cells when a dependency reaches them: a group of millions costs what is under way. */
  for (int64_t k = 0; k < known->pages; k++) {
    store->pages[page + k].cell = NONE;
    if (release && known->cells > 0 && store->reps[known->rep + k].cell_rows > 0)
      make_cells(store, page + k, known->rep + k);
  }
}

/* Make a group known. */
int64_t open_group(struct store *store, int64_t handle, int64_t table, int64_t key_high, int64_t key_low, int64_t path,
                   int64_t traits, int64_t release) {
  CATCH_OUT_OF_MEMORY;
  open_known_group(store, handle, table, key_high, key_low, path, traits, release != 0);
  return DONE;
}

/* Forget a group whose flows have all completed: give back what it still holds. */
void close_group(struct store *store, int64_t handle) {
  struct group *group = &store->groups[handle];
  struct table *known = &store->tables[group->table];
  for (int64_t k = 0; k < known->pages; k++) {
    struct page *page = &store->pages[group->page + k];
    if (page->cell == NONE) continue;
    give_cells(store, page->cell, store->reps[group->rep + k].cell_rows);
    page->cell = NONE;
  }
  if (known->pages > 0) {
    store->pages[group->page].left = known->free;
    known->free = group->page;
  }
  group->reps = 0;
}

/* The repetition (its number in the store) of a flow of an open group; NONE: it has no such flow. */
static int64_t find_repetition(const struct store *store, const struct group *group, int64_t flow) {
  int64_t low = group->rep, high = low + group->reps;
  if (low == high || flow < 0) return NONE;
  if (flow >= store->reps[high - 1].base + store->reps[high - 1].rows) return NONE;
  while (high - low > 1) {
    int64_t middle = (low + high) >> 1;
    if (store->reps[middle].base <= flow)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* Repetition and row of flows given by (handle, index); NONE, or the number of the first that is not there. */
int64_t find_flows(const struct store *store, int64_t count, const int32_t *handle, const int64_t *index, int32_t *rep,
                   int32_t *row) {
  for (int64_t k = 0; k < count; k++) {
    if (handle[k] < 0 || handle[k] >= store->groups_len) return k;
    int64_t found = find_repetition(store, &store->groups[handle[k]], index[k]);
    if (found == NONE) return k;
    rep[k] = (int32_t)found;
    row[k] = (int32_t)(store->reps[found].row + index[k] - store->reps[found].base);
  }
  return NONE;
}

/* Remember that a flow completed or started at `time`, for drain. */
static inline void note(struct store *store, int64_t handle, int64_t rep, int64_t row, int64_t time, int kind) {
  /* A stack, not recursion: a chain of marks may be as long as a job. */
  RESERVE(store, known, store->state.num_known + 1);
  store->known[store->state.num_known++] =
      (struct known){time, (int32_t)handle, (int32_t)rep, (int32_t)row, (int32_t)kind};
}

/* Whether anything waits for a flow's completion, or its start. */
static inline bool is_awaited(const struct row *row, int kind) {
  return kind == STARTED ? row->middle < row->last : row->first < row->middle;
}

/* The same for those among many flows that somebody waits for. */
int64_t note_flows(struct store *store, int64_t count, const int32_t *handle, const int32_t *rep, const int32_t *row,
                   const int64_t *time, int64_t kind) {
  CATCH_OUT_OF_MEMORY;
  for (int64_t k = 0; k < count; k++)
    if (is_awaited(&store->rows[row[k]], (int)kind)) note(store, handle[k], rep[k], row[k], time[k], (int)kind);
  return DONE;
}

/* A flow whose last dependency was met is released, and those that wait for its start are told. It goes into a
 * calendar, or, without one, where Python takes it from. */
static void let_start(struct store *store, struct calendar *calendar, int64_t handle, int64_t rep, int64_t row,
                      int64_t ready) {
  int64_t start = ready + store->rows[row].delay;
  if (calendar != NULL) {
    push_event(calendar, start,
               (struct event){ready, start, (int32_t)handle, (int32_t)rep, (int32_t)row, 0, NONE, 0});
  } else {
    RESERVE(store, released, store->state.num_released + 1);
    store->released[store->state.num_released++] =
        (struct released){start, ready, (int32_t)handle, (int32_t)rep, (int32_t)row, 0};
  }
  if (is_awaited(&store->rows[row], STARTED)) note(store, handle, rep, row, start, STARTED);
}

/* One dependency of a flow was met at `time`; the last one lets it start.
 *
 * Cells of a repetition are there from the first that is told until the last of its flows that need one is released:
 * what is under way, not the size of the group, is what takes memory.
 */
static void tell(struct store *store, struct calendar *calendar, int64_t handle, int64_t page_number, int64_t rep,
                 int64_t row, int64_t time) {
  if (store->rows[row].waits == 1) {
    let_start(store, calendar, handle, rep, row, time);
    return;
  }
  if (store->pages[page_number].cell == NONE) make_cells(store, page_number, rep);
  struct page *page = &store->pages[page_number];
  struct cell *cell = &store->cells[page->cell + row - store->reps[rep].cell_row];
  if (cell->ready < time) cell->ready = time;
  if (--cell->waits > 0) return;
  let_start(store, calendar, handle, rep, row, cell->ready);
  if (--page->left > 0) return;
  give_cells(store, page->cell, store->reps[rep].cell_rows);
  page->cell = NONE;
}

/* Pass what is known to dependents; flows whose last dependency that was are released. Whether that was all. */
static bool drain(struct store *store, struct calendar *calendar) {
  while (store->state.num_known > 0) {
    if (store->state.num_released >= ENOUGH_RELEASED) return false;
    struct known known = store->known[--store->state.num_known];
    const struct row *row = &store->rows[known.row];
    int64_t first = known.kind == COMPLETED ? row->first : row->middle;
    int64_t last = known.kind == COMPLETED ? row->middle : row->last;
    int64_t page0 = store->groups[known.handle].page, rep0 = store->groups[known.handle].rep;
    for (int64_t at = first; at < last; at++) {
      const struct successor *next = &store->successors[at];
      const struct reach *reach = &store->reaches[next->reach];
      int64_t rep = (int64_t)known.rep + reach->rep;
      /* A dependency may reach out of the repetitions of its block: there is nobody to tell. */
      if (reach->low <= rep - rep0 && rep - rep0 <= reach->high)
        tell(store, calendar, known.handle, page0 + rep - rep0, rep, next->row, known.time);
    }
  }
  return true;
}

/* The same for Python, which takes what was released, and calls again: 1 where there is more. */
int64_t drain_some(struct store *store) {
  CATCH_OUT_OF_MEMORY;
  return !drain(store, NULL);
}

/* Count completions down in `left`, by handle; the earliest reaction to one, at once where it isn't known. `known`: which
 * are of open groups. */
int64_t count_down(struct store *store, int64_t num_handles, int64_t *left, int64_t count, const int32_t *handle,
                   const int64_t *index, const int64_t *time, int8_t *known) {
  int64_t bound = NEVER;
  for (int64_t k = 0; k < count; k++) {
    int32_t rep, row;
    int64_t reaction = 0;
    if (handle[k] >= 0 && handle[k] < num_handles && left[handle[k]] > 0 &&
        find_flows(store, 1, &handle[k], &index[k], &rep, &row) == NONE) {
      known[k] = 1;
      left[handle[k]]--;
      reaction = store->rows[row].reaction;
    }
    /* Compared before it is added: a reaction of NEVER and a time would leave 64 bits. */
    if (reaction < bound - time[k]) bound = time[k] + reaction;
  }
  return bound;
}

/* Row and repetition of a flow that lies in a block, whose first repetition is given, or before it. */
static void place_flow(int64_t flow, int64_t block, int64_t first_rep, const int64_t *block_row,
                       const int64_t *block_repeat, const int64_t *block_base, int64_t *row, int64_t *rep) {
  while (block_base[block] > flow) {
    block--;
    first_rep -= block_repeat[block];
  }
  int64_t rows = block_row[block + 1] - block_row[block], offset = flow - block_base[block];
  *row = block_row[block] + offset % rows;
  *rep = first_rep + offset / rows;
}

enum { LATEST_REACHES = 8 };

/* The number of a reach: of one of the latest if it is the same, as nearly all are. */
static int64_t number_reach(struct store *store, struct reach reach) {
  int64_t last = store->state.num_reaches - 1;
  for (int64_t at = last; at >= 0 && at > last - LATEST_REACHES; at--) {
    const struct reach *one = &store->reaches[at];
    if (one->rep == reach.rep && one->low == reach.low && one->high == reach.high) return at;
  }
  RESERVE(store, reaches, store->state.num_reaches + 1);
  store->reaches[store->state.num_reaches] = reach;
  return store->state.num_reaches++;
}

/* Turn dependencies round. Without `fill`: count per row into ptr and mid; with it, write the successors. */
int64_t turn_round(struct store *store, int64_t row0, int64_t num_blocks, const int64_t *block_row,
                   const int64_t *block_repeat, const int64_t *block_base, const int64_t *dep_ptr,
                   const int64_t *dep_distance, const int8_t *dep_kind, int64_t *ptr, int64_t *mid, int64_t fill,
                   struct successor *successors) {
  CATCH_OUT_OF_MEMORY;
  int64_t total = 0, first_rep = 0;
  for (int64_t block = 0; block < num_blocks; first_rep += block_repeat[block], block++) {
    int64_t rows = block_row[block + 1] - block_row[block];
    for (int64_t row = block_row[block]; row < block_row[block + 1]; row++) {
      for (int64_t dep = dep_ptr[row]; dep < dep_ptr[row + 1]; dep++) {
        /* Repetitions whose dependency lies in an earlier block are taken one by one, the rest, if any, in one entry:
         * there, rows and repetitions differ by the same numbers. */
        int64_t back = row - block_row[block] - dep_distance[dep];
        int64_t crossing = back >= 0 ? 0 : (-back + rows - 1) / rows;
        int64_t singles = least(crossing, block_repeat[block]);
        int64_t entries = singles + (singles < block_repeat[block]);
        for (int64_t k = 0; k < entries; k++) {
          int64_t source_row, source_rep;
          place_flow(block_base[block] + k * rows + back, block, first_rep, block_row, block_repeat, block_base,
                     &source_row, &source_rep);
          total++;
          bool done = dep_kind[dep] == COMPLETED;
          if (!fill) {
            ptr[source_row]++;
            mid[source_row] += done;
            continue;
          }
          int64_t *places = done ? mid : ptr;
          struct reach reach = {
              .rep = (int32_t)(first_rep + k - source_rep),
              .low = (int32_t)(first_rep + k),
              .high = (int32_t)(k < singles ? first_rep + k : first_rep + block_repeat[block] - 1),
          };
          successors[places[source_row]++] = (struct successor){
              .row = (int32_t)(row0 + row),
              .reach = (int32_t)number_reach(store, reach),
          };
        }
      }
    }
  }
  return total;
}
