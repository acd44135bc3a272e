#include "port.h"

#include "mix.h"
#include "send_list.h"
#include "shared_buffer.h"
#include "times.h"

#include <ns3/simulator.h>

#include <algorithm>
#include <cmath>

namespace cosim {
namespace {

int64_t
Now()
{
    return ns3::Simulator::Now().GetTimeStep();
}

} // namespace

Port::Port(const LinkFacts& facts, SharedBuffer* buffer, PacketPool* pool, BusyLog* busy, uint64_t seed, Arrive arrive)
    : facts_(facts),
      buffer_(buffer),
      pool_(pool),
      busy_(busy),
      seed_(Mix(seed + facts.link * kGolden)),
      arrive_(std::move(arrive)),
      senders_(std::make_unique<SendList>())
{
    paused_since_.fill(-1);
}

Port::~Port() = default;

void
Port::Enqueue(Packet* packet)
{
    if (packet->kind == PacketKind::kData && !packet->trimmed)
    {
        queues_[packet->priority].Push(packet);
        waiting_ += packet->wire_bytes;
    }
    else
    {
        control_.Push(packet);
    }
    Wake();
}

void
Port::EnqueuePause(Packet* frame)
{
    pauses_.Push(frame);
    Wake();
}

void
Port::SetPaused(uint32_t priority, bool paused)
{
    int64_t& since = paused_since_[priority];
    if ((since >= 0) == paused)
    {
        return;
    }
    const int64_t now = Now();
    since = paused ? now : -1;
    paused_classes_ += paused ? 1 : -1;
    if (paused && paused_classes_ == 1)
    {
        paused_from_ = now;
    }
    else if (paused_classes_ == 0)
    {
        paused_ps_ += now - paused_from_;
    }
    if (!paused)
    {
        Wake();
    }
}

void
Port::ForgetPauses()
{
    for (uint32_t priority = 0; priority < kMaxClasses; ++priority)
    {
        SetPaused(priority, false);
    }
}

int64_t
Port::PausedPs(int64_t now) const
{
    return paused_ps_ + (paused_classes_ > 0 ? now - paused_from_ : 0);
}

void
Port::Wake()
{
    const int64_t now = Now();
    if (now >= free_at_)
    {
        senders_->Ripen(now);
        if (Packet* packet = Pick(now))
        {
            Start(packet, now);
        }
    }
    PlanNext(now);
}

Packet*
Port::Pick(int64_t now)
{
    for (PacketQueue* first : {&pauses_, &control_})
    {
        if (!first->Empty())
        {
            return first->Pop();
        }
    }
    for (uint32_t priority = 0; priority < kMaxClasses; ++priority)
    {
        if (paused_since_[priority] >= 0)
        {
            continue;
        }
        PacketQueue& queue = queues_[priority];
        // Both have something only at endpoints that forward: then they take turns.
        if (queue.Empty() || own_turn_)
        {
            if (Packet* packet = senders_->Next(priority, now))
            {
                own_turn_ = false;
                return packet;
            }
        }
        if (!queue.Empty())
        {
            own_turn_ = true;
            Packet* packet = queue.Pop();
            Leave(packet, now);
            return packet;
        }
    }
    return nullptr;
}

double
Port::Draw()
{
    if (tell_draw_)
    {
        tell_draw_(facts_.link);
    }
    return static_cast<double>(Mix(seed_ + ++drawn_ * kGolden) >> 11) * 0x1.0p-53;
}

void
Port::Leave(Packet* packet, int64_t now)
{
    waiting_ -= packet->wire_bytes;
    buffer_->Leave(*packet, facts_.link);
    const double chance = facts_.marking.Chance(queues_[packet->priority].Bytes());
    if (chance > 0 && (chance >= 1 || Draw() < chance))
    {
        facts_.meter->marks += packet->marked ? 0 : 1;
        packet->marked = true;
    }
    if (telemetry_)
    {
        packet->telemetry.push_back({now, sent_bytes_, waiting_, facts_.rate_bps, facts_.link});
    }
}

void
Port::Start(Packet* packet, int64_t now)
{
    const auto takes = static_cast<int64_t>(std::ceil(packet->wire_bytes * 8e12 / facts_.rate_bps));
    free_at_ = now + takes;
    stirred_at_ = now;
    if (!up_)
    {
        facts_.meter->drops += packet->kind == PacketKind::kData ? 1 : 0;
        pool_->Release(packet);
        return;
    }
    facts_.meter->SampleQueue(waiting_);
    facts_.meter->bytes += packet->wire_bytes;
    sent_bytes_ += packet->wire_bytes;
    busy_->Add(facts_.link, now, takes);
    ++on_wire_;
    ns3::Simulator::Schedule(ns3::TimeStep(takes + facts_.latency_ps), [this, packet] {
        --on_wire_;
        stirred_at_ = Now();
        arrive_(packet);
    });
}

void
Port::PlanNext(int64_t now)
{
    bool waits = !pauses_.Empty() || !control_.Empty();
    for (uint32_t priority = 0; priority < kMaxClasses && !waits; ++priority)
    {
        waits = paused_since_[priority] < 0 && (!queues_[priority].Empty() || senders_->HasReady(priority));
    }
    if (waits)
    {
        Plan(std::max(now, free_at_));
        return;
    }
    const int64_t later = senders_->NextTime();
    if (later != kNever)
    {
        Plan(std::max(later, free_at_));
    }
}

void
Port::Plan(int64_t at)
{
    if (planned_ >= 0 && planned_ <= at)
    {
        return;
    }
    planned_ = at;
    ns3::Simulator::Schedule(ns3::TimeStep(at - Now()), [this, at] { OnTime(at); });
}

void
Port::OnTime(int64_t at)
{
    // An event that an earlier one has made needless.
    if (planned_ != at)
    {
        return;
    }
    planned_ = -1;
    Wake();
}

} // namespace cosim
