#include "shared_buffer.h"

#include <algorithm>

namespace cosim {
SharedBuffer::SharedBuffer(const BufferFacts& facts,
                           const std::vector<LinkIn>& in,
                           const std::vector<uint32_t>& out,
                           const LinkPlaces& places,
                           Pause pause)
    : facts_(facts),
      in_(in),
      out_(out),
      places_(places),
      pause_(std::move(pause)),
      held_(in.size())
{
    for (const LinkIn& one : in_)
    {
        headroom_ += one.headroom;
    }
}

void
SharedBuffer::UseClasses(uint32_t num_classes)
{
    num_classes_ = num_classes;
}

double
SharedBuffer::Threshold() const
{
    if (facts_.pause_bytes > 0)
    {
        return static_cast<double>(facts_.pause_bytes);
    }
    const double room = static_cast<double>(facts_.room) - static_cast<double>(headroom_ * num_classes_);
    return facts_.alpha * std::max(room - static_cast<double>(used_), 0.0);
}

bool
SharedBuffer::AdmitLossless(const Packet& packet, Held& held, uint64_t headroom)
{
    const uint32_t size = packet.wire_bytes;
    if (held.headroom == 0 && static_cast<double>(held.shared + size) <= Threshold())
    {
        held.shared += size;
        used_ += size;
        return true;
    }
    if (held.headroom + size > headroom)
    {
        return false;
    }
    held.headroom += size;
    if (!held.stopped)
    {
        held.stopped = true;
        pause_(packet.in_link, packet.priority, true);
    }
    return true;
}

bool
SharedBuffer::Admit(const Packet& packet, uint32_t out, uint64_t queue_bytes, uint64_t port_bytes)
{
    const uint32_t size = packet.wire_bytes;
    if (facts_.lossless)
    {
        const uint32_t place = places_.in[packet.in_link];
        Held& held = held_[place][packet.priority];
        if (!AdmitLossless(packet, held, in_[place].headroom))
        {
            return false;
        }
        held.between.resize(out_.size());
        held.between[places_.out[out]] += size;
        return true;
    }
    const bool fits = facts_.shared ? static_cast<double>(queue_bytes + size) <= Threshold() && used_ + size <= facts_.room
                                    : port_bytes + size <= facts_.room / std::max<size_t>(out_.size(), 1);
    used_ += fits ? size : 0;
    return fits;
}

void
SharedBuffer::Leave(const Packet& packet, uint32_t out)
{
    const uint64_t size = packet.wire_bytes;
    if (!facts_.lossless)
    {
        used_ -= size;
        return;
    }
    Held& held = held_[places_.in[packet.in_link]][packet.priority];
    held.between[places_.out[out]] -= size;
    const uint64_t of_headroom = std::min(size, held.headroom);
    held.headroom -= of_headroom;
    held.shared -= size - of_headroom;
    used_ -= size - of_headroom;
    const double low = Threshold() - 2.0 * facts_.wire_bytes;
    if (held.stopped && held.headroom == 0 && (held.shared == 0 || static_cast<double>(held.shared) <= low))
    {
        held.stopped = false;
        pause_(packet.in_link, packet.priority, false);
    }
}

bool
SharedBuffer::Stopped(uint32_t link, uint32_t priority) const
{
    return held_[places_.in[link]][priority].stopped;
}

uint64_t
SharedBuffer::Between(uint32_t in, uint32_t out, uint32_t priority) const
{
    const auto& between = held_[places_.in[in]][priority].between;
    return between.empty() ? 0 : between[places_.out[out]];
}

} // namespace cosim
