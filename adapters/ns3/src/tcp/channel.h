// A cable: two directed links, each with its own latency, meter and state.
#pragma once

#include "busy.h"
#include "meter.h"
#include "path_finder.h"
#include "send_gate.h"

#include <ns3/point-to-point-channel.h>
#include <ns3/point-to-point-net-device.h>
#include <ns3/queue-disc.h>

#include <array>

namespace cosim {

/// ns-3's point-to-point channel has one delay for both directions; here each has its own, and may fail.
class DirectedChannel : public ns3::PointToPointChannel
{
  public:
    static ns3::TypeId GetTypeId();

    /// One direction; `link` is kNoLink where the topology has a link the other way only.
    struct Direction
    {
        uint32_t link = kNoLink;
        int64_t latency_ps = 0;
        bool up = true;
        LinkMeter* meter = nullptr;
        ns3::Ptr<ns3::QueueDisc> queue_disc;
        /// Hears of each packet that leaves the queue; null: nobody does.
        SendGate* gate = nullptr;
    };

    void Set(uint32_t direction, const Direction& what, BusyMeter* busy);
    /// What is sent while a link is down is lost; what is on its way arrives.
    void SetUp(uint32_t direction, bool up);

    bool TransmitStart(ns3::Ptr<const ns3::Packet> packet,
                       ns3::Ptr<ns3::PointToPointNetDevice> src,
                       ns3::Time tx_time) override;

  private:
    std::array<Direction, 2> directions_;
    BusyMeter* busy_ = nullptr;
};

} // namespace cosim
