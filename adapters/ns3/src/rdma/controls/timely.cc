// TIMELY: the rate follows the gradient of the round-trip time.
//
// Once a round trip, on what was sent after the update before: below t_low, or up to t_high while the smoothed gradient is not
// positive, the rate grows by delta, five times that after `rounds` such updates; above t_high it is cut by
// beta (1 - t_high / rtt), between them by beta times the gradient, in units of min_rtt.
//
// R. Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, doi:10.1145/2785956.2787510;
// defaults are theirs, for 10 Gb/s. One update a round trip, five-fold growth below t_low and a least rate: as in the simulator
// of HPCC's authors (doi:10.1145/3341302.3342085), delta and min_rate in proportion to the port's rate. `patched`: the form
// with a fixed point (Zhu et al., "ECN or Delay", CoNEXT 2016, doi:10.1145/2999572.2999593).

#include "control.h"
#include "state.h"

#include <algorithm>

namespace cosim {
namespace {

/// The line rate that the paper's numbers are for.
constexpr double kAt = 10e9;

class Timely : public Control
{
  public:
    Timely(const PathFacts& path, const Parameters& p)
        : Control(path),
          p_(p),
          before_(static_cast<double>(path.base_rtt_ps)),
          delta_(p.at("delta") * path.line_bps / kAt),
          least_(p.at("min_rate") * path.line_bps / kAt)
    {
    }

    void OnAck(const Feedback& feedback) override
    {
        if (feedback.sequence < round_ends_)
        {
            return;
        }
        round_ends_ = feedback.next;
        const auto rtt = static_cast<double>(feedback.rtt_ps);
        const double ewma = p_.at("ewma");
        gradient_ = (1 - ewma) * gradient_ + ewma * (rtt - before_);
        before_ = rtt;
        rate = std::clamp(Rate(rtt), least_, path.line_bps);
    }

    void State(StateWalk& walk) override
    {
        walk.Value(before_);
        walk.Value(gradient_);
        walk.Value(rounds_);
    }

  private:
    double Rate(double rtt)
    {
        const double low = p_.at("t_low");
        const double high = p_.at("t_high");
        const bool patched = p_.at("patched") != 0;
        if (rtt < low || (!patched && rtt <= high && gradient_ <= 0))
        {
            const double times = rounds_ >= p_.at("rounds") ? 5 : 1;
            ++rounds_;
            return rate + gain * times * delta_;
        }
        rounds_ = 0;
        if (rtt > high)
        {
            return rate * (1 - p_.at("beta") * (1 - high / rtt));
        }
        const double slope = gradient_ / p_.at("min_rtt");
        if (patched)
        {
            const double part = std::clamp(2 * slope + 0.5, 0.0, 1.0);
            return rate * (1 - p_.at("patched_beta") * part * (rtt - low) / low) + gain * (1 - part) * delta_;
        }
        return rate * std::max(1 - p_.at("beta") * slope, 0.0);
    }

    const Parameters& p_;
    double before_;
    double delta_;
    double least_;
    double gradient_ = 0;
    double rounds_ = 0;
    uint64_t round_ends_ = 0;
};

const ControlEntry entry(
    "timely",
    KindOf<Timely>(
        "the rate follows the gradient of the round-trip time",
        {
            {"ewma", 0.875, 1e-9, 1, "weight of the newest difference in the gradient"},
            {"t_low", 50e6, 1, 1e15, "round-trip time below which the rate just grows, ps"},
            {"t_high", 500e6, 1, 1e15, "round-trip time above which it is just cut, ps"},
            {"beta", 0.8, 1e-9, 1, "how steeply it cuts"},
            {"delta", 1e7, 1, 1e15, "additive increase at 10 Gb/s"},
            {"rounds", 5, 1, 1e6, "updates without a rise until the increase is five-fold"},
            {"min_rtt", 20e6, 1, 1e15, "unit of the gradient, ps"},
            {"min_rate", 1e8, 1, 1e15, "least rate, at 10 Gb/s"},
            {"patched", 0, 0, 1, "1: the form with a fixed point"},
            {"patched_beta", 0.008, 1e-9, 1, "its beta, from t_low to t_high"},
        })
        .Lossless());

} // namespace
} // namespace cosim
