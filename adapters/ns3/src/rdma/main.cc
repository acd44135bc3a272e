// cosim-ns3-rdma: RDMA on ns-3 behind cosim's network protocol.

#include "adapter.h"
#include "fast_forward.h"
#include "network.h"
#include "rdma_fabric.h"
#include "rdma_open.h"

#include <ns3/nstime.h>

int
main(int argc, char** argv)
{
    namespace wire = cosim::wire;
    ns3::Time::SetResolution(ns3::Time::PS);
    cosim::Adapter adapter;
    adapter.program = "cosim-ns3-rdma";
    adapter.simulator = "ns-3 RDMA";
    adapter.version = COSIM_NS3_VERSION;
    adapter.build = "cosim-ns3-rdma 1, ns-3 " COSIM_NS3_VERSION ", " __VERSION__;
    adapter.max_nodes = 16384;
    adapter.max_links = 65536;
    adapter.features = {
        wire::FEATURE_DEPENDENT_FLOWS,
        wire::FEATURE_START_DEPENDENCIES,
        wire::FEATURE_GIVEN_PATHS,
        wire::FEATURE_ECMP,
        wire::FEATURE_SPRAY,
        wire::FEATURE_ECN,
        wire::FEATURE_LINK_EVENTS,
        wire::FEATURE_LINK_RATES,
        wire::FEATURE_DETOURS,
        wire::FEATURE_PRIORITY,
        wire::FEATURE_WEIGHT,
        wire::FEATURE_COFLOW,
        wire::FEATURE_CANCEL,
        wire::FEATURE_WALL_BUDGET,
        wire::FEATURE_SOCKET,
        wire::FEATURE_QUEUES,
        wire::FEATURE_RATES,
    };
    for (const auto& [name, kind] : cosim::AllControls())
    {
        adapter.transports.push_back(name);
    }
    adapter.transports.push_back("own");
    adapter.queue_disciplines = {"shared_buffer", "port_buffer"};
    adapter.options = cosim::RdmaSettings::About();
    adapter.open = [](const wire::Open& open) -> std::unique_ptr<cosim::Seam> {
        const cosim::RdmaSettings settings = cosim::TakeRdma(open);
        if (settings.fast_forward)
        {
            return std::make_unique<cosim::FastForward>(settings, *settings.fast_forward);
        }
        return std::make_unique<cosim::Network>(
            settings.topology.num_endpoints,
            [&](cosim::Fabric::Arrived arrived) { return std::make_unique<cosim::RdmaFabric>(settings, std::move(arrived)); });
    };
    return cosim::Serve(adapter, argc, argv);
}
