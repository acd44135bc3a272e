// One session without its wire: flows in, completions out.
#pragma once

#include "clock.h"
#include "fabric.h"
#include "flows.h"
#include "mix.h"
#include "settings.h"

#include <atomic>
#include <map>
#include <memory>
#include <vector>

namespace cosim {

enum class StopReason
{
    kHorizon,
    kReaction,
    kBuffer,
    kBudget,
    kCancelled,
};

/// What one advance came to.
struct Advanced
{
    int64_t granted = 0;
    StopReason reason = StopReason::kHorizon;
    std::vector<Completion> completions;
};

/// The seam of cosim over ns-3.
///
/// An instant is rounds of (all of ns-3's events at t, then all starts at t in the order of their cause and key) until
/// neither is left. Flows released here and flows given from outside are started by the same code at the same point of the
/// same instant, so that both ways give the same ns-3 events in the same order.
class Network
{
  public:
    explicit Network(Settings settings);
    ~Network();

    Fabric& GetFabric()
    {
        return fabric_;
    }

    /// No flow of a later advance waits for one of a lower id.
    void Forget(uint64_t oldest)
    {
        flows_.Forget(oldest);
    }
    Flows& GetFlows()
    {
        return flows_;
    }

    const Settings& GetSettings() const
    {
        return settings_;
    }

    const Clock& GetClock() const
    {
        return clock_;
    }

    const Digest& GetDigest() const
    {
        return digest_;
    }

    int64_t Granted() const
    {
        return granted_;
    }

    uint64_t NumCompleted() const
    {
        return completed_;
    }

    /// The number of a job's coflow; the last size given for it counts.
    uint32_t CoflowOf(uint32_t job, uint64_t coflow, int64_t total_bytes);

    /// Takes the next flow. `start` is kUnknown where it is to come later. Throws SessionError (CAUSALITY).
    void Give(const FlowSpec& spec,
              const std::vector<std::pair<uint64_t, Wait>>& waits,
              int64_t start,
              int64_t cause);

    /// Starts a flow that was given without. Throws SessionError (CAUSALITY, INVALID_FLOWS).
    void GiveStart(uint64_t id, int64_t start, int64_t cause);

    /// Runs as the seam says. Throws SessionError (CAUSALITY).
    Advanced Advance(int64_t horizon, Clock::Wall::time_point deadline, const std::atomic<bool>* cancel);

  private:
    void CheckStart(uint64_t id, int64_t start) const;
    void StartAll();
    void Complete(uint64_t id, int64_t time);
    void Arrived(uint64_t id);

    Settings settings_;
    Clock clock_;
    Fabric fabric_;
    Flows flows_;
    Digest digest_;
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> coflow_numbers_;
    std::vector<std::unique_ptr<Coflow>> coflows_;
    std::vector<Start> starting_;
    std::vector<Completion> pending_;
    int64_t granted_ = 0;
    int64_t bound_ = kNever;
    bool full_ = false;
    uint64_t completed_ = 0;
};

} // namespace cosim
