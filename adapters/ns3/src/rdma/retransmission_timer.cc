#include "retransmission_timer.h"

#include <ns3/simulator.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cosim {
namespace {

constexpr uint32_t kMostDoublings = 10;

} // namespace

RetransmissionTimer::RetransmissionTimer(const RdmaSettings& settings,
                                         std::function<bool()> waits,
                                         std::function<void(int64_t now)> expired)
    : settings_(settings),
      waits_(std::move(waits)),
      expired_(std::move(expired))
{
}

void
RetransmissionTimer::Measure(int64_t rtt)
{
    const auto sample = static_cast<double>(rtt);
    if (srtt_ == 0)
    {
        srtt_ = sample;
        rttvar_ = sample / 2;
        return;
    }
    rttvar_ += (std::abs(sample - srtt_) - rttvar_) / 4;
    srtt_ += (sample - srtt_) / 8;
}

void
RetransmissionTimer::Restart(int64_t now)
{
    const double measured = settings_.Lossless() ? 0 : srtt_ + 4 * rttvar_;
    const double least = std::max(static_cast<double>(settings_.rto_ps), measured);
    deadline_ = now + (static_cast<int64_t>(least) << std::min(backoff_, kMostDoublings));
    Plan();
}

void
RetransmissionTimer::Plan()
{
    if (planned_ < 0 || planned_ > deadline_)
    {
        const int64_t at = planned_ = deadline_;
        const int64_t now = ns3::Simulator::Now().GetTimeStep();
        ns3::Simulator::Schedule(ns3::TimeStep(at - now), [this, at] { OnPlanned(at); });
    }
}

void
RetransmissionTimer::OnPlanned(int64_t at)
{
    // An event that an earlier one has made needless.
    if (planned_ != at)
    {
        return;
    }
    planned_ = -1;
    if (!waits_())
    {
        return;
    }
    if (at < deadline_)
    {
        Plan();
        return;
    }
    ++backoff_;
    expired_(at);
}

void
RetransmissionTimer::State(StateWalk& walk, bool measures)
{
    if (measures)
    {
        walk.Value(srtt_);
        walk.Value(rttvar_);
    }
    walk.Value(backoff_);
}

} // namespace cosim
