#include "session_settings.h"

#include "error.h"
#include "times.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace cosim {

void
SessionSettings::CheckSession() const
{
    CheckTopology(topology);
    if (mtu_bytes < 576 || mtu_bytes > 65000)
    {
        Invalid("transport.mtu_bytes", "an MTU is 576 to 65000 bytes, not " + std::to_string(mtu_bytes));
    }
    int64_t before = 0;
    for (const LinkEvent& event : link_events)
    {
        if (event.time_ps < before)
        {
            Invalid("link_events.time_ps",
                    "an event at " + std::to_string(event.time_ps) + " ps; times ascend, from 0");
        }
        before = event.time_ps;
        if (event.up && !(event.rate_bps >= 1 && event.rate_bps < 1e18))
        {
            Invalid("link_events.rate_bps",
                    topology.LinkName(event.link) + " gets " + std::to_string(event.rate_bps) +
                        " bits/s; a rate is 1 to 10^18");
        }
    }
}

std::vector<RouteChange>
SessionSettings::RouteChanges() const
{
    std::vector<RouteChange> changes;
    if (detection_ps < 0)
    {
        return changes;
    }
    std::map<std::set<uint32_t>, uint32_t> numbers;
    std::set<uint32_t> dead;
    std::set<uint32_t> known;
    for (size_t k = 0; k < link_events.size(); ++k)
    {
        const LinkEvent& event = link_events[k];
        if (event.up)
        {
            dead.erase(event.link);
        }
        else
        {
            dead.insert(event.link);
        }
        // Of one instant routing hears what came of it.
        const bool last = k + 1 == link_events.size() || link_events[k + 1].time_ps > event.time_ps;
        if (!last || dead == known || event.time_ps > kNever - detection_ps)
        {
            continue;
        }
        known = dead;
        const uint32_t next = static_cast<uint32_t>(numbers.size()) + 1;
        const uint32_t set = dead.empty() ? 0 : numbers.try_emplace(dead, next).first->second;
        changes.push_back({event.time_ps + detection_ps, set, {dead.begin(), dead.end()}});
    }
    return changes;
}

uint32_t
SessionSettings::NumDeadSets() const
{
    uint32_t most = 0;
    for (const RouteChange& change : RouteChanges())
    {
        most = std::max(most, change.set);
    }
    return most;
}

} // namespace cosim
