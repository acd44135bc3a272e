// What an adapter says of its simulator, and how it opens a session.
#pragma once

#include "seam.h"

#include <cosim/protocol/v1/network_simulator.pb.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cosim {

namespace wire = cosim::protocol::v1;

inline constexpr uint32_t kMajor = 1;
inline constexpr uint32_t kMinor = 0;
inline constexpr uint64_t kMaxMessageBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxOpenFlows = uint64_t{4} << 20;

struct Adapter
{
    /// The program's name, and the simulator's as a person would say it.
    std::string program;
    std::string simulator;
    std::string version;
    std::string build;
    int64_t quantum_ps = 1;
    uint32_t max_nodes = 0;
    uint32_t max_links = 0;
    std::vector<wire::Feature> features;
    std::vector<std::string> transports;
    std::vector<std::string> queue_disciplines;
    std::map<std::string, std::string> options;
    /// Version, features and limits have been checked. Throws SessionError (INVALID_OPEN).
    std::function<std::unique_ptr<Seam>(const wire::Open&)> open;
};

/// Serves until SIGTERM, one session at a time; returns the exit status.
int Serve(const Adapter& adapter, int argc, char** argv);

} // namespace cosim
