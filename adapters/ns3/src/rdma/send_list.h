// The queue pairs that send through a port.
#pragma once

#include "packet.h"

#include <array>
#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

namespace cosim {

class Sender;

/// Queue pairs that may send now take turns, packet by packet, within their class; those that pace wait for their time.
class SendList
{
  public:
    /// A queue pair may have something to send, or may send earlier than it said. Cheap if it is listed already.
    void Add(Sender* sender);

    /// A queue pair that sends by another port from now on.
    void Remove(Sender* sender);

    /// The next packet of a class, by turns; null: nobody may send now.
    Packet* Next(uint32_t priority, int64_t now);

    /// Lets in those whose time has come.
    void Ripen(int64_t now);

    /// Whether somebody of a class may send now.
    bool HasReady(uint32_t priority) const
    {
        return !ready_[priority].empty();
    }

    /// When the first of those that wait for their time may send; kNever.
    int64_t NextTime() const;

  private:
    struct Timed
    {
        int64_t at;
        uint64_t order;
        Sender* sender;
        bool operator>(const Timed& other) const
        {
            return at != other.at ? at > other.at : order > other.order;
        }
    };

    std::array<std::deque<Sender*>, kMaxClasses> ready_;
    mutable std::priority_queue<Timed, std::vector<Timed>, std::greater<>> timed_;
    uint64_t order_ = 0;
};

} // namespace cosim
