#include "network.h"

#include <ns3/simulator.h>

#include <algorithm>

namespace cosim {
namespace {

template <typename Get>
LinkMeasure
Measure(const char* name, const std::vector<LinkMeter>& meters, Get get)
{
    LinkMeasure measure{name, {}};
    for (const LinkMeter& meter : meters)
    {
        measure.values.push_back(static_cast<double>(get(meter)));
    }
    return measure;
}

} // namespace

Network::Network(Settings settings)
    : Seam(settings.topology.num_endpoints),
      settings_(std::move(settings)),
      fabric_(settings_, [this](uint64_t id) { Arrived(id); })
{
}

Network::~Network()
{
    clock_.End();
}

void
Network::GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links)
{
    fabric_.GivePath(src, dst, channel, std::move(links));
}

uint32_t
Network::Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel)
{
    return fabric_.Connect(job, src, dst, channel);
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
    return settings_.Told();
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
    std::vector<int64_t> bytes;
    for (const LinkMeter& meter : fabric_.Meters())
    {
        bytes.push_back(static_cast<int64_t>(meter.bytes));
    }
    return bytes;
}

std::vector<LinkMeasure>
Network::Measures()
{
    const std::vector<LinkMeter>& meters = fabric_.Meters();
    return {
        Measure("drops", meters, [](const LinkMeter& m) { return m.drops; }),
        Measure("marks", meters, [](const LinkMeter& m) { return m.marks; }),
        Measure("queue_p50_bytes", meters, [](const LinkMeter& m) { return m.Percentile(0.5); }),
        Measure("queue_p99_bytes", meters, [](const LinkMeter& m) { return m.Percentile(0.99); }),
        Measure("queue_max_bytes", meters, [](const LinkMeter& m) { return m.queue_max; }),
    };
}

const BusyMeter&
Network::Busy() const
{
    return fabric_.Busy();
}

bool
Network::Interrupted() const
{
    return clock_.Interrupted();
}

void
Network::Arrived(uint64_t id)
{
    const int64_t now = ns3::Simulator::Now().GetTimeStep();
    Complete(id, now, now);
    clock_.Lower(std::min(Limit(kNever), GetFlows().NextStart()));
    if (Full())
    {
        clock_.StopSoon();
    }
}

void
Network::StartAll()
{
    const int64_t time = GetFlows().NextStart();
    clock_.MoveTo(time);
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
            fabric_.At(spec.connection).Send(start.id, spec.size_bytes, coflows_[spec.coflow].get());
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
        reached = clock_.RunThrough(std::min(Limit(horizon), GetFlows().NextStart()));
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
