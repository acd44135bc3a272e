// Where packets go next.
#pragma once

#include "packet.h"
#include "path_finder.h"
#include "rdma_settings.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace cosim {

class Port;

/// Packets with a path follow it; others take, at each node, one of the shortest ways: any (spray), the one with the shortest
/// queue (adaptive), or that of the packet before where it is not long ago (flowlet; Vanini et al. 2017, "Let It Flow", NSDI).
class Router
{
  public:
    Router(const RdmaSettings& settings, PathFinder& finder, const std::vector<std::unique_ptr<Port>>& ports);

    /// The link that a packet leaves a node by.
    uint32_t Next(Packet& packet, uint32_t node);
    /// What the finder knows of the links has changed.
    void Forget();

  private:
    struct Choices
    {
        bool found = false;
        std::vector<uint32_t> links;
    };

    /// Of a queue pair, one way, at a node.
    struct Flowlet
    {
        int64_t last_ps = -1;
        uint32_t link = 0;
    };

    uint32_t Draw(const std::vector<uint32_t>& links);
    uint32_t Shortest(const std::vector<uint32_t>& links);
    uint32_t OfFlowlet(const Packet& packet, uint32_t node, const std::vector<uint32_t>& links);

    const RdmaSettings& settings_;
    PathFinder& finder_;
    const std::vector<std::unique_ptr<Port>>& ports_;
    uint64_t seed_;
    uint64_t drawn_ = 0;
    uint32_t num_endpoints_;
    /// Of [node * endpoints + destination].
    std::vector<Choices> choices_;
    std::unordered_map<uint64_t, Flowlet> flowlets_;
};

} // namespace cosim
