#include "rdma_open.h"

#include "open.h"

namespace cosim {

RdmaSettings
TakeRdma(const wire::Open& open)
{
    RdmaSettings settings;
    TakeSession(open, settings);
    if (!open.transport().name().empty())
    {
        settings.control = open.transport().name();
    }
    const std::string& discipline = open.queue().discipline();
    if (discipline != "" && discipline != "shared_buffer" && discipline != "port_buffer")
    {
        Invalid("queue.discipline", "there is no queue discipline " + discipline + "; there are shared_buffer, port_buffer");
    }
    settings.shared_buffer = discipline != "port_buffer";
    settings.buffer_bytes = open.queue().capacity_bytes();
    if (open.has_ecn())
    {
        settings.marking = Marking{static_cast<double>(open.ecn().mark_min_bytes()),
                                   static_cast<double>(open.ecn().mark_max_bytes()),
                                   1.0};
    }
    for (const auto& [key, value] : open.options())
    {
        settings.SetOption(key, value);
    }
    settings.Finish();
    return settings;
}

} // namespace cosim
