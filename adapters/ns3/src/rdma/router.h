// Where packets go next.
#pragma once

#include "packet.h"
#include "path_finder.h"

#include <cstdint>
#include <vector>

namespace cosim {

/// Packets with a path follow it; others take, at each node, one of the shortest ways (spray).
class Router
{
  public:
    Router(const SessionSettings& settings, PathFinder& finder);

    /// The link that a packet leaves a node by.
    uint32_t Next(Packet& packet, uint32_t node);

  private:
    struct Choices
    {
        bool found = false;
        std::vector<uint32_t> links;
    };

    PathFinder& finder_;
    uint64_t seed_;
    uint64_t drawn_ = 0;
    uint32_t num_endpoints_;
    /// Of [node * endpoints + destination].
    std::vector<Choices> choices_;
};

} // namespace cosim
