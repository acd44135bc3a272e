#include "tcp_open.h"

#include "open.h"

namespace cosim {

TcpSettings
TakeTcp(const wire::Open& open)
{
    TcpSettings settings;
    TakeSession(open, settings);
    settings.queue = open.queue().discipline();
    settings.queue_bytes = open.queue().capacity_bytes();
    settings.ecn = open.has_ecn();
    settings.mark_min_bytes = open.ecn().mark_min_bytes();
    settings.mark_max_bytes = open.ecn().mark_max_bytes();
    if (!open.transport().name().empty())
    {
        settings.transport = open.transport().name();
    }
    for (const auto& [key, value] : open.options())
    {
        settings.SetOption(key, value);
    }
    settings.Finish();
    return settings;
}

} // namespace cosim
