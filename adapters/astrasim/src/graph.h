// Any graph as a topology of upstream.
#pragma once

#include "world.h"

#include <congestion_aware/Topology.h>

namespace cosim {

namespace aware = NetworkAnalyticalCongestionAware;

/// A device for each node, a link for each directed link, with its own rate and latency.
///
/// Upstream knows a link by the two devices that it joins. Of links that join the same two nodes the second and those after it
/// leave from a device of their own; a message is put there at once, so that nothing is added on its way.
class Graph : public aware::Topology
{
  public:
    explicit Graph(const TopologySettings& topology);

    /// The devices on both ends of a link: what is sent on this route takes the link and nothing else.
    aware::Route Over(uint32_t link) const;

    /// One hop, between devices that a link joins. Routes of more than one are the client's, and followed by Network.
    aware::Route route(DeviceId src, DeviceId dest) const noexcept override;

    /// Upstream's own numbers for a message on a link, ns: how long it is busy, and when the last byte is at the other end.
    uint64_t BusyNs(uint32_t link, uint64_t bytes) const;
    uint64_t HopNs(uint32_t link, uint64_t bytes) const;

  private:
    std::vector<DeviceId> tail_;
    std::vector<DeviceId> head_;
    std::vector<Bandwidth> bytes_per_ns_;
    std::vector<Latency> latency_ns_;
};

} // namespace cosim
