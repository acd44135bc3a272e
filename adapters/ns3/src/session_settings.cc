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
        if (event.link >= topology.link_src.size() || event.time_ps < 0)
        {
            Invalid("link_events",
                    "an event names link " + std::to_string(event.link) + " at " + std::to_string(event.time_ps) + " ps");
        }
    }
}

} // namespace cosim
