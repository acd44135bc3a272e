// Fixed windows: no control at all; links are shared as windows are, so as weights are.
//
// A queue pair keeps `bdp` bandwidth-delay products times its job's weight, sent evenly over a round trip. With exact
// weights, the unfair sharing of Rajasekaran et al., "Congestion Control in Machine Learning Clusters", HotNets 2022,
// doi:10.1145/3563766.3564115.

#include "control.h"
#include "state.h"

#include <algorithm>

namespace cosim {
namespace {

class Fixed : public Control
{
  public:
    Fixed(const PathFacts& path, const Parameters& parameters)
        : Control(path),
          bdp_(parameters.at("bdp"))
    {
        OnWeight();
    }

    void OnWeight() override
    {
        window = bdp_ * weight * path.Bdp();
        rate = std::min(bdp_ * weight, 1.0) * path.line_bps;
    }

    void State(StateWalk&) override
    {
    }

  private:
    double bdp_;
};

const ControlEntry entry(
    "fixed",
    KindOf<Fixed>(
        "a window of its own, whatever comes",
        {
            {"bdp", 1, 1e-6, 1e6, "window of weight 1, in bandwidth-delay products of its path"},
        })
        .Lossless());

} // namespace
} // namespace cosim
