// HPCC: the window follows the most loaded link of the path, as in-network telemetry reports it.
//
// With each acknowledgement, U is measured over the links (queue / (B T) + tx / B, T the bare round-trip time) and averaged
// over T; where U >= eta, or after max_stage rounds below it, W <- Wc eta / U + w_ai, else W <- Wc + w_ai, and Wc becomes W
// once a round trip. Packets leave at W / T.
//
// Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, doi:10.1145/3341302.3342085, algorithm 1, and its
// defaults. T is each path's own, not the network's longest. Only switches report: the own port is not on the wire yet.

#include "control.h"
#include "state.h"

#include <algorithm>

namespace cosim {
namespace {

class Hpcc : public Control
{
  public:
    Hpcc(const PathFacts& path, const Parameters& p)
        : Control(path),
          eta_(p.at("eta")),
          max_stage_(p.at("max_stage")),
          w_ai_(p.at("w_ai")),
          reference_(path.Bdp())
    {
        Set(reference_);
    }

    void OnAck(const Feedback& feedback) override
    {
        const bool round = feedback.sequence >= round_ends_;
        if (Measure(feedback.hops))
        {
            Set(Window(round));
        }
        last_ = feedback.hops;
        if (round)
        {
            round_ends_ = feedback.next;
        }
    }

    void State(StateWalk& walk) override
    {
        walk.Speed(reference_);
        walk.Value(load_);
        walk.Value(stage_);
        walk.Hops(last_);
    }

  private:
    /// Algorithm 1's MeasureInflight; false while there is nothing to compare with: at first, and after a change of path.
    bool Measure(const std::vector<HopReport>& hops)
    {
        const bool same = std::equal(hops.begin(), hops.end(), last_.begin(), last_.end(), [](const auto& a, const auto& b) {
            return a.link == b.link;
        });
        if (hops.empty() || !same)
        {
            return false;
        }
        const auto base = static_cast<double>(path.base_rtt_ps);
        double most = 0;
        double over = 0;
        for (size_t k = 0; k < hops.size(); ++k)
        {
            const auto elapsed = static_cast<double>(hops[k].time_ps - last_[k].time_ps);
            if (elapsed <= 0)
            {
                continue;
            }
            const double tx = static_cast<double>(hops[k].tx_bytes - last_[k].tx_bytes) * 8e12 / elapsed;
            const auto queue = static_cast<double>(std::min(hops[k].queue_bytes, last_[k].queue_bytes));
            const double load = queue * 8e12 / (hops[k].rate_bps * base) + tx / hops[k].rate_bps;
            if (load > most)
            {
                most = load;
                over = elapsed;
            }
        }
        const double part = std::min(over, base) / base;
        load_ = (1 - part) * load_ + part * most;
        return true;
    }

    /// ComputeWind.
    double Window(bool round)
    {
        double found = reference_ + gain * w_ai_;
        const bool follows = load_ >= eta_ || (stage_ >= max_stage_ && load_ > 0);
        if (follows)
        {
            found = reference_ * eta_ / load_ + gain * w_ai_;
        }
        found = std::clamp(found, w_ai_, std::max(path.Bdp(), w_ai_));
        if (round)
        {
            stage_ = follows ? 0 : stage_ + 1;
            reference_ = found;
        }
        return found;
    }

    void Set(double bytes)
    {
        window = bytes;
        rate = std::min(bytes * 8e12 / static_cast<double>(path.base_rtt_ps), path.line_bps);
    }

    double eta_;
    double max_stage_;
    double w_ai_;
    double reference_;
    double load_ = 1;
    double stage_ = 0;
    uint64_t round_ends_ = 0;
    std::vector<HopReport> last_;
};

const ControlEntry entry(
    "hpcc",
    KindOf<Hpcc>(
        "the window follows in-network telemetry of the most loaded link",
        {
            {"eta", 0.95, 1e-3, 1, "utilisation aimed at"},
            {"max_stage", 5, 0, 1e6, "additive rounds before the next multiplicative one"},
            {"w_ai", 80, 1e-3, 1e9, "additive increase, bytes"},
        })
        .Telemetry().Lossless());

} // namespace
} // namespace cosim
