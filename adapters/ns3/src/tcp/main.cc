// cosim-ns3: ns-3's TCP behind cosim's network protocol.

#include "adapter.h"
#include "network.h"
#include "tcp_fabric.h"
#include "tcp_open.h"

#include <ns3/nstime.h>

int
main(int argc, char** argv)
{
    namespace wire = cosim::wire;
    ns3::Time::SetResolution(ns3::Time::PS);
    cosim::Adapter adapter;
    adapter.program = "cosim-ns3";
    adapter.simulator = "ns-3";
    adapter.version = COSIM_NS3_VERSION;
    adapter.build = "cosim-ns3 1, ns-3 " COSIM_NS3_VERSION ", " __VERSION__;
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
        wire::FEATURE_LIVE_CHANGES,
        wire::FEATURE_COFLOW,
        wire::FEATURE_CANCEL,
        wire::FEATURE_WALL_BUDGET,
        wire::FEATURE_SOCKET,
    };
    adapter.transports = {"cubic", "newreno", "dctcp"};
    adapter.queue_disciplines = {"drop_tail", "red"};
    adapter.options = cosim::TcpSettings::Options();
    adapter.open = [](const wire::Open& open) {
        const cosim::TcpSettings settings = cosim::TakeTcp(open);
        return std::make_unique<cosim::Network>(
            settings.topology.num_endpoints,
            [&](cosim::Fabric::Arrived arrived) { return std::make_unique<cosim::TcpFabric>(settings, std::move(arrived)); });
    };
    return cosim::Serve(adapter, argc, argv);
}
