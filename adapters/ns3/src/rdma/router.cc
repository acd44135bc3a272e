#include "router.h"

#include "mix.h"

namespace cosim {

Router::Router(const SessionSettings& settings, PathFinder& finder)
    : finder_(finder),
      seed_(Mix(Mix(settings.routing_seed + kGolden) + settings.seed)),
      num_endpoints_(settings.topology.num_endpoints)
{
    if (settings.routing == RoutingKind::kSpray)
    {
        choices_.resize(size_t{settings.topology.num_nodes} * num_endpoints_);
    }
}

uint32_t
Router::Next(Packet& packet, uint32_t node)
{
    if (packet.path != nullptr)
    {
        return (*packet.path)[packet.hop++];
    }
    Choices& choices = choices_[size_t{node} * num_endpoints_ + packet.destination];
    if (!choices.found)
    {
        choices = {true, finder_.Choices(node, packet.destination)};
    }
    if (choices.links.size() == 1)
    {
        return choices.links.front();
    }
    const uint64_t x = Mix(seed_ + ++drawn_ * kGolden);
    return choices.links[((x >> 32) * choices.links.size()) >> 32];
}

} // namespace cosim
