// What a session is opened with, free of gRPC and of ns-3.
#pragma once

#include "world.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cosim {

enum class RoutingKind
{
    kGiven,
    kEcmp,
    kSpray,
};

/// A link that fails (up false) or comes back.
struct LinkEvent
{
    int64_t time_ps;
    uint32_t link;
    bool up;
};

struct Settings
{
    TopologySettings topology;
    RoutingKind routing = RoutingKind::kEcmp;
    uint64_t routing_seed = 0;
    bool endpoints_forward = false;
    std::vector<LinkEvent> link_events;
    uint64_t seed = 0;

    /// cubic, newreno or dctcp.
    std::string transport = "cubic";
    bool mltcp = false;
    uint32_t mtu_bytes = 9000;
    /// drop_tail or red.
    std::string queue = "drop_tail";
    uint64_t queue_bytes = 0;
    bool ecn = false;
    uint64_t mark_min_bytes = 0;
    uint64_t mark_max_bytes = 0;

    // The adapter's own options.
    int64_t min_rto_ps = 500'000'000;
    int64_t delayed_ack_ps = 40'000'000;
    uint32_t delayed_ack_count = 2;
    uint32_t initial_window = 10;
    uint32_t send_gate_packets = 2;
    uint64_t receive_buffer_bytes = uint64_t{16} << 20;
    double mltcp_slope = 1.75;
    double mltcp_intercept = 0.25;

    /// Sets an option; throws SessionError (INVALID_OPEN) for an unknown one or a bad value.
    void SetOption(const std::string& key, const std::string& value);

    /// Fills in what was left to the adapter and checks the rest; throws SessionError (INVALID_OPEN).
    void Finish();

    /// All of it, for the user to read.
    std::map<std::string, std::string> Told() const;

    /// Every option and what it means.
    static std::map<std::string, std::string> Options();
};

} // namespace cosim
