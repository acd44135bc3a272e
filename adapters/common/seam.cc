#include "seam.h"

#include "error.h"

#include <algorithm>

namespace cosim {
namespace {

constexpr size_t kReportLimit = size_t{1} << 17;

} // namespace

void
Seam::CheckStart(uint64_t id, int64_t start) const
{
    if (start < granted_)
    {
        throw SessionError("CAUSALITY",
                           "flow " + std::to_string(id) + " starts at " + std::to_string(start) + " ps, but " +
                               std::to_string(granted_) + " ps had been granted",
                           {{"flow", std::to_string(id)}, {"given", std::to_string(start)}});
    }
}

void
Seam::CheckChange(int64_t time) const
{
    if (time < granted_)
    {
        throw SessionError("CAUSALITY",
                           "a change was given for " + std::to_string(time) + " ps, but " + std::to_string(granted_) +
                               " ps had been granted",
                           {{"given", std::to_string(time)}});
    }
}

void
Seam::GiveLinkChange(int64_t time, uint32_t link, double rate_bps)
{
    CheckChange(time);
    ChangeLink(time, link, rate_bps);
}

void
Seam::GiveRouteChange(int64_t time, std::vector<uint32_t> dead)
{
    CheckChange(time);
    ChangeRoutes(time, std::move(dead));
}

void
Seam::ChangeLink(int64_t /*time*/, uint32_t /*link*/, double /*rate_bps*/)
{
    throw SessionError("STATE", "links don't change while it runs");
}

void
Seam::ChangeRoutes(int64_t /*time*/, std::vector<uint32_t> /*dead*/)
{
    throw SessionError("STATE", "routes don't change while it runs");
}

void
Seam::Give(const FlowSpec& spec, const std::vector<std::pair<uint64_t, Wait>>& waits, int64_t start, int64_t cause)
{
    if (start != kUnknown)
    {
        CheckStart(flows_.Count(), start);
    }
    const uint64_t id = flows_.Add(spec, waits);
    if (start != kUnknown)
    {
        flows_.SetStart(id, start, cause);
    }
    else if (flows_.StartOf(id) != kUnknown)
    {
        CheckStart(id, flows_.StartOf(id));
    }
}

void
Seam::GiveStart(uint64_t id, int64_t start, int64_t cause)
{
    if (id >= flows_.Count() || !flows_.AwaitsStart(id))
    {
        throw SessionError("INVALID_FLOWS",
                           "flow " + std::to_string(id) + " does not wait for a start",
                           {{"flow", std::to_string(id)}, {"field", "starts.id"}});
    }
    CheckStart(id, start);
    flows_.SetStart(id, start, cause);
}

void
Seam::Complete(uint64_t id, int64_t time, int64_t cause)
{
    const FlowSpec& spec = flows_.Spec(id);
    digest_.Add(spec.key_high, spec.key_low, time);
    if (spec.reaction_ps < kNever - time)
    {
        bound_ = std::min(bound_, time + spec.reaction_ps);
    }
    pending_.push_back({id, flows_.StartOf(id), time, cause});
    ++completed_;
    flows_.SetEnd(id, time);
}

bool
Seam::Full() const
{
    return pending_.size() >= kReportLimit;
}

Advanced
Seam::Advance(int64_t horizon, Wall::time_point deadline, const std::atomic<bool>* cancel)
{
    if (horizon < granted_)
    {
        throw SessionError("CAUSALITY",
                           "the horizon " + std::to_string(horizon) + " ps is before the grant " +
                               std::to_string(granted_) + " ps",
                           {{"given", std::to_string(horizon)}});
    }
    bound_ = kNever;
    const int64_t reached = Run(horizon, deadline, cancel);
    Advanced done;
    granted_ = done.granted = std::max(granted_, reached);
    done.reason = Full()                  ? StopReason::kBuffer
                  : Interrupted()         ? (cancel->load() ? StopReason::kCancelled : StopReason::kBudget)
                  : bound_ <= granted_    ? StopReason::kReaction
                                          : StopReason::kHorizon;
    done.completions.swap(pending_);
    return done;
}

} // namespace cosim
