#include "network.h"

#include "error.h"

#include <ns3/simulator.h>

#include <algorithm>

namespace cosim {
Network::Network(uint32_t num_endpoints, const MakeFabric& make, int64_t begin)
    : Seam(num_endpoints)
{
    clock_.MoveTo(begin);
    fabric_ = make([this](uint64_t id) { Arrived(id); });
    fabric_->on_fault = [this] { clock_.StopSoon(); };
}

Network::~Network()
{
    clock_.End();
}

void
Network::GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set)
{
    fabric_->GivePath(src, dst, channel, std::move(links), dead_set);
}

void
Network::ChangeLink(int64_t time, uint32_t link, double rate_bps)
{
    fabric_->ChangeLink({time, link, rate_bps > 0, rate_bps});
}

void
Network::ChangeRoutes(int64_t time, std::vector<uint32_t> dead)
{
    fabric_->ChangeRoutes(time, std::move(dead));
}

uint32_t
Network::Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel)
{
    return fabric_->Connect(job, src, dst, channel);
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

std::map<std::string, std::string>
Network::Told() const
{
    return fabric_->Told();
}

uint64_t
Network::Events() const
{
    return clock_.Events();
}

int64_t
Network::RunNs() const
{
    return clock_.RunNs();
}

std::vector<int64_t>
Network::LinkBytes()
{
    return fabric_->LinkBytes();
}

std::vector<LinkMeasure>
Network::Measures()
{
    return fabric_->Measures();
}

const BusyMeter&
Network::Busy() const
{
    return fabric_->Busy();
}

bool
Network::Interrupted() const
{
    return clock_.Interrupted();
}

int64_t
Network::RunThrough(int64_t limit)
{
    return clock_.RunThrough(limit);
}

std::vector<LinkSample>
Network::Queues(const std::vector<uint32_t>& links)
{
    return fabric_->Queues(links, Granted());
}

std::vector<RateSample>
Network::Rates()
{
    return fabric_->Rates();
}

bool
Network::HasWork()
{
    return GetFlows().NextStart() != kNever || !fabric_->Rates().empty();
}

void
Network::StartAt(int64_t time)
{
    clock_.MoveTo(time);
}

void
Network::Begin(uint64_t id, const FlowSpec& spec)
{
    fabric_->Send(id, spec, CoflowAt(spec.coflow));
}

void
Network::Lower(int64_t limit)
{
    clock_.Lower(limit);
}

void
Network::StopSoon()
{
    clock_.StopSoon();
}

void
Network::Arrived(uint64_t id)
{
    Done(id, ns3::Simulator::Now().GetTimeStep());
}

void
Network::Done(uint64_t id, int64_t time)
{
    Complete(id, time, time);
    Lower(std::min(Limit(kNever), GetFlows().NextStart()));
    if (Full())
    {
        StopSoon();
    }
}

void
Network::StartAll()
{
    const int64_t time = GetFlows().NextStart();
    StartAt(time);
    starting_.clear();
    GetFlows().TakeStarts(starting_);
    for (const Start& start : starting_)
    {
        const FlowSpec& spec = GetFlows().Spec(start.id);
        if (spec.connection == kMark)
        {
            Complete(start.id, time, time);
        }
        else
        {
            Begin(start.id, spec);
        }
    }
}

int64_t
Network::Run(int64_t horizon, Wall::time_point deadline, const std::atomic<bool>* cancel)
{
    clock_.Watch(cancel, deadline);
    int64_t reached = Granted();
    while (true)
    {
        reached = RunThrough(std::min(Limit(horizon), GetFlows().NextStart()));
        if (!fabric_->Fault().empty())
        {
            throw SessionError("SIMULATOR", fabric_->Fault());
        }
        const int64_t limit = Limit(horizon);
        const int64_t next = GetFlows().NextStart();
        if (Full() || clock_.Interrupted() || (reached >= limit && !(next < limit && next <= reached)))
        {
            return reached;
        }
        if (next < limit && next <= reached)
        {
            StartAll();
        }
    }
}

} // namespace cosim
