#include "graph.h"

#include <common/NetworkFunction.h>
#include <congestion_aware/Link.h>

#include <set>

namespace cosim {
namespace {

/// Upstream's GB/s is 2^30 bytes a second. A division by a power of two is exact.
constexpr double kBitsOfGB = 8.0 * (1 << 30);

} // namespace

Graph::Graph(const TopologySettings& t)
{
    npus_count = static_cast<int>(t.num_endpoints);
    devices_count = static_cast<int>(t.num_nodes);
    dims_count = 1;
    npus_count_per_dim = {npus_count};
    std::set<std::pair<uint32_t, uint32_t>> joined;
    for (size_t l = 0; l < t.link_src.size(); ++l)
    {
        const bool first = joined.emplace(t.link_src[l], t.link_dst[l]).second;
        tail_.push_back(first ? static_cast<DeviceId>(t.link_src[l]) : devices_count++);
        head_.push_back(static_cast<DeviceId>(t.link_dst[l]));
    }
    instantiate_devices();
    for (size_t l = 0; l < t.link_src.size(); ++l)
    {
        const Bandwidth bandwidth = t.link_rate_bps[l] / kBitsOfGB;
        latency_ns_.push_back(static_cast<double>(t.link_latency_ps[l]) / 1000.0);
        bytes_per_ns_.push_back(NetworkAnalytical::bw_GBps_to_Bpns(bandwidth));
        connect(tail_[l], head_[l], bandwidth, latency_ns_[l], false);
    }
}

aware::Route
Graph::Over(uint32_t link) const
{
    return route(tail_[link], head_[link]);
}

aware::Route
Graph::route(DeviceId src, DeviceId dest) const noexcept
{
    return {devices[static_cast<size_t>(src)], devices[static_cast<size_t>(dest)]};
}

uint64_t
Graph::BusyNs(uint32_t link, uint64_t bytes) const
{
    return static_cast<uint64_t>(static_cast<Bandwidth>(bytes) / bytes_per_ns_[link]);
}

uint64_t
Graph::HopNs(uint32_t link, uint64_t bytes) const
{
    return static_cast<uint64_t>(latency_ns_[link] + static_cast<Bandwidth>(bytes) / bytes_per_ns_[link]);
}

} // namespace cosim
