// The seam of cosim without its wire: flows in, completions out. A simulator is put behind it by deriving from Seam.
#pragma once

#include "busy.h"
#include "flows.h"
#include "mix.h"

#include <atomic>
#include <map>
#include <string>
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

/// One measure of every directed link.
struct LinkMeasure
{
    const char* name;
    std::vector<double> values;
};

/// What stands at a directed link, and what it counted since the session's start.
struct LinkSample
{
    double queue_bytes = 0;
    double sent_bytes = 0;
    double marks = 0;
    double drops = 0;
    double pause_ps = 0;
};

/// A connection that has something to send.
struct RateSample
{
    uint32_t job = 0;
    uint32_t src = 0;
    uint32_t dst = 0;
    double rate_bps = 0;
    /// NaN: it has none.
    double window_bytes = 0;
    /// Of the last round trip's bytes.
    double marked = 0;
};

/// Flows, dependencies, grants and the digest are kept here; a simulator says how a path is made and runs.
class Seam
{
  public:
    explicit Seam(uint32_t num_endpoints)
        : num_endpoints_(num_endpoints)
    {
    }
    virtual ~Seam() = default;
    Seam(const Seam&) = delete;
    Seam& operator=(const Seam&) = delete;

    /// The links of a triple, from source to destination, round a set of dead links or (0) its own. Throws SessionError (INVALID_FLOWS) unless they lead there.
    virtual void GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set) = 0;
    /// From a time on a link has a rate, or (0) doesn't work. Throws SessionError (CAUSALITY, INVALID_FLOWS).
    void GiveLinkChange(int64_t time, uint32_t link, double rate_bps);
    /// From a time on routing knows these links, ascending, to be dead. Throws SessionError (CAUSALITY, INVALID_FLOWS).
    void GiveRouteChange(int64_t time, std::vector<uint32_t> dead);
    /// The number of a job's connection, for FlowSpec. Throws SessionError (NO_PATH).
    virtual uint32_t Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel) = 0;
    /// The number of a job's coflow, for FlowSpec; the last size given for it counts.
    virtual uint32_t CoflowOf(uint32_t, uint64_t, int64_t)
    {
        return 0;
    }
    /// What the session really runs with.
    virtual std::map<std::string, std::string> Told() const = 0;
    /// Events of the simulator since the session's start, and time on the wall in its event loop.
    virtual uint64_t Events() const = 0;
    virtual int64_t RunNs() const = 0;
    virtual std::vector<int64_t> LinkBytes() = 0;
    virtual std::vector<LinkMeasure> Measures() = 0;
    virtual const BusyMeter& Busy() const = 0;
    /// What is going on at the grant, where the adapter claims FEATURE_QUEUES and FEATURE_RATES. Throws SessionError (STATE)
    /// where this session can't say.
    virtual std::vector<LinkSample> Queues(const std::vector<uint32_t>& /*links*/)
    {
        return {};
    }
    virtual std::vector<RateSample> Rates()
    {
        return {};
    }
    /// Whether anything will still start or arrive if nothing more is given.
    virtual bool HasWork()
    {
        return false;
    }

    /// Takes the next flow. `start` is kUnknown where it is to come later. Throws SessionError (CAUSALITY).
    void Give(const FlowSpec& spec,
              const std::vector<std::pair<uint64_t, Wait>>& waits,
              int64_t start,
              int64_t cause);

    /// Starts a flow that was given without. Throws SessionError (CAUSALITY, INVALID_FLOWS).
    void GiveStart(uint64_t id, int64_t start, int64_t cause);

    /// Runs as the seam says. Throws SessionError (CAUSALITY).
    Advanced Advance(int64_t horizon, Wall::time_point deadline, const std::atomic<bool>* cancel);

    uint32_t NumEndpoints() const
    {
        return num_endpoints_;
    }

    Flows& GetFlows()
    {
        return flows_;
    }

    const Digest& GetDigest() const
    {
        return digest_;
    }

    uint64_t NumCompleted() const
    {
        return completed_;
    }

  protected:
    /// Runs to Limit(horizon), which Complete lowers, or less where Full() or interrupted; returns how far. All that completes
    /// up to there has been told to Complete, and no flow has started there.
    virtual int64_t Run(int64_t horizon, Wall::time_point deadline, const std::atomic<bool>* cancel) = 0;
    /// Whether the last run was ended by its deadline or cancelled.
    virtual bool Interrupted() const = 0;
    /// Where the adapter claims FEATURE_LIVE_CHANGES; `time` is not before the grant.
    virtual void ChangeLink(int64_t time, uint32_t link, double rate_bps);
    virtual void ChangeRoutes(int64_t time, std::vector<uint32_t> dead);

    /// A flow arrived; `cause` is when that became certain, `time` where the simulator doesn't know it before.
    void Complete(uint64_t id, int64_t time, int64_t cause);

    /// How far this run may go: the horizon, and the first time at which the client may react to a completion.
    int64_t Limit(int64_t horizon) const
    {
        return horizon < bound_ ? horizon : bound_;
    }

    /// Enough completions for one answer.
    bool Full() const;

    int64_t Granted() const
    {
        return granted_;
    }

  private:
    void CheckStart(uint64_t id, int64_t start) const;
    void CheckChange(int64_t time) const;

    uint32_t num_endpoints_;
    Flows flows_;
    Digest digest_;
    std::vector<Completion> pending_;
    int64_t granted_ = 0;
    int64_t bound_ = kNever;
    uint64_t completed_ = 0;
};

} // namespace cosim
