#include "send_gate.h"

#include "connection.h"

#include <ns3/simulator.h>

#include <utility>

namespace cosim {

SendGate::SendGate(std::function<uint64_t()> queued, uint64_t limit)
    : queued_(std::move(queued)),
      limit_(limit)
{
}

void
SendGate::Wait(WiredSocket* socket)
{
    if (!socket->waiting)
    {
        socket->waiting = true;
        waiting_.push_back(socket);
    }
}

void
SendGate::Left()
{
    // Not from within: the port is in the middle of sending, and may have been called by the very socket.
    if (!waiting_.empty() && !scheduled_)
    {
        scheduled_ = true;
        ns3::Simulator::ScheduleNow(&SendGate::LetIn, this);
    }
}

void
SendGate::LetIn()
{
    scheduled_ = false;
    while (!waiting_.empty() && !IsShut())
    {
        WiredSocket* next = waiting_.front();
        waiting_.pop_front();
        next->waiting = false;
        next->Resume();
    }
}

} // namespace cosim
