#include "network.h"

#include "error.h"

#include <ns3/simulator.h>

#include <algorithm>

namespace cosim {
namespace {

constexpr size_t kReportLimit = size_t{1} << 17;

} // namespace

Network::Network(Settings settings)
    : settings_(std::move(settings)),
      fabric_(settings_, [this](uint64_t id) { Arrived(id); })
{
}

Network::~Network()
{
    clock_.End();
}

uint32_t
Network::CoflowOf(uint32_t job, uint64_t coflow, int64_t total_bytes)
{
    const auto [known, fresh] = coflow_numbers_.try_emplace({job, coflow}, coflows_.size());
    if (fresh)
    {
        coflows_.push_back(std::make_unique<Coflow>());
    }
    if (total_bytes > 0)
    {
        coflows_[known->second]->total = total_bytes;
    }
    return known->second;
}

void
Network::CheckStart(uint64_t id, int64_t start) const
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
Network::Give(const FlowSpec& spec,
              const std::vector<std::pair<uint64_t, Wait>>& waits,
              int64_t start,
              int64_t cause)
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
Network::GiveStart(uint64_t id, int64_t start, int64_t cause)
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
Network::Complete(uint64_t id, int64_t time)
{
    const FlowSpec& spec = flows_.Spec(id);
    digest_.Add(spec.key_high, spec.key_low, time);
    if (spec.reaction_ps < kNever - time)
    {
        bound_ = std::min(bound_, time + spec.reaction_ps);
    }
    pending_.push_back({id, flows_.StartOf(id), time});
    ++completed_;
    flows_.SetEnd(id, time);
}

void
Network::Arrived(uint64_t id)
{
    Complete(id, ns3::Simulator::Now().GetTimeStep());
    clock_.Lower(std::min(bound_, flows_.NextStart()));
    if (pending_.size() >= kReportLimit)
    {
        full_ = true;
        clock_.StopSoon();
    }
}

void
Network::StartAll()
{
    const int64_t time = flows_.NextStart();
    clock_.MoveTo(time);
    starting_.clear();
    flows_.TakeStarts(starting_);
    for (const Start& start : starting_)
    {
        const FlowSpec& spec = flows_.Spec(start.id);
        if (spec.connection == kMark)
        {
            Complete(start.id, time);
        }
        else
        {
            fabric_.At(spec.connection).Send(start.id, spec.size_bytes, coflows_[spec.coflow].get());
        }
    }
}

Advanced
Network::Advance(int64_t horizon, Clock::Wall::time_point deadline, const std::atomic<bool>* cancel)
{
    if (horizon < granted_)
    {
        throw SessionError("CAUSALITY",
                           "the horizon " + std::to_string(horizon) + " ps is before the grant " +
                               std::to_string(granted_) + " ps",
                           {{"given", std::to_string(horizon)}});
    }
    clock_.Watch(cancel, deadline);
    bound_ = kNever;
    full_ = false;
    int64_t reached = granted_;
    while (true)
    {
        reached = clock_.RunThrough(std::min({horizon, bound_, flows_.NextStart()}));
        const int64_t limit = std::min(horizon, bound_);
        const int64_t next = flows_.NextStart();
        if (full_ || clock_.Interrupted())
        {
            break;
        }
        if (next < limit && next <= reached)
        {
            StartAll();
        }
        else if (reached >= limit)
        {
            break;
        }
    }
    Advanced done;
    granted_ = done.granted = std::max(granted_, reached);
    done.reason = full_                    ? StopReason::kBuffer
                  : clock_.Interrupted()   ? (cancel->load() ? StopReason::kCancelled : StopReason::kBudget)
                  : bound_ <= done.granted ? StopReason::kReaction
                                           : StopReason::kHorizon;
    done.completions.swap(pending_);
    return done;
}

} // namespace cosim
