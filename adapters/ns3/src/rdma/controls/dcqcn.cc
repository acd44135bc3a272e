// DCQCN: rates cut by congestion notifications, and recovered by a timer and a byte counter.
//
// Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, doi:10.1145/2785956.2787484; defaults
// are theirs, for 40 Gb/s: increases and thresholds scale with the port's rate. r_hai is 10 r_ai, min_rate 10 Mb/s (QCN).
// `clamp_target` is equation 1: each notification sets the target to the rate; without it (QCN, NICs as shipped) only one
// after an increase does. A weight divides the timer. Under MLTCP all recovery is scaled.

#include "control.h"
#include "state.h"

#include <algorithm>
#include <cmath>

namespace cosim {
namespace {

/// The line rate that the paper's numbers are for.
constexpr double kAt = 40e9;

class Dcqcn : public Control
{
  public:
    Dcqcn(const PathFacts& path, const Parameters& p)
        : Control(path),
          p_(p),
          g_(p.at("g")),
          byte_counter_(p.at("byte_counter")),
          stages_(p.at("f")),
          alpha_timer_(p.at("alpha_timer")),
          additive_(p.at("r_ai") * path.line_bps / kAt),
          hyper_((p.at("r_hai") == kOmitted ? 10 * p.at("r_ai") : p.at("r_hai")) * path.line_bps / kAt),
          target_(path.line_bps)
    {
    }

    void OnNotification(int64_t now) override
    {
        ++notified_;
        Decay(now);
        if (p_.at("clamp_target") != 0 || times_ > 0 || counts_ > 0)
        {
            target_ = rate;
        }
        rate = std::max(rate * (1 - alpha_ / 2), p_.at("min_rate"));
        alpha_ += g_ * (1 - alpha_);
        alpha_at_ = now;
        times_ = counts_ = bytes_ = 0;
        timer_ = now + Timer();
    }

    void OnSent(int64_t now, uint32_t bytes) override
    {
        alpha_at_ = alpha_at_ == kNeverYet ? now : alpha_at_;
        if (timer_ == kNever)
        {
            return;
        }
        bytes_ += bytes;
        while (bytes_ >= byte_counter_ && timer_ != kNever)
        {
            bytes_ -= byte_counter_;
            ++counts_;
            Increase();
        }
    }

    int64_t NextTimer() const override
    {
        return timer_;
    }

    void OnTimer(int64_t now) override
    {
        timer_ = now + Timer();
        ++times_;
        Increase();
    }

    void State(StateWalk& walk) override
    {
        walk.Speed(target_);
        walk.Value(times_);
        walk.Value(counts_);
        walk.Value(bytes_);
        walk.Time(timer_);
        bool counts = alpha_at_ != kNeverYet;
        walk.Value(counts);
        walk.Lazy(true);
        walk.Value(alpha_);
        walk.Time(alpha_at_);
        walk.Lazy(false);
    }

    uint64_t Uses() const override
    {
        return notified_;
    }

  private:
    int64_t Timer() const
    {
        return std::max<int64_t>(std::llround(p_.at("timer") / weight), 1);
    }

    /// Alpha falls once an alpha timer without notification: reckoned when it is wanted.
    void Decay(int64_t now)
    {
        const double periods = std::floor(static_cast<double>(now - alpha_at_) / alpha_timer_);
        alpha_ *= std::pow(1 - g_, periods);
    }

    void Increase()
    {
        if (std::min(times_, counts_) > stages_)
        {
            target_ += hyper_;
        }
        else if (std::max(times_, counts_) > stages_)
        {
            target_ += additive_;
        }
        target_ = std::min(target_, path.line_bps);
        rate += gain * (target_ - rate) / 2;
        if (rate > path.line_bps * (1 - 1e-6))
        {
            // Recovered: nothing to count until the next notification.
            rate = path.line_bps;
            times_ = counts_ = bytes_ = 0;
            timer_ = kNever;
        }
    }

    const Parameters& p_;
    double g_;
    double byte_counter_;
    double stages_;
    double alpha_timer_;
    double additive_;
    double hyper_;
    double target_;
    double alpha_ = 1;
    int64_t alpha_at_ = kNeverYet;
    double times_ = 0;
    double counts_ = 0;
    double bytes_ = 0;
    int64_t timer_ = kNever;
    uint64_t notified_ = 0;
};

Marking
Marks(double rate_bps, uint32_t, const Parameters& p)
{
    const double scale = rate_bps / kAt;
    return {p.at("k_min") * scale, p.at("k_max") * scale, p.at("p_max")};
}

const ControlEntry entry(
    "dcqcn",
    KindOf<Dcqcn>(
        "rates cut by congestion notifications, recovered by timer and byte counter",
        {
            {"g", 1.0 / 256, 1e-9, 1, "weight of a notification in alpha"},
            {"timer", 55e6, 1e3, 1e15, "time between two increases, of weight 1, ps"},
            {"byte_counter", 10e6, 1, 1e15, "bytes between two increases"},
            {"f", 5, 1, 1e6, "stages of fast recovery"},
            {"r_ai", 4e7, 1, 1e15, "additive increase at 40 Gb/s"},
            {"r_hai", kOmitted, 1, 1e15, "hyper increase at 40 Gb/s; 10 r_ai where it is not given"},
            {"cnp_interval", 50e6, 1e3, 1e15, "least time between two notifications, ps"},
            {"alpha_timer", 55e6, 1e3, 1e15, "time without one after which alpha falls, ps"},
            {"clamp_target", 0, 0, 1, "1: each notification sets the target to the rate; 0: only after an increase"},
            {"min_rate", 1e7, 1, 1e15, "least rate after a cut"},
            {"k_min", 5e3, 0, 1e12, "queue from which ports mark, at 40 Gb/s"},
            {"k_max", 200e3, 1, 1e12, "queue from which they mark all, at 40 Gb/s"},
            {"p_max", 0.01, 1e-9, 1, "share marked just below k_max"},
        })
        .Marks(Marks).Notifies().Lossless());

} // namespace
} // namespace cosim
