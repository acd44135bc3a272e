// A topology in ns-3: nodes, cables, queues, TCP, and the connections between endpoints.
#pragma once

#include "busy.h"
#include "channel.h"
#include "connection.h"
#include "meter.h"
#include "paths.h"
#include "routing.h"
#include "send_gate.h"
#include "settings.h"

#include <map>
#include <memory>
#include <vector>

namespace cosim {

/// Built for one session; needs a Clock that lives longer.
class Fabric
{
  public:
    Fabric(const Settings& settings, Connection::Arrived arrived);

    /// The number of a job's connection; made when first asked for. Throws SessionError (NO_PATH).
    uint32_t Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel);

    Connection& At(uint32_t connection)
    {
        return *connections_[connection];
    }

    /// The links of a triple, for RoutingKind::kGiven. Throws SessionError (INVALID_FLOWS) unless they lead there.
    void GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links);

    /// Meters of the directed links, marks and drops up to now.
    const std::vector<LinkMeter>& Meters();

    const BusyMeter& Busy() const
    {
        return busy_;
    }

  private:
    void SetDefaults() const;
    void MakeNodes();
    void MakeCable(uint32_t link, uint32_t opposite);
    ns3::Ptr<ns3::PointToPointNetDevice> MakePort(uint32_t node, uint64_t rate_bps, uint32_t link);
    ns3::Ptr<ns3::QueueDisc> MakeRed(ns3::Ptr<ns3::PointToPointNetDevice> port, uint32_t node);
    void ScheduleLinkEvents();
    void AddPath(const std::vector<uint32_t>& path, uint32_t ports);
    void AddSpray(uint32_t dst);

    const Settings& settings_;
    Connection::Arrived arrived_;
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
    std::vector<std::unique_ptr<Connection>> connections_;
};

} // namespace cosim
