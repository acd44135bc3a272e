/* Lines of a flow list, where they are written as nearly all are: six numbers (cosim/formats/flow_list/plain.py). */
#include "kernel.h"

enum {
  WHOLE_WORDS = 5, /* of a line that are whole numbers; the last one is a time */
  DECIMALS = 12,   /* of a picosecond */
  MOST_DIGITS = 18 /* so many are an int64, whatever they are */
};

struct reader {
  const int8_t *text;
  int64_t at, end;
};

static inline bool has_more(const struct reader *r) { return r->at < r->end; }

static inline bool is_digit(int8_t c) { return c >= '0' && c <= '9'; }

static inline void skip_blanks(struct reader *r) {
  while (has_more(r) && (r->text[r->at] == ' ' || r->text[r->at] == '\t')) r->at++;
}

/* A whole number, or NONE. */
static inline int64_t read_whole(struct reader *r) {
  skip_blanks(r);
  int64_t begin = r->at;
  uint64_t value = 0;
  for (; has_more(r) && is_digit(r->text[r->at]); r->at++) value = 10 * value + (uint64_t)(r->text[r->at] - '0');
  int64_t digits = r->at - begin;
  bool is_word = !has_more(r) || r->text[r->at] <= ' ';
  return digits > 0 && digits <= MOST_DIGITS && is_word ? (int64_t)value : NONE;
}

/* A time in seconds, as picoseconds; NONE: there is none. Where it has an exponent, or more digits than are sure to be
 * an int64 of picoseconds, it is NONE - 1 minus where it stands. */
static inline int64_t read_time(struct reader *r) {
  skip_blanks(r);
  int64_t begin = r->at, value = 0, digits = 0, decimals = NONE;
  bool plain = true;
  for (; has_more(r) && r->text[r->at] > ' '; r->at++) {
    int8_t one = r->text[r->at];
    if (is_digit(one)) {
      if (++digits <= MOST_DIGITS) value = 10 * value + one - '0';
      decimals += decimals != NONE;
    } else if (one == '.' && decimals == NONE) {
      decimals = 0;
    } else if (one == '.' || one == 'e' || one == 'E' || one == '+' || one == '-') {
      plain = false;
    } else {
      return NONE;
    }
  }
  if (r->at == begin) return NONE;
  decimals = most(decimals, 0);
  bool is_sure = decimals <= DECIMALS && digits > 0 && digits <= decimals + MOST_DIGITS - DECIMALS;
  if (!plain || !is_sure) return NONE - 1 - begin;
  for (; decimals < DECIMALS; decimals++) value *= 10;
  return value <= NEVER ? value : NONE;
}

/* Whether a line ends here, which is passed. */
static inline bool end_line(struct reader *r) {
  skip_blanks(r);
  if (r->at + 1 < r->end && r->text[r->at] == '\r' && r->text[r->at + 1] == '\n') r->at++;
  bool ends = !has_more(r) || r->text[r->at] == '\n';
  r->at++;
  return ends;
}

/* Read lines: how many, or NONE: not all are plain, or can be meant. A start that isn't plain is NONE - 1 minus where
 * it stands. */
int64_t read_flow_list(int64_t length, const int8_t *text, int64_t most_ranks, int64_t *src, int64_t *dst,
                       int64_t *size, int64_t *start) {
  struct reader reader = {text, 0, length};
  int64_t count = 0;
  for (; has_more(&reader); count++) {
    int64_t words[WHOLE_WORDS];
    for (int k = 0; k < WHOLE_WORDS; k++)
      if ((words[k] = read_whole(&reader)) == NONE) return NONE;
    src[count] = words[0];
    dst[count] = words[1];
    size[count] = words[4];
    start[count] = read_time(&reader);
    if (start[count] == NONE || !end_line(&reader)) return NONE;
    if (src[count] == dst[count] || most(src[count], dst[count]) >= most_ranks || size[count] > NEVER) return NONE;
  }
  return count;
}
