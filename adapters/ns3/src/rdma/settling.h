// Whether rates have settled, and how long they can be taken to stay.
#pragma once

#include "rdma_fabric.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cosim {

/// Looks at the queue pairs under way 4, 8, 16, 32 ... round trips after the last start or completion. Where each one's
/// goodput of the last two spans, from acknowledgement to acknowledgement, differs by no more than the tolerance, and what it has in flight
/// stays, rates have settled: they may be extended for as long as that difference (where the window or rate has moved at all, at
/// least a packet), if it was the beginning of a drift, takes to become the tolerance, and at most for `kLongest` times the time
/// that was simulated; all such drifts that a message may have had come to no more than the tolerance. A control that a timer
/// runs for has not settled.
class Settling
{
  public:
    Settling(RdmaFabric& fabric, double tolerance)
        : fabric_(fabric),
          tolerance_(tolerance)
    {
    }

    /// A queue pair whose bare round trip is so long may be under way.
    void Expect(int64_t rtt_ps)
    {
        rtt_ps_ = std::max(rtt_ps_, rtt_ps);
    }
    /// Something started or ended, at a time of ns-3's.
    void Restart(int64_t now);
    /// A queue pair's message ended.
    void Ended(uint32_t pair)
    {
        drifted_.erase(pair);
    }
    /// When to look next.
    int64_t NextLook() const
    {
        return next_;
    }
    /// That time has come; `pairs` may be under way.
    void Look(int64_t now, const std::vector<uint32_t>& pairs);

    /// For how long rates may be extended now; 0: they have not settled, or something is about to end.
    int64_t Longest() const;

    /// A queue pair's bytes in so much time, and how far they may be from true.
    struct Share
    {
        uint32_t pair;
        uint64_t bytes;
        double error;
    };
    /// Uses up that time.
    std::vector<Share> Take(int64_t time);

  private:
    struct Under
    {
        uint32_t pair;
        uint64_t delivered;
        int64_t delivered_at;
        uint64_t in_flight;
        std::pair<double, double> speed;
        double bytes_per_ps;
        /// Between the last two spans, as a share.
        double drift;
        /// What was taken and is less than a byte.
        double part;
    };

    bool Compare(Under& now, const Under& before) const;

    RdmaFabric& fabric_;
    double tolerance_;
    std::vector<Under> under_;
    /// How far a message's rate may have drifted in what was leapt over.
    std::unordered_map<uint32_t, double> drifted_;
    int64_t rtt_ps_ = 0;
    int64_t began_ = 0;
    int64_t looked_ = 0;
    int64_t span_ = 0;
    int64_t next_ = 0;
    uint32_t looks_ = 0;
    int64_t left_ = 0;
};

} // namespace cosim
