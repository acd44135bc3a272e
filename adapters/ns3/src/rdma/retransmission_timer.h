// When what has not been acknowledged counts as lost.
#pragma once

#include "rdma_settings.h"
#include "state.h"

#include <cstdint>
#include <functional>

namespace cosim {

/// RFC 6298's timeout from round-trip times, at least `rto`, doubled while nothing comes back; with PFC `rto` alone, as
/// InfiniBand's knows nothing of round trips.
class RetransmissionTimer
{
  public:
    /// `waits`: whether anything is still to be acknowledged; `expired` is called at the timeout, if so.
    RetransmissionTimer(const RdmaSettings& settings, std::function<bool()> waits, std::function<void(int64_t now)> expired);

    /// A round trip took so long.
    void Measure(int64_t rtt);
    /// Something came back.
    void Progress()
    {
        backoff_ = 0;
    }
    /// Counts anew from now on.
    void Restart(int64_t now);

    /// The smoothed round-trip time; 0 before the first.
    double RoundTrip() const
    {
        return srtt_;
    }
    /// `measures`: whether anybody reads round trips.
    void State(StateWalk& walk, bool measures);

  private:
    void Plan();
    void OnPlanned(int64_t at);

    const RdmaSettings& settings_;
    std::function<bool()> waits_;
    std::function<void(int64_t)> expired_;
    double srtt_ = 0;
    double rttvar_ = 0;
    uint32_t backoff_ = 0;
    int64_t deadline_ = 0;
    /// Of the earliest event that will look at the deadline; -1: none.
    int64_t planned_ = -1;
};

} // namespace cosim
