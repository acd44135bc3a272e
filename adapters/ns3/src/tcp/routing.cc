#include "routing.h"

#include "mix.h"

#include <ns3/packet.h>

namespace cosim {
namespace {

uint32_t
PortsOf(ns3::Ptr<const ns3::Packet> packet)
{
    uint8_t head[4];
    packet->CopyData(head, 4);
    return uint32_t{head[0]} << 24 | uint32_t{head[1]} << 16 | uint32_t{head[2]} << 8 | head[3];
}

ns3::Ptr<ns3::Ipv4Route>
MakeRoute(ns3::Ipv4Address source, ns3::Ptr<ns3::NetDevice> out)
{
    auto route = ns3::Create<ns3::Ipv4Route>();
    route->SetSource(source);
    route->SetGateway(ns3::Ipv4Address::GetAny());
    route->SetOutputDevice(out);
    return route;
}

} // namespace

ns3::Ipv4Address
AddressOf(uint32_t endpoint)
{
    return ns3::Ipv4Address(0x0A000001 + endpoint);
}

NS_OBJECT_ENSURE_REGISTERED(NodeRouting);

ns3::TypeId
NodeRouting::GetTypeId()
{
    static ns3::TypeId tid =
        ns3::TypeId("cosim::NodeRouting").SetParent<ns3::Ipv4RoutingProtocol>().AddConstructor<NodeRouting>();
    return tid;
}

void
NodeRouting::AddConnection(uint32_t ports, ns3::Ptr<ns3::NetDevice> out)
{
    connections_[ports] = MakeRoute(address_, out);
}

void
NodeRouting::SetChoices(uint32_t endpoint, const std::vector<ns3::Ptr<ns3::NetDevice>>& outs)
{
    auto& routes = choices_[AddressOf(endpoint).Get()];
    routes.clear();
    for (const auto& out : outs)
    {
        routes.push_back(MakeRoute(address_, out));
    }
}

void
NodeRouting::SetSeed(uint64_t seed)
{
    seed_ = seed;
}

ns3::Ptr<ns3::Ipv4Route>
NodeRouting::Lookup(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv4Header& header)
{
    const auto many = choices_.find(header.GetDestination().Get());
    if (many != choices_.end())
    {
        const auto& routes = many->second;
        if (routes.size() == 1)
        {
            return routes[0];
        }
        const uint64_t x = Mix(seed_ + ++packets_ * kGolden);
        return routes[((x >> 32) * routes.size()) >> 32];
    }
    const auto one = connections_.find(PortsOf(packet));
    return one == connections_.end() ? nullptr : one->second;
}

ns3::Ptr<ns3::Ipv4Route>
NodeRouting::RouteOutput(ns3::Ptr<ns3::Packet> packet,
                         const ns3::Ipv4Header& header,
                         ns3::Ptr<ns3::NetDevice>,
                         ns3::Socket::SocketErrno& fault)
{
    auto route = packet ? Lookup(packet, header) : nullptr;
    fault = route ? ns3::Socket::ERROR_NOTERROR : ns3::Socket::ERROR_NOROUTETOHOST;
    return route;
}

bool
NodeRouting::RouteInput(ns3::Ptr<const ns3::Packet> packet,
                        const ns3::Ipv4Header& header,
                        ns3::Ptr<const ns3::NetDevice>,
                        UnicastForwardCallback forward,
                        MulticastForwardCallback,
                        LocalDeliverCallback deliver,
                        ErrorCallback)
{
    if (header.GetDestination() == address_)
    {
        deliver(packet, header, 1);
        return true;
    }
    const auto route = Lookup(packet, header);
    if (!route)
    {
        return false;
    }
    forward(route, packet, header);
    return true;
}

// Paths are fixed when a session is opened: interfaces and addresses change nothing.
void
NodeRouting::NotifyInterfaceUp(uint32_t)
{
}

void
NodeRouting::NotifyInterfaceDown(uint32_t)
{
}

void
NodeRouting::NotifyAddAddress(uint32_t, ns3::Ipv4InterfaceAddress)
{
}

void
NodeRouting::NotifyRemoveAddress(uint32_t, ns3::Ipv4InterfaceAddress)
{
}

void
NodeRouting::SetIpv4(ns3::Ptr<ns3::Ipv4>)
{
}

void
NodeRouting::PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper>, ns3::Time::Unit) const
{
}

} // namespace cosim
