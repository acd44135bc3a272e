#include "channel.h"

#include <ns3/packet.h>
#include <ns3/queue.h>
#include <ns3/simulator.h>

namespace cosim {

NS_OBJECT_ENSURE_REGISTERED(DirectedChannel);

ns3::TypeId
DirectedChannel::GetTypeId()
{
    static ns3::TypeId tid = ns3::TypeId("cosim::DirectedChannel")
                                 .SetParent<ns3::PointToPointChannel>()
                                 .AddConstructor<DirectedChannel>();
    return tid;
}

void
DirectedChannel::Set(uint32_t direction, const Direction& what, BusyMeter* busy)
{
    directions_[direction] = what;
    busy_ = busy;
}

void
DirectedChannel::SetUp(uint32_t direction, bool up)
{
    directions_[direction].up = up;
}

bool
DirectedChannel::TransmitStart(ns3::Ptr<const ns3::Packet> packet,
                               ns3::Ptr<ns3::PointToPointNetDevice> src,
                               ns3::Time tx_time)
{
    const uint32_t wire = src == GetSource(0) ? 0 : 1;
    Direction& direction = directions_[wire];
    if (direction.gate != nullptr)
    {
        direction.gate->Left();
    }
    if (!direction.up)
    {
        ++direction.meter->cut;
        return false;
    }
    if (direction.link == kNoLink)
    {
        return false;
    }
    const uint64_t queued = src->GetQueue()->GetNBytes() +
                            (direction.queue_disc ? direction.queue_disc->GetNBytes() : 0);
    direction.meter->SampleQueue(queued);
    direction.meter->bytes += packet->GetSize();
    busy_->Add(direction.link, ns3::Simulator::Now().GetTimeStep(), tx_time.GetTimeStep());
    auto destination = GetDestination(wire);
    ns3::Simulator::ScheduleWithContext(destination->GetNode()->GetId(),
                                        tx_time + ns3::TimeStep(direction.latency_ps),
                                        &ns3::PointToPointNetDevice::Receive,
                                        destination,
                                        packet->Copy());
    return true;
}

} // namespace cosim
