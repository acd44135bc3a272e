// A topology in ns-3: nodes, cables, queues, TCP, and the connections between endpoints.
#pragma once

#include "channel.h"
#include "connection.h"
#include "fabric.h"
#include "meter.h"
#include "path_finder.h"
#include "paths.h"
#include "routing.h"
#include "send_gate.h"
#include "tcp_settings.h"

#include <ns3/data-rate.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

namespace cosim {

/// TCP over IPv4 over point-to-point links.
class TcpFabric : public Fabric
{
  public:
    TcpFabric(TcpSettings settings, Arrived arrived);

    void GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set) override;
    void ChangeLink(const LinkEvent& event) override;
    void ChangeRoutes(int64_t time, std::vector<uint32_t> dead) override;
    uint32_t Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel) override;
    void Send(uint64_t id, const FlowSpec& spec, Coflow* coflow) override;
    std::map<std::string, std::string> Told() const override;
    std::vector<int64_t> LinkBytes() override;
    std::vector<LinkMeasure> Measures() override;

    const BusyMeter& Busy() const override
    {
        return busy_;
    }

  private:
    /// Takes marks and drops of the queue disciplines up to now.
    void ReadDiscs();
    void SetDefaults() const;
    void MakeNodes();
    void MakeCable(uint32_t link, uint32_t opposite);
    ns3::Ptr<ns3::PointToPointNetDevice> MakePort(uint32_t node, ns3::DataRate rate, uint32_t link);
    ns3::Ptr<ns3::QueueDisc> MakeRed(ns3::Ptr<ns3::PointToPointNetDevice> port, uint32_t node);
    void ScheduleLinkEvents();
    /// Throws SessionError (INVALID_FLOWS) where there is no such link.
    void CheckLink(uint32_t link) const;
    void Change(const LinkEvent& event);
    void AddPath(const std::vector<uint32_t>& path, uint32_t ports);
    /// Every node's ways to an endpoint whose packets are sprayed.
    void SetSpray(uint32_t dst);
    void Hear(const RouteChange& change);
    /// Has a connection's packets go round the links that are known to be dead; its links from source to destination.
    std::vector<uint32_t> TakeWay(uint32_t number, uint32_t src, uint32_t dst, uint32_t channel);

    const TcpSettings settings_;
    Arrived arrived_;
    PathFinder finder_;
    BusyMeter busy_;
    std::vector<LinkMeter> meters_;
    std::vector<ns3::Ptr<ns3::Node>> nodes_;
    std::vector<ns3::Ptr<NodeRouting>> routings_;
    /// Of each directed link: its sending port, its cable and direction, its queue discipline if any.
    std::vector<ns3::Ptr<ns3::PointToPointNetDevice>> ports_;
    std::vector<std::pair<ns3::Ptr<DirectedChannel>, uint32_t>> cables_;
    std::vector<ns3::Ptr<ns3::QueueDisc>> discs_;
    std::vector<std::unique_ptr<SendGate>> gates_;
    std::map<std::pair<uint32_t, GivenPaths::Triple>, uint32_t> numbers_;
    GivenPaths given_;
    std::set<uint32_t> sprayed_;
    /// Sets of dead links that routing hears of, by number from 1 on.
    std::map<std::vector<uint32_t>, uint32_t> dead_sets_;
    uint32_t dead_set_ = 0;
    std::vector<std::unique_ptr<Connection>> connections_;
};

} // namespace cosim
