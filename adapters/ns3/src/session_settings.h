// What every session is opened with, free of gRPC and of ns-3.
#pragma once

#include "world.h"

#include <cstdint>
#include <vector>

namespace cosim {

enum class RoutingKind
{
    kGiven,
    kEcmp,
    kSpray,
};

/// A link that fails (up false), or works from then on, at a rate.
struct LinkEvent
{
    int64_t time_ps;
    uint32_t link;
    bool up;
    double rate_bps;
};

/// What routing knows to be dead from a time on, and the number of that set of links: from 1, 0 where all work.
struct RouteChange
{
    int64_t time_ps;
    uint32_t set;
    std::vector<uint32_t> dead;
};

struct SessionSettings
{
    TopologySettings topology;
    RoutingKind routing = RoutingKind::kEcmp;
    uint64_t routing_seed = 0;
    bool endpoints_forward = false;
    std::vector<LinkEvent> link_events;
    /// How long routing takes to hear of them; -1: it never does.
    int64_t detection_ps = -1;
    uint64_t seed = 0;
    uint32_t mtu_bytes = 9000;
    bool mltcp = false;
    double mltcp_slope = 1.75;
    double mltcp_intercept = 0.25;

    /// Throws SessionError (INVALID_OPEN).
    void CheckSession() const;
    /// What routing hears of the events, in order.
    std::vector<RouteChange> RouteChanges() const;
    /// How many sets of dead links it comes to know.
    uint32_t NumDeadSets() const;
};

} // namespace cosim
