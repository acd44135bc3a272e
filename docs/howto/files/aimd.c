/* The control of my_control.py, with the same answers. */
#include "kernel.h"

EXPORT void aimd(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                 const double *parameters) {
  double packets = parameters[0], keep = parameters[1];
  for (int64_t i = 0; i < n; i++) {
    struct control_row *row = &rows[i];
    double *cut = &state[MOST_STATES * row->conn];
    if (row->first) { /* the connection begins */
      row->window = row->line * row->base_rtt / 8e12;
      *cut = 0;
      continue;
    }
    bool hit = (row->marked > 0 || row->lost > 0) && *cut == 0;
    double less = keep * row->window > row->mss ? keep * row->window : row->mss;
    row->window = hit ? less : row->window + packets * row->mss * row->limited;
    *cut = hit;
  }
}
