// NSCC: Ultra Ethernet's sender-based control: marks and delay together say what to do.
//
// Delay is the round-trip time over the bare one. Of each acknowledgement: no mark and delay below the target, the window
// grows in proportion to how far (and fast where there is no delay at all for a whole window); no mark and more delay, by the
// same for everybody (fair increase); a mark and more delay, it is cut by gamma (average - target) / average, once a round
// trip, at most to max_md_jump of it; a mark and less delay, nothing. Increases come into force every adjust_bytes packets or round trip,
// which adds eta. Where delay passes qa_threshold targets, or something was lost, and less than a share of the largest window
// arrived in a round trip, the window becomes what arrived (QuickAdapt).
//
// Ultra Ethernet Specification 1.0, section 3.6.13; SMaRTT-REPS (Bonato et al. 2024, arXiv:2404.01630). Constants are those of
// a network of 100 Gb/s and 12 us, scaled to the path as there. Not modelled: trimmed packets, receivers' credit and
// penalties. Here a loss takes one packet off the window.

#include "control.h"
#include "state.h"

#include <algorithm>
#include <cmath>

namespace cosim {
namespace {

/// The network that the constants are for.
constexpr double kBdp = 150e3;
constexpr double kRtt = 12e6;
constexpr double kAt = 100e9;
/// A delay below this is none.
constexpr double kClear = 1e6;

class Nscc : public Control
{
  public:
    Nscc(const PathFacts& path, const Parameters& p)
        : Control(path),
          base_(static_cast<double>(path.base_rtt_ps)),
          target_(p.at("target_qdelay") * base_),
          most_(std::max(p.at("max_window") * path.Bdp(), 1.0 * path.mss_bytes)),
          gamma_(p.at("gamma")),
          max_md_jump_(p.at("max_md_jump")),
          adjust_bytes_(p.at("adjust_bytes") * path.mss_bytes),
          qa_threshold_(p.at("qa_threshold") * target_),
          qa_share_(p.at("qa_share"))
    {
        const double scale = path.Bdp() / kBdp;
        fair_ = p.at("fi") * path.mss_bytes * scale;
        fast_ = p.at("fast_increase") * scale;
        eta_ = p.at("eta") * path.mss_bytes * scale;
        alpha_ = p.at("alpha") * path.mss_bytes * scale * (target_ / kRtt) / target_;
        window = most_;
    }

    void OnAck(const Feedback& feedback) override
    {
        const auto bytes = static_cast<double>(feedback.acked_bytes);
        const int64_t now = feedback.now_ps;
        const double delay = std::max(static_cast<double>(feedback.rtt_ps) - base_, 0.0);
        ignored_ += bytes;
        received_ += bytes;
        achieved_ += bytes;
        average_ += std::min(static_cast<double>(now - delay_at_) / base_, 1.0) * (delay - average_);
        delay_at_ = now;
        if (QuickAdapt(feedback.marked, delay, static_cast<double>(feedback.next - feedback.sequence), now))
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
        if (Past(adjusted_at_, now) || received_ > adjust_bytes_)
        {
            Fulfil(now);
        }
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
        walk.Time(delay_at_, path.base_rtt_ps);
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
            Set(window * std::max(1 - gamma_ * (average_ - target_) / average_, max_md_jump_));
            cut_at_ = now;
        }
    }

    /// Whether the window was set to what arrived, or marks are of before that.
    bool QuickAdapt(bool marked, double delay, double in_flight, int64_t now)
    {
        bool handled = marked && ignored_ < to_ignore_;
        if (!handled && now >= qa_at_)
        {
            if (adapts_ && (lost_ || delay > qa_threshold_) && achieved_ < most_ * qa_share_)
            {
                Set(achieved_);
                to_ignore_ = in_flight;
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
    double max_md_jump_;
    double adjust_bytes_;
    double qa_threshold_;
    double qa_share_;
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
    int64_t delay_at_ = kNeverYet;
    int64_t adjusted_at_ = kNeverYet;
    int64_t cut_at_ = kNeverYet;
    int64_t qa_at_ = kNeverYet;
    bool adapts_ = false;
    bool is_fast_ = false;
    bool lost_ = false;
};

Marking
Marks(double rate_bps, uint32_t, const Parameters& p)
{
    return {p.at("k_min") * rate_bps / kAt, p.at("k_max") * rate_bps / kAt, 1};
}

const ControlEntry entry(
    "nscc",
    KindOf<Nscc>(
        "marks and delay together: Ultra Ethernet's",
        {
            {"target_qdelay", 1, 1e-3, 1e3, "delay aimed at, in bare round-trip times"},
            {"max_window", 1.5, 1e-2, 1e3, "first and largest window, in bandwidth-delay products"},
            {"fi", 5, 0, 1e6, "fair increase, packets"},
            {"fast_increase", 0.25, 0, 1e3, "bytes for each that is acknowledged where there is no delay"},
            {"alpha", 4, 0, 1e6, "proportional increase, packets"},
            {"eta", 0.15, 0, 1e6, "added each round trip, packets"},
            {"gamma", 0.8, 1e-9, 1, "how steeply the excess over the target cuts"},
            {"max_md_jump", 0.5, 1e-9, 1, "what a cut leaves, at least"},
            {"adjust_bytes", 8, 1, 1e6, "packets after which increases come into force"},
            {"qa_threshold", 4, 1e-3, 1e6, "delay that asks for QuickAdapt, in targets"},
            {"qa_share", 0.125, 1e-9, 1, "of the largest window: QuickAdapt where less arrived"},
            {"k_min", 30e3, 0, 1e12, "queue from which ports mark, at 100 Gb/s"},
            {"k_max", 120e3, 1, 1e12, "queue from which they mark all, at 100 Gb/s"},
        })
        .Marks(Marks));

} // namespace
} // namespace cosim
