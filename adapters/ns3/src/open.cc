#include "open.h"

#include "take.h"

namespace cosim {

void
TakeSession(const wire::Open& open, SessionSettings& settings)
{
    settings.topology = TakeTopology(open.topology());
    switch (open.routing().kind())
    {
    case wire::ROUTING_KIND_GIVEN:
        settings.routing = RoutingKind::kGiven;
        break;
    case wire::ROUTING_KIND_UNSPECIFIED:
    case wire::ROUTING_KIND_ECMP:
        settings.routing = RoutingKind::kEcmp;
        break;
    case wire::ROUTING_KIND_SPRAY:
        settings.routing = RoutingKind::kSpray;
        break;
    default:
        Invalid("routing.kind", "unknown routing " + std::to_string(open.routing().kind()));
    }
    settings.routing_seed = open.routing().seed();
    settings.endpoints_forward = open.routing().endpoints_forward();
    settings.seed = open.seed();
    if (open.transport().mtu_bytes() != 0)
    {
        settings.mtu_bytes = open.transport().mtu_bytes();
    }
    settings.mltcp = open.transport().mltcp();
    const wire::LinkEvents& events = open.link_events();
    if (events.link_size() != events.time_ps_size() || events.up_size() != events.time_ps_size())
    {
        Invalid("link_events", "columns differ in length");
    }
    if (events.rate_bps_size() != 0 && events.rate_bps_size() != events.time_ps_size())
    {
        Invalid("link_events.rate_bps", "columns differ in length");
    }
    if (events.has_detection_ps() && events.detection_ps() < 0)
    {
        Invalid("link_events.detection_ps", "detection takes 0 ps or more");
    }
    settings.detection_ps = events.has_detection_ps() ? events.detection_ps() : -1;
    for (int k = 0; k < events.time_ps_size(); ++k)
    {
        const uint32_t link = events.link(k);
        if (link >= settings.topology.link_rate_bps.size())
        {
            Invalid("link_events.link", "an event names link " + std::to_string(link));
        }
        const double rate =
            events.rate_bps_size() != 0 ? events.rate_bps(k) : settings.topology.link_rate_bps[link];
        settings.link_events.push_back({events.time_ps(k), link, events.up(k), rate});
    }
}

} // namespace cosim
