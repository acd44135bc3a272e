#include "pause_watch.h"

#include "packet.h"
#include "port.h"
#include "shared_buffer.h"

#include <ns3/simulator.h>

#include <algorithm>

namespace cosim {
namespace {

constexpr int64_t kEvery = 1'000'000'000;

} // namespace

PauseWatch::PauseWatch(const std::vector<std::unique_ptr<Port>>& ports,
                       const std::vector<std::unique_ptr<SharedBuffer>>& buffers,
                       std::function<void(const std::vector<uint32_t>& links)> fault)
    : ports_(ports),
      buffers_(buffers),
      fault_(std::move(fault))
{
}

void
PauseWatch::Begin()
{
    if (!watching_)
    {
        watching_ = true;
        ns3::Simulator::Schedule(ns3::TimeStep(kEvery), [this] { Look(); });
    }
}

std::vector<uint32_t>
PauseWatch::WaitsFor(const Stopped& one) const
{
    const SharedBuffer& buffer = *buffers_[ports_[one.link]->Facts().dst];
    std::vector<uint32_t> links;
    for (const uint32_t out : buffer.LinksOut())
    {
        if (buffer.Between(one.link, out, one.priority) > 0)
        {
            links.push_back(out);
        }
    }
    return links;
}

std::vector<PauseWatch::Stopped>
PauseWatch::Stuck(int64_t now) const
{
    std::vector<Stopped> stuck;
    for (uint32_t link = 0; link < ports_.size(); ++link)
    {
        for (uint32_t priority = 0; priority < kMaxClasses; ++priority)
        {
            const int64_t since = ports_[link]->PausedSince(priority);
            if (since >= 0 && since <= now - kEvery)
            {
                stuck.push_back({link, priority});
            }
        }
    }
    // Whoever waits for a link that is not stuck will go on, and so will those that wait for it.
    for (size_t before = stuck.size() + 1; stuck.size() < before;)
    {
        before = stuck.size();
        const std::vector<Stopped> all = stuck;
        const auto goes_on = [&](const Stopped& one) {
            const auto waits = WaitsFor(one);
            return waits.empty() || std::any_of(waits.begin(), waits.end(), [&](uint32_t link) {
                return std::none_of(all.begin(), all.end(), [&](const Stopped& other) {
                    return other.link == link && other.priority == one.priority;
                });
            });
        };
        stuck.erase(std::remove_if(stuck.begin(), stuck.end(), goes_on), stuck.end());
    }
    return stuck;
}

std::vector<uint32_t>
PauseWatch::Circle(const std::vector<Stopped>& stuck) const
{
    // Each waits for another of them, so that a walk must come back to where it was.
    std::vector<uint32_t> walk{stuck.front().link};
    while (true)
    {
        const uint32_t next = WaitsFor({walk.back(), stuck.front().priority}).front();
        const auto seen = std::find(walk.begin(), walk.end(), next);
        if (seen != walk.end())
        {
            return {seen, walk.end()};
        }
        walk.push_back(next);
    }
}

void
PauseWatch::Look()
{
    watching_ = false;
    const int64_t now = ns3::Simulator::Now().GetTimeStep();
    const std::vector<Stopped> stuck = Stuck(now);
    if (!stuck.empty())
    {
        fault_(Circle(stuck));
        return;
    }
    const bool any = std::any_of(ports_.begin(), ports_.end(), [](const auto& port) {
        for (uint32_t priority = 0; priority < kMaxClasses; ++priority)
        {
            if (port->PausedSince(priority) >= 0)
            {
                return true;
            }
        }
        return false;
    });
    if (any)
    {
        Begin();
    }
}

} // namespace cosim
