// Where packets go: explicit paths for connections, or a choice for every packet.
#pragma once

#include "settings.h"

#include <ns3/ipv4-route.h>
#include <ns3/ipv4-routing-protocol.h>
#include <ns3/net-device.h>

#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace cosim {

/// The address of an endpoint: 10.0.0.0 and its number.
ns3::Ipv4Address AddressOf(uint32_t endpoint);

/// Fewest-link paths over directed links; distances are found once for each destination that is asked for.
class PathFinder
{
  public:
    explicit PathFinder(const Settings& settings);

    /// Links from src to dst. ECMP: a hash of (src, dst, channel, seed) and the node picks among the equally near, as
    /// cosim's own routing `ecmp` does. Throws SessionError (NO_PATH).
    std::vector<uint32_t> Find(uint32_t src, uint32_t dst, uint32_t channel);

    /// Out-links of a node on a shortest way to dst.
    std::vector<uint32_t> Choices(uint32_t node, uint32_t dst);

    /// The way back along the same cables; the shortest one where some link has no opposite.
    std::vector<uint32_t> Back(const std::vector<uint32_t>& path, uint32_t src, uint32_t dst, uint32_t channel);

    /// The link of the same cable the other way, or kNoLink.
    uint32_t Opposite(uint32_t link) const
    {
        return opposite_[link];
    }

  private:
    const std::vector<uint32_t>& Distances(uint32_t dst);

    const Settings& settings_;
    std::vector<std::vector<uint32_t>> out_;
    std::vector<std::vector<uint32_t>> in_;
    std::vector<uint32_t> opposite_;
    std::unordered_map<uint32_t, std::vector<uint32_t>> distances_;
};

/// ns-3's routing protocol of one node. Packets are known by their TCP ports, which no two connections share.
class NodeRouting : public ns3::Ipv4RoutingProtocol
{
  public:
    static ns3::TypeId GetTypeId();

    /// Where packets of a connection (its source port * 2^16 + its destination port) go on.
    void AddConnection(uint32_t ports, ns3::Ptr<ns3::NetDevice> out);
    /// Spray: all the ways to an endpoint; each packet takes one.
    void AddChoices(uint32_t endpoint, const std::vector<ns3::Ptr<ns3::NetDevice>>& outs);
    /// Mixed into the choice for each packet.
    void SetSeed(uint64_t seed);
    bool HasChoices(uint32_t endpoint) const;

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
