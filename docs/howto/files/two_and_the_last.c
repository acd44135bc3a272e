/* The balancer of my_balancer.py, with the same answers. */
#include <math.h>

#include "kernel.h"

EXPORT void two_and_the_last(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                             const double *parameters) {
  double keep = parameters[0];
  for (int64_t i = 0; i < n; i++) {
    struct choice *row = &rows[i];
    struct seen_path *mine = &paths[row->begin];
    int64_t best = row->path < 0 ? 0 : (int64_t)row->path;
    double least = mine[best].flows - keep;
    double lots[2] = {row->chance, fmod(row->chance * 65536, 1)};
    for (int k = 0; k < 2; k++) {
      int64_t path = (int64_t)(lots[k] * row->paths);
      double flows = mine[path].flows;
      bool better = flows < least || (row->first == 1 && flows <= least + keep);
      if (mine[path].alive == 0 || !better) continue;
      best = path;
      least = flows;
    }
    row->path = (double)best;
  }
}
