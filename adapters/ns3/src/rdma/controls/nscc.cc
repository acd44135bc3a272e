// NSCC: Ultra Ethernet's sender-based control: marks and delay together say what to do.
//
// Delay is the round-trip time over the bare one. Of each acknowledgement: no mark and delay below the target, the window
// grows in proportion to how far (and fast where there is no delay at all for a whole window); no mark and more delay, by the
// same for everybody (fair increase); a mark and more delay, it is cut by gamma (average - target) / average, once a round
// trip, at most to half; a mark and less delay, nothing. Increases come into force every eight packets or round trip, which adds
// eta. A trimmed packet takes its bytes off the window, and counts as a round trip of delay. QuickAdapt: once in a round trip
// and the target, where something was trimmed or the delay passes four targets, and less than an eighth of the largest
// window arrived meanwhile, the window becomes what arrived.
//
// Ultra Ethernet Specification 1.0, section 3.6.13, with the constants and the order of its reference simulator
// (github.com/ultraethernet/uet-htsim, uec.cpp). Constants are those of a network of 100 Gb/s and 12 us, scaled to the path as
// there. Not modelled: receivers' credit and penalties, probes.

#include "control.h"
#include "state.h"

#include <algorithm>
#include <cmath>

namespace cosim {
namespace {

/// The network that the constants are for.
constexpr double kBdp = 150e3;
constexpr double kRtt = 12e6;
/// A delay below this is none.
constexpr double kClear = 1e6;
constexpr double kMostWindow = 1.5;
constexpr double kMostCut = 0.5;
constexpr double kAverageGain = 0.0125;
constexpr double kAdjustPackets = 8;
constexpr double kQuickTargets = 4;
constexpr double kQuickShare = 0.125;

class Nscc : public Control
{
  public:
    Nscc(const PathFacts& path, const Parameters& p)
        : Control(path),
          base_(static_cast<double>(path.base_rtt_ps)),
          target_(p.at("target") == kOmitted ? 0.75 * base_ : p.at("target")),
          most_(std::max(kMostWindow * path.Bdp(), 1.0 * path.mss_bytes)),
          gamma_(p.at("gamma"))
    {
        const double scale = path.Bdp() / kBdp;
        fair_ = p.at("fi") * path.mss_bytes * scale;
        fast_ = p.at("fi_scale") * scale;
        eta_ = p.at("eta") * path.mss_bytes * scale;
        alpha_ = p.at("alpha") * path.mss_bytes * scale / kRtt;
        window = std::max(p.at("initial_window") * path.Bdp(), 1.0 * path.mss_bytes);
    }

    void OnAck(const Feedback& feedback) override
    {
        const auto bytes = static_cast<double>(feedback.acked_bytes);
        const int64_t now = feedback.now_ps;
        const double delay = std::max(static_cast<double>(feedback.rtt_ps) - base_, 0.0);
        ignored_ += bytes;
        received_ += bytes;
        achieved_ += bytes;
        // A packet that nobody marked counts as a quarter of a round trip, however long it took.
        Average(!feedback.marked && delay > target_ ? 0.25 * base_ : delay);
        if (QuickAdapt(feedback.marked, delay > kQuickTargets * target_, feedback.next - feedback.sequence, now))
        {
            return;
        }
        if (!feedback.marked)
        {
            Increase(bytes, delay);
        }
        else if (delay >= target_)
        {
            Decrease(now);
        }
        if (Past(adjusted_at_, now) || received_ > kAdjustPackets * path.mss_bytes)
        {
            Fulfil(now);
        }
    }

    bool OnTrim(int64_t now, uint32_t bytes, uint64_t in_flight) override
    {
        ignored_ += bytes;
        Average(base_);
        lost_ = true;
        if (!QuickAdapt(true, true, in_flight, now))
        {
            Set(window - bytes);
        }
        return true;
    }

    void OnLoss(int64_t) override
    {
        lost_ = true;
        Set(window - path.mss_bytes);
    }

    void OnTimeout(int64_t now) override
    {
        OnLoss(now);
    }

    void State(StateWalk& walk) override
    {
        for (double* value : {&average_, &grown_, &received_, &achieved_, &ignored_, &to_ignore_, &clear_})
        {
            walk.Value(*value);
        }
        for (bool* value : {&adapts_, &is_fast_, &lost_})
        {
            walk.Value(*value);
        }
        walk.Time(adjusted_at_, path.base_rtt_ps);
        walk.Time(cut_at_, path.base_rtt_ps + 1);
        walk.Time(qa_at_, 0);
    }

  private:
    bool Past(int64_t at, int64_t now) const
    {
        return static_cast<double>(now - at) >= base_;
    }

    void Set(double bytes)
    {
        window = std::clamp(bytes, 1.0 * path.mss_bytes, most_);
    }

    void Average(double delay)
    {
        average_ += kAverageGain * (delay - average_);
    }

    void Increase(double bytes, double delay)
    {
        if (delay >= target_)
        {
            grown_ += fair_ * bytes;
            return;
        }
        clear_ = delay < kClear ? clear_ + bytes : 0;
        is_fast_ = delay < kClear && (is_fast_ || clear_ > window);
        if (is_fast_)
        {
            Set(window + gain * bytes * fast_);
        }
        else
        {
            grown_ += alpha_ * bytes * (target_ - delay);
        }
    }

    void Decrease(int64_t now)
    {
        is_fast_ = false;
        clear_ = 0;
        if (average_ > target_ && static_cast<double>(now - cut_at_) > base_)
        {
            Set(window * std::max(1 - gamma_ * (average_ - target_) / average_, kMostCut));
            cut_at_ = now;
        }
    }

    /// Whether the window was set to what arrived, or marks are of before that.
    bool QuickAdapt(bool marked, bool bad, uint64_t in_flight, int64_t now)
    {
        bool handled = marked && ignored_ < to_ignore_;
        if (!handled && now >= qa_at_)
        {
            if (adapts_ && (lost_ || bad) && achieved_ < most_ * kQuickShare)
            {
                Set(achieved_);
                to_ignore_ = static_cast<double>(in_flight);
                ignored_ = 0;
                lost_ = false;
                handled = true;
            }
            achieved_ = 0;
            qa_at_ = now + static_cast<int64_t>(std::ceil(base_ + target_));
            adapts_ = true;
        }
        if (handled)
        {
            grown_ = received_ = 0;
        }
        return handled;
    }

    void Fulfil(int64_t now)
    {
        double more = grown_ / window;
        if (Past(adjusted_at_, now))
        {
            adjusted_at_ = now;
            more += eta_;
        }
        Set(window + gain * more);
        grown_ = received_ = 0;
    }

    double base_;
    double target_;
    double most_;
    double gamma_;
    double fair_ = 0;
    double fast_ = 0;
    double eta_ = 0;
    double alpha_ = 0;
    double average_ = 0;
    double grown_ = 0;
    double received_ = 0;
    double achieved_ = 0;
    double ignored_ = 0;
    double to_ignore_ = 0;
    double clear_ = 0;
    int64_t adjusted_at_ = kNeverYet;
    int64_t cut_at_ = kNeverYet;
    int64_t qa_at_ = kNeverYet;
    bool adapts_ = false;
    bool is_fast_ = false;
    bool lost_ = false;
};

Marking
Marks(double rate_bps, uint32_t, const Parameters&)
{
    const double reference = rate_bps * kRtt / 8e12;
    return {0.2 * reference, 0.8 * reference, 1};
}

const ControlEntry entry("nscc",
                         KindOf<Nscc>("marks and delay together: Ultra Ethernet's",
                                      {
                                          {"target", kOmitted, 1, 1e15, "delay by queues aimed at, ps; omitted: 0.75 bare round trips"},
                                          {"gamma", 0.8, 1e-9, 1, "how steeply the excess over the target cuts"},
                                          {"alpha", 4, 1e-9, 1e6, "proportional increase, packets at the reference network"},
                                          {"fi", 5, 1e-9, 1e6, "fair increase, packets at the reference network"},
                                          {"fi_scale", 0.25, 1e-9, 1e3, "fast increase, of the bytes acknowledged"},
                                          {"eta", 0.15, 0, 1e6, "added each round trip, packets at the reference network"},
                                          {"initial_window", 1.5, 1e-9, 1e3, "first window, bandwidth-delay products"},
                                      })
                             .Marks(Marks)
                             .Trims());

} // namespace
} // namespace cosim
