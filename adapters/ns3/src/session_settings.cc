#include "session_settings.h"

#include "error.h"

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
    for (const LinkEvent& event : link_events)
    {
        if (event.time_ps < 0)
        {
            Invalid("link_events.time_ps", "an event at " + std::to_string(event.time_ps) + " ps");
        }
        if (event.up && !(event.rate_bps >= 1 && event.rate_bps < 1e18))
        {
            Invalid("link_events.rate_bps",
                    topology.LinkName(event.link) + " gets " + std::to_string(event.rate_bps) +
                        " bits/s; a rate is 1 to 10^18");
        }
    }
}

} // namespace cosim
