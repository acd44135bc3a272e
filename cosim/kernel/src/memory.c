/* Columns that grow. Who runs out of memory leaves the kernel at once, to the call from Python. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "kernel.h"

_Static_assert(sizeof(void *) == sizeof(int64_t), "containers have addresses of 64 bits");

enum { CACHE_LINE = 64, HUGE_PAGE = 1 << 21 };

/* Columns grow to twice their length, so that growing takes a constant time a row. With GROW_TIGHTLY, for tests under a
 * sanitizer, they grow by what is asked for: each growth moves a column, and what lies beyond its end is not ours. */
#ifdef GROW_TIGHTLY
enum { GROWTH = 1, LEAST_ROWS = 1 };
#else
enum { GROWTH = 2, LEAST_ROWS = 16 };
#endif

/* Where to go when memory is short: the innermost call from Python on this thread. */
static _Thread_local jmp_buf *escape;

static jmp_buf *set_escape(jmp_buf *to) {
  jmp_buf *before = escape;
  escape = to;
  return before;
}

static void reset_escape(jmp_buf **before) { escape = *before; }

/* Stands first in an exported function that may grow something, which returns NO_MEMORY where that fails. */
#define CATCH_OUT_OF_MEMORY                                                           \
  jmp_buf here;                                                                       \
  __attribute__((cleanup(reset_escape), unused)) jmp_buf *before = set_escape(&here); \
  if (setjmp(here) != 0) return NO_MEMORY

/* A column and its room, whatever it holds. */
struct any_column {
  void *data;
  int64_t len;
};

/* What stands before a column's memory. */
struct block {
  void *begin; /* where the system's block begins */
  size_t mapped; /* how long it is, where it was mapped; 0: calloc's */
};

static struct block *block_of(void *data) { return (struct block *)(void *)((char *)data - CACHE_LINE); }

static void *after(void *begin, size_t mapped) {
  /* Columns begin with a cache line: then one access reads a record of 64 bytes. */
  char *data = (char *)begin + 2 * CACHE_LINE - (uintptr_t)begin % CACHE_LINE;
  *block_of(data) = (struct block){begin, mapped};
  return data;
}

#if defined(__linux__) && !defined(GROW_TIGHTLY)
/* A long column is mapped: the system moves it without a copy where it grows, and has large pages for it. */
static void *map(size_t size) {
  size_t whole = (size + 2 * CACHE_LINE + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  void *begin = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return NULL;
  madvise(begin, whole, MADV_HUGEPAGE);
  return after(begin, whole);
}

static void *remap(void *data, size_t size) {
  size_t whole = (size + 2 * CACHE_LINE + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  void *begin = mremap(block_of(data)->begin, block_of(data)->mapped, whole, MREMAP_MAYMOVE);
  if (begin == MAP_FAILED) return NULL;
  madvise(begin, whole, MADV_HUGEPAGE);
  return after(begin, whole);
}

static void unmap(const struct block *block) { munmap(block->begin, block->mapped); }
#else
static void *map(size_t size) {
  (void)size;
  return NULL;
}

static void *remap(void *data, size_t size) {
  (void)data;
  return map(size);
}

static void unmap(const struct block *block) { (void)block; }
#endif

/* Returns memory that is zero. What comes from the system is zero, and takes no room until it is used. */
static void *allocate(size_t size) {
  void *data = size >= HUGE_PAGE ? map(size) : NULL;
  if (data != NULL) return data;
  void *begin = calloc(1, size + 2 * CACHE_LINE);
  return begin == NULL ? NULL : after(begin, 0);
}

static void release(void *data) {
  if (data == NULL) return;
  struct block block = *block_of(data);
  if (block.mapped > 0)
    unmap(&block);
  else
    free(block.begin);
}

static bool resized(struct any_column *column, size_t item_size, int64_t len) {
  if (len < 0 || (size_t)len > SIZE_MAX / 2 / item_size) return false;
  size_t size = (size_t)len * item_size;
  bool is_moved = column->data != NULL && len > column->len && block_of(column->data)->mapped > 0;
  void *data = is_moved ? remap(column->data, size) : allocate(size);
  if (data == NULL) return false;
  size_t kept = (size_t)(len < column->len ? len : column->len) * item_size;
  if (!is_moved && kept > 0) memcpy(data, column->data, kept);
  if (!is_moved) release(column->data);
  column->data = data;
  column->len = len;
  return true;
}

static void grow(struct any_column *column, size_t item_size, int64_t need) {
  int64_t len = GROWTH * column->len;
  if (len < need) len = need;
  if (len < LEAST_ROWS) len = LEAST_ROWS;
  /* Twice as much may not be there where as much as is needed is. */
  if (resized(column, item_size, len) || resized(column, item_size, need)) return;
  if (escape != NULL) longjmp(*escape, 1);
  abort(); /* an exported function lacks CATCH_OUT_OF_MEMORY */
}

/* Have room for `need` rows of a GROWN column; new ones are zero. Pointers into it are stale afterwards. */
#define RESERVE(owner, name, need)                                                                      \
  do {                                                                                                  \
    if ((need) > (owner)->name##_len)                                                                   \
      grow((struct any_column *)(void *)&(owner)->name, sizeof *(owner)->name, (need));                 \
  } while (0)

/* Returns whether the column at this address now has exactly `length` rows. */
int64_t resize(int64_t column, int64_t item_size, int64_t length) {
  return resized((struct any_column *)(intptr_t)column, (size_t)item_size, length);
}

void release_memory(int64_t data) { release((void *)(intptr_t)data); }

int64_t abi(void) { return COSIM_ABI; }
