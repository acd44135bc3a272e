/* As many Gbit/s as its weight says. */
#include "kernel.h"

EXPORT void paced(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                  const double *parameters) {
  for (int64_t i = 0; i < n; i++) rows[i].rate = rows[i].weight * 1e9;
}
