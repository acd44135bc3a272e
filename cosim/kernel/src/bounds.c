/* How long a run takes at least, for searches (cosim/experiment/search/{path,collective_time}.py). */
#include "kernel.h"

/* Rows of programs such that each comes after its program's earlier ones and after the SEND it meets; how many.
 * `at`: each program's first row, which is used up. */
int64_t order_rows(int64_t num_programs, const int64_t *first, const int64_t *meets, int64_t *order, int8_t *placed,
                   int64_t *at) {
  int64_t count = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t one = 0; one < num_programs; one++) {
      int64_t row = at[one];
      for (; row < first[one + 1] && (meets[row] == NONE || placed[meets[row]]); row++) {
        order[count++] = row;
        placed[row] = moved = true;
      }
      at[one] = row;
    }
  }
  return count;
}

/* When each operation of an iteration starts and ends, after what it waits for and its stream's last; `ends`: when each
 * program does. `free`, [programs, streams + 1]: from when on each stream is; the last column is of what is on none. */
void end_iteration(const struct chart *chart, const int64_t *takes_ps, const int64_t *arrives_ps, int64_t *free,
                   int64_t *start, int64_t *end, int64_t *ends) {
  for (int64_t k = 0; k < chart->order_len; k++) {
    int64_t row = chart->order[k], program = chart->program[row], met = chart->meets[row];
    int64_t *stream = &free[program * (chart->num_streams + 1) + chart->stream[row]];
    int64_t begin = *stream;
    for (int64_t d = chart->dep_first[row]; d < chart->dep_first[row + 1]; d++)
      begin = most(begin, end[chart->dep[d]]);
    start[row] = begin;
    end[row] = begin + takes_ps[row];
    if (met != NONE) end[row] = most(end[row], start[met] + arrives_ps[met]);
    if (chart->stream[row] != chart->num_streams) *stream = end[row];
    ends[program] = most(ends[program], end[row]);
  }
}

/* When each flow of a template ends at the earliest: after those it depends on, its delay, and what it takes. */
void end_flows(int64_t num_blocks, const int64_t *block_row, const int64_t *block_repeat, const int64_t *dep_ptr,
               const int64_t *dep_distance, const int8_t *dep_kind, const int64_t *delay_ps, const int64_t *takes_ps,
               int64_t *start, int64_t *end) {
  int64_t flow = 0;
  for (int64_t block = 0; block < num_blocks; block++)
    for (int64_t k = 0; k < block_repeat[block]; k++)
      for (int64_t row = block_row[block]; row < block_row[block + 1]; row++, flow++) {
        int64_t begin = 0;
        for (int64_t d = dep_ptr[row]; d < dep_ptr[row + 1]; d++) {
          int64_t other = flow - dep_distance[d];
          begin = most(begin, dep_kind[d] == STARTED ? start[other] : end[other]);
        }
        start[flow] = begin + delay_ps[row];
        end[flow] = start[flow] + takes_ps[row];
      }
}
