/* A control that leaves a tenth of its window away when packets were marked, and else adds one. */
#include "kernel.h"

EXPORT void halve(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                  const double *parameters) {
  for (int64_t i = 0; i < n; i++) {
    struct control_row *row = &rows[i];
    if (row->first)
      row->window = 10.0 * row->mss;
    else if (row->marked > 0.0)
      row->window = 0.9 * row->window > row->mss ? 0.9 * row->window : row->mss;
    else
      row->window += row->mss;
  }
}
