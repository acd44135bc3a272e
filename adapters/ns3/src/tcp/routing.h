// Where TCP packets go: explicit paths for connections, or a choice for every packet.
#pragma once

#include <ns3/ipv4-route.h>
#include <ns3/ipv4-routing-protocol.h>
#include <ns3/net-device.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cosim {

/// The address of an endpoint: 10.0.0.0 and its number.
ns3::Ipv4Address AddressOf(uint32_t endpoint);

/// ns-3's routing protocol of one node. Packets are known by their TCP ports, which no two connections share.
class NodeRouting : public ns3::Ipv4RoutingProtocol
{
  public:
    static ns3::TypeId GetTypeId();

    /// Where packets of a connection (its source port * 2^16 + its destination port) go on.
    void AddConnection(uint32_t ports, ns3::Ptr<ns3::NetDevice> out);
    /// Spray: all the ways to an endpoint; each packet takes one.
    void SetChoices(uint32_t endpoint, const std::vector<ns3::Ptr<ns3::NetDevice>>& outs);
    /// Mixed into the choice for each packet.
    void SetSeed(uint64_t seed);

    ns3::Ptr<ns3::Ipv4Route> RouteOutput(ns3::Ptr<ns3::Packet> packet,
                                         const ns3::Ipv4Header& header,
                                         ns3::Ptr<ns3::NetDevice> oif,
                                         ns3::Socket::SocketErrno& fault) override;
    bool RouteInput(ns3::Ptr<const ns3::Packet> packet,
                    const ns3::Ipv4Header& header,
                    ns3::Ptr<const ns3::NetDevice> in,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback multicast,
                    LocalDeliverCallback deliver,
                    ErrorCallback error) override;
    void NotifyInterfaceUp(uint32_t interface) override;
    void NotifyInterfaceDown(uint32_t interface) override;
    void NotifyAddAddress(uint32_t interface, ns3::Ipv4InterfaceAddress address) override;
    void NotifyRemoveAddress(uint32_t interface, ns3::Ipv4InterfaceAddress address) override;
    void SetIpv4(ns3::Ptr<ns3::Ipv4> ipv4) override;
    void PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper> stream, ns3::Time::Unit unit) const override;

    void SetAddress(ns3::Ipv4Address address)
    {
        address_ = address;
    }

  private:
    ns3::Ptr<ns3::Ipv4Route> Lookup(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv4Header& header);

    ns3::Ipv4Address address_;
    std::unordered_map<uint32_t, ns3::Ptr<ns3::Ipv4Route>> connections_;
    std::unordered_map<uint32_t, std::vector<ns3::Ptr<ns3::Ipv4Route>>> choices_;
    uint64_t seed_ = 0;
    uint64_t packets_ = 0;
};

} // namespace cosim
