#include "send_list.h"

#include "sender.h"
#include "times.h"

#include <algorithm>

namespace cosim {

void
SendList::Add(Sender* sender)
{
    if (sender->listed == Sender::Listed::kReady || !sender->Wants())
    {
        return;
    }
    const int64_t at = sender->NextTime();
    if (at <= Sender::Now())
    {
        sender->listed = Sender::Listed::kReady;
        ready_[sender->Priority()].push_back(sender);
    }
    else if (sender->listed == Sender::Listed::kNot || at < sender->listed_at)
    {
        // What it said before stays in the heap and is passed over.
        sender->listed = Sender::Listed::kTimed;
        sender->listed_at = at;
        timed_.push({at, order_++, sender});
    }
}

void
SendList::Remove(Sender* sender)
{
    for (auto& ready : ready_)
    {
        ready.erase(std::remove(ready.begin(), ready.end(), sender), ready.end());
    }
    decltype(timed_) others;
    for (; !timed_.empty(); timed_.pop())
    {
        if (timed_.top().sender != sender)
        {
            others.push(timed_.top());
        }
    }
    timed_.swap(others);
    sender->listed = Sender::Listed::kNot;
}

void
SendList::Ripen(int64_t now)
{
    while (!timed_.empty() && timed_.top().at <= now)
    {
        const Timed top = timed_.top();
        timed_.pop();
        if (top.sender->listed == Sender::Listed::kTimed && top.sender->listed_at == top.at)
        {
            top.sender->listed = Sender::Listed::kNot;
            Add(top.sender);
        }
    }
}

Packet*
SendList::Next(uint32_t priority, int64_t now)
{
    auto& ready = ready_[priority];
    while (!ready.empty())
    {
        Sender* sender = ready.front();
        ready.pop_front();
        sender->listed = Sender::Listed::kNot;
        if (sender->Priority() == priority && sender->Wants() && sender->NextTime() <= now)
        {
            Packet* packet = sender->Make(now);
            Add(sender);
            return packet;
        }
        Add(sender);
    }
    return nullptr;
}

int64_t
SendList::NextTime() const
{
    while (!timed_.empty())
    {
        const Timed& top = timed_.top();
        if (top.sender->listed == Sender::Listed::kTimed && top.sender->listed_at == top.at)
        {
            return top.at;
        }
        timed_.pop();
    }
    return kNever;
}

} // namespace cosim
