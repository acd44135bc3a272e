// cosim-astrasim: ASTRA-sim's congestion-aware analytical network behind cosim's network protocol.

#include "adapter.h"
#include "network.h"
#include "take.h"

namespace {

/// Whatever of Open the model can't do exactly is an error.
std::unique_ptr<cosim::Seam>
Open(const cosim::wire::Open& open)
{
    namespace wire = cosim::wire;
    const auto& kind = open.routing().kind();
    if (kind != wire::ROUTING_KIND_GIVEN && kind != wire::ROUTING_KIND_UNSPECIFIED)
    {
        cosim::Invalid("routing.kind", "this adapter follows the paths that the client gives, and picks none");
    }
    if (!open.queue().discipline().empty() || open.queue().capacity_bytes() != 0)
    {
        cosim::Invalid("queue", "ASTRA-sim's analytical links queue whole messages, any number of them: nothing to choose");
    }
    if (open.has_ecn())
    {
        cosim::Invalid("ecn", "ASTRA-sim's analytical network has no packets, so that none is marked");
    }
    if (!open.transport().name().empty() || open.transport().mtu_bytes() != 0 || open.transport().mltcp())
    {
        cosim::Invalid("transport", "ASTRA-sim's analytical network has no packets and no transport");
    }
    if (open.link_events().time_ps_size() != 0)
    {
        cosim::Invalid("link_events", "links of ASTRA-sim's analytical network don't fail");
    }
    if (!open.options().empty())
    {
        const std::string& key = open.options().begin()->first;
        cosim::Invalid("options." + key, "ASTRA-sim's analytical network has no option " + key + ", nor any other");
    }
    return std::make_unique<cosim::Network>(cosim::TakeTopology(open.topology()));
}

} // namespace

int
main(int argc, char** argv)
{
    namespace wire = cosim::wire;
    cosim::Adapter adapter;
    adapter.program = "cosim-astrasim";
    adapter.simulator = "ASTRA-sim";
    adapter.version = "analytical, congestion-aware";
    adapter.build = "cosim-astrasim 1, library " COSIM_ASTRASIM_LIBRARY ", " __VERSION__;
    adapter.quantum_ps = 1000;
    adapter.max_nodes = 1 << 18;
    adapter.max_links = 1 << 20;
    adapter.features = {
        wire::FEATURE_DEPENDENT_FLOWS,
        wire::FEATURE_START_DEPENDENCIES,
        wire::FEATURE_GIVEN_PATHS,
        wire::FEATURE_CANCEL,
        wire::FEATURE_WALL_BUDGET,
        wire::FEATURE_SOCKET,
    };
    adapter.open = &Open;
    return cosim::Serve(adapter, argc, argv);
}
