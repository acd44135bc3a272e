// Swift: the window follows the delay towards a target, which grows with hops and for small windows.
//
// target = base_target + hops per_hop + max(0, min(a / sqrt(w) + b, fs_range)), a and b such that the last term is fs_range at
// fs_min packets and 0 at fs_max. Below the target the window grows by `ai` packets a round trip, while it is what limits the
// sender; above it, at most once a round trip, it is multiplied by max(1 - beta (delay - target) / delay, 1 - max_mdf). A loss
// or a timeout cuts by max_mdf. Less than a packet: one every round trip over the window.
//
// G. Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020,
// doi:10.1145/3387514.3406591, algorithm 1; where it gives no number, htsim's. Not modelled: the host's own delay and window.

#include "control.h"
#include "state.h"

#include <algorithm>
#include <cmath>

namespace cosim {
namespace {

constexpr double kLeast = 1e-3;

double
Or(double value, double omitted)
{
    return value == kOmitted ? omitted : value;
}

class Swift : public Control
{
  public:
    Swift(const PathFacts& path, const Parameters& p)
        : Control(path),
          base_(p.at("base_target") + path.num_links * Or(p.at("per_hop"), p.at("base_target") / 6.55)),
          range_(Or(p.at("fs_range"), 5 * p.at("base_target"))),
          ai_(p.at("ai")),
          beta_(p.at("beta")),
          max_mdf_(p.at("max_mdf")),
          scale_(range_ / (1 / std::sqrt(p.at("fs_min")) - 1 / std::sqrt(p.at("fs_max")))),
          offset_(-scale_ / std::sqrt(p.at("fs_max"))),
          packets_(std::max(path.Bdp() / path.mss_bytes, 1.0))
    {
        Set(packets_);
    }

    void OnAck(const Feedback& feedback) override
    {
        rtt_ = feedback.rtt_ps;
        const auto delay = static_cast<double>(feedback.rtt_ps);
        const double flows = std::max(0.0, std::min(scale_ / std::sqrt(packets_) + offset_, range_));
        const double target = base_ + flows;
        if (delay <= target)
        {
            if (feedback.limited)
            {
                const double acked = static_cast<double>(feedback.acked_bytes) / path.mss_bytes;
                Set(packets_ + gain * ai_ * (packets_ >= 1 ? acked / packets_ : acked));
            }
        }
        else
        {
            Cut(std::max(1 - beta_ * (delay - target) / delay, 1 - max_mdf_), feedback.now_ps);
        }
    }

    void OnLoss(int64_t now) override
    {
        Cut(1 - max_mdf_, now);
    }

    void OnTimeout(int64_t now) override
    {
        Cut(1 - max_mdf_, now);
    }

    void State(StateWalk& walk) override
    {
        walk.Value(packets_);
        walk.Value(rtt_);
        walk.Time(cut_at_, rtt_);
    }

  private:
    void Cut(double by, int64_t now)
    {
        if (now - cut_at_ < rtt_)
        {
            return;
        }
        cut_at_ = now;
        Set(packets_ * by);
    }

    void Set(double packets)
    {
        packets_ = std::max(packets, kLeast);
        window = packets_ * path.mss_bytes;
    }

    double base_;
    double range_;
    double ai_;
    double beta_;
    double max_mdf_;
    double scale_;
    double offset_;
    double packets_;
    int64_t rtt_ = 0;
    int64_t cut_at_ = kNeverYet;
};

const ControlEntry entry(
    "swift",
    KindOf<Swift>(
        "the window follows the round-trip time towards a target",
        {
            {"base_target", 25e6, 1, 1e15, "round-trip time aimed at, before what is added, ps"},
            {"per_hop", kOmitted, 0, 1e15, "added for each link, ps; base_target / 6.55 where it is not given"},
            {"ai", 1, 1e-9, 1e6, "packets more in a round trip below the target"},
            {"beta", 0.8, 1e-9, 1e6, "how steeply the excess over the target cuts"},
            {"max_mdf", 0.5, 1e-9, 1, "the most that a cut takes"},
            {"fs_range", kOmitted, 0, 1e15, "the most that small windows add, ps; 5 base_target"},
            {"fs_min", 0.1, 1e-9, 1e6, "window that gets all of it, packets"},
            {"fs_max", 100, 1e-9, 1e9, "window that gets none of it, packets"},
        }));

} // namespace
} // namespace cosim
