// What an operating system does between TCP and its network card: not queueing in the card.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

namespace cosim {

class WiredSocket;

/// Keeps the queue of an endpoint's own port short; its sockets wait in turn.
///
/// As Linux's TCP small queues do. Without it a sender's whole window stands in its own port: acknowledgements of what
/// arrives there wait behind it, congestion in the fabric is heard of late, and the port drops its own host's packets.
class SendGate
{
  public:
    /// `queued` tells the bytes in the port's queue; the gate is shut from `limit` on.
    SendGate(std::function<uint64_t()> queued, uint64_t limit);

    bool IsShut() const
    {
        return queued_() >= limit_;
    }

    /// A socket has something to send, and is called when there is room. Once in the line is enough.
    void Wait(WiredSocket* socket);

    /// A packet left the queue.
    void Left();

  private:
    void LetIn();

    std::function<uint64_t()> queued_;
    uint64_t limit_;
    std::deque<WiredSocket*> waiting_;
    bool scheduled_ = false;
};

} // namespace cosim
