#include "packet.h"

#include <utility>

namespace cosim {

Packet*
PacketPool::Take()
{
    if (free_ == nullptr)
    {
        all_.push_back(std::make_unique<Packet>());
        return all_.back().get();
    }
    Packet* packet = std::exchange(free_, free_->next);
    std::vector<HopReport> room = std::move(packet->telemetry);
    room.clear();
    *packet = Packet{};
    packet->telemetry = std::move(room);
    return packet;
}

void
PacketPool::Release(Packet* packet)
{
    packet->next = std::exchange(free_, packet);
}

void
PacketQueue::Push(Packet* packet)
{
    packet->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = packet;
    last_ = packet;
    bytes_ += packet->wire_bytes;
}

Packet*
PacketQueue::Pop()
{
    Packet* packet = first_;
    first_ = packet->next;
    last_ = first_ == nullptr ? nullptr : last_;
    bytes_ -= packet->wire_bytes;
    return packet;
}

} // namespace cosim
