// The topology that a session is opened with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cosim {

/// Nodes and directed links; endpoints are the first nodes.
struct TopologySettings
{
    uint32_t num_endpoints = 0;
    uint32_t num_nodes = 0;
    /// For errors; empty where nobody said.
    std::vector<std::string> node_names;
    std::vector<uint32_t> link_src;
    std::vector<uint32_t> link_dst;
    std::vector<double> link_rate_bps;
    std::vector<int64_t> link_latency_ps;

    /// As errors say it.
    std::string NodeName(uint32_t node) const;
    std::string LinkName(uint32_t link) const;
};

/// What a session can't be opened with; `field` is that of Open.
[[noreturn]] void Invalid(const std::string& field, const std::string& message);

/// Throws SessionError (INVALID_OPEN) unless every link joins two nodes at a rate and latency that can be.
void CheckTopology(const TopologySettings& topology);

} // namespace cosim
