#include "router.h"

#include "mix.h"
#include "port.h"

#include <ns3/simulator.h>

#include <algorithm>

namespace cosim {

Router::Router(const RdmaSettings& settings, PathFinder& finder, const std::vector<std::unique_ptr<Port>>& ports)
    : settings_(settings),
      finder_(finder),
      ports_(ports),
      seed_(Mix(Mix(settings.routing_seed + kGolden) + settings.seed)),
      num_endpoints_(settings.topology.num_endpoints)
{
    if (settings.routing == RoutingKind::kSpray)
    {
        choices_.resize(size_t{settings.topology.num_nodes} * num_endpoints_);
    }
}

void
Router::Forget()
{
    for (Choices& choices : choices_)
    {
        choices = {};
    }
    flowlets_.clear();
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
    switch (settings_.balancing)
    {
    case Balancing::kAdaptive:
        return Shortest(choices.links);
    case Balancing::kFlowlet:
        return OfFlowlet(packet, node, choices.links);
    case Balancing::kRandom:
        break;
    }
    return Draw(choices.links);
}

uint32_t
Router::Draw(const std::vector<uint32_t>& links)
{
    const uint64_t x = Mix(seed_ + ++drawn_ * kGolden);
    return links[((x >> 32) * links.size()) >> 32];
}

uint32_t
Router::Shortest(const std::vector<uint32_t>& links)
{
    // From a link drawn on: of equals, each is taken alike.
    const uint32_t first = Draw(links);
    const auto queue = [this](uint32_t link) { return ports_[link]->QueueBytes(); };
    const uint32_t best = *std::min_element(
        links.begin(), links.end(), [&](uint32_t one, uint32_t other) { return queue(one) < queue(other); });
    return queue(first) == queue(best) ? first : best;
}

uint32_t
Router::OfFlowlet(const Packet& packet, uint32_t node, const std::vector<uint32_t>& links)
{
    const int64_t now = ns3::Simulator::Now().GetTimeStep();
    const uint64_t way = packet.kind == PacketKind::kData ? 0 : 1;
    Flowlet& flowlet = flowlets_[(uint64_t{packet.queue_pair} << 32 | node) << 1 | way];
    if (flowlet.last_ps < 0 || now - flowlet.last_ps > settings_.flowlet_gap_ps)
    {
        flowlet.link = Draw(links);
    }
    flowlet.last_ps = now;
    return flowlet.link;
}

} // namespace cosim
