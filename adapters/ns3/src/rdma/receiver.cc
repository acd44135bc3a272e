#include "receiver.h"

#include "port.h"

#include <ns3/simulator.h>

namespace cosim {

Receiver::Receiver(const RdmaSettings& settings, const Way& way, PacketPool* pool, const Arrived& arrived)
    : settings_(settings),
      way_(way),
      pool_(pool),
      arrived_(arrived),
      interval_ps_(settings.Kind().notifies ? static_cast<int64_t>(settings.parameters.at("cnp_interval")) : 0)
{
}

void
Receiver::Expect(uint64_t id, uint64_t end)
{
    messages_.push_back({end, id});
}

void
Receiver::Take(Packet& data)
{
    if (data.trimmed)
    {
        Answer(PacketKind::kNack, data);
        return;
    }
    const bool gap = data.sequence > expected_;
    if (gap && !settings_.Selective())
    {
        if (!nacked_)
        {
            nacked_ = true;
            Answer(PacketKind::kNack, data);
        }
        return;
    }
    if (data.marked && settings_.Kind().notifies)
    {
        Notify();
    }
    Store(data);
    const bool lost = gap && !settings_.OutOfOrder();
    Answer(lost ? PacketKind::kNack : PacketKind::kAck, data);
}

void
Receiver::Store(const Packet& data)
{
    const uint64_t end = data.sequence + data.payload_bytes;
    if (end <= expected_)
    {
        return;
    }
    if (data.sequence > expected_)
    {
        early_.Add(data.sequence, end);
        return;
    }
    expected_ = early_.EndFrom(end);
    early_.DropBelow(expected_);
    nacked_ = false;
    while (!messages_.empty() && messages_.front().end <= expected_)
    {
        const uint64_t id = messages_.front().id;
        messages_.pop_front();
        arrived_(id);
    }
}

void
Receiver::Skip(uint64_t bytes)
{
    for (Message& message : messages_)
    {
        message.end -= bytes;
    }
}

Packet*
Receiver::Make(PacketKind kind) const
{
    Packet* packet = pool_->Take();
    packet->kind = kind;
    packet->wire_bytes = kAckBytes + (settings_.Kind().telemetry ? kTelemetryBytes : 0);
    packet->queue_pair = way_.number;
    packet->destination = way_.destination;
    packet->in_link = kNoLink;
    packet->path = way_.path;
    packet->hop = 1;
    packet->expected = expected_;
    return packet;
}

void
Receiver::Answer(PacketKind kind, Packet& data)
{
    Packet* packet = Make(kind);
    packet->sequence = data.sequence;
    packet->payload_bytes = data.payload_bytes;
    packet->marked = data.marked;
    packet->trimmed = data.trimmed;
    packet->sent_ps = data.sent_ps;
    packet->telemetry.swap(data.telemetry);
    way_.port->Enqueue(packet);
}

void
Receiver::Notify()
{
    const int64_t now = ns3::Simulator::Now().GetTimeStep();
    if (now - notified_at_ >= interval_ps_)
    {
        SendNotification();
    }
    else if (!notification_due_)
    {
        notification_due_ = true;
        ns3::Simulator::Schedule(ns3::TimeStep(notified_at_ + interval_ps_ - now), [this] {
            notification_due_ = false;
            SendNotification();
        });
    }
}

void
Receiver::SendNotification()
{
    notified_at_ = ns3::Simulator::Now().GetTimeStep();
    way_.port->Enqueue(Make(PacketKind::kCnp));
}

} // namespace cosim
