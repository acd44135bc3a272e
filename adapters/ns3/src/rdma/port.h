// The sending end of a link.
#pragma once

#include "busy_log.h"
#include "marking.h"
#include "meter.h"
#include "packet.h"
#include "state.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

namespace cosim {

class SharedBuffer;
class SendList;

/// What a directed link is, and what it measures.
struct LinkFacts
{
    uint32_t link = 0;
    uint32_t src = 0;
    uint32_t dst = 0;
    double rate_bps = 0;
    int64_t latency_ps = 0;
    Marking marking;
    LinkMeter* meter = nullptr;
};

/// Sends one packet at a time: acknowledgements, trimmed packets and pause frames first, then data by class, packets on their way through
/// and those of the node's own queue pairs in turns.
///
/// Marks and telemetry are written when a packet leaves, of what it leaves behind (as switches with ECN at dequeue do, and the
/// simulator of HPCC's authors): marks by its class's queue, telemetry of all. A port that has nothing to send costs no events.
class Port
{
  public:
    using Arrive = std::function<void(Packet*)>;

    /// `buffer` is that of the link's source node; `arrive` takes packets at the other end.
    Port(const LinkFacts& facts, SharedBuffer* buffer, PacketPool* pool, BusyLog* busy, uint64_t seed, Arrive arrive);
    ~Port();

    /// Data on its way through, or anything else that doesn't come from a queue pair here.
    void Enqueue(Packet* packet);
    /// A pause frame: before everything else, after those before it, as the last one counts.
    void EnqueuePause(Packet* frame);
    /// Send if there is something: a queue pair may have become ready.
    void Wake();
    /// The other end stops a class, or lets it go on.
    void SetPaused(uint32_t priority, bool paused);
    /// All classes go on: pauses run out where their frames stop coming.
    void ForgetPauses();
    /// What is sent while a link is down is lost; what is on its way arrives.
    void SetUp(bool up)
    {
        up_ = up;
    }
    bool Up() const
    {
        return up_;
    }
    /// From the next packet on. Thresholds and headroom stay those of the rate that the link was built with.
    void SetRate(double rate_bps)
    {
        facts_.rate_bps = rate_bps;
    }
    /// `tell` hears of each number that is drawn here.
    void TellDraws(std::function<void(uint32_t link)> tell)
    {
        tell_draw_ = std::move(tell);
    }
    /// Whether switches write telemetry here.
    void WriteTelemetry()
    {
        telemetry_ = true;
    }

    const LinkFacts& Facts() const
    {
        return facts_;
    }
    SendList& Senders()
    {
        return *senders_;
    }
    /// Data of a class that waits here on its way through.
    uint64_t QueueBytes(uint32_t priority) const
    {
        return queues_[priority].Bytes();
    }
    /// Data of every class that waits here on its way through.
    uint64_t QueueBytes() const
    {
        return waiting_;
    }
    /// When the class was stopped; -1: it is not.
    int64_t PausedSince(uint32_t priority) const
    {
        return paused_since_[priority];
    }
    /// What it is left with where nothing is anywhere.
    void State(StateWalk& walk)
    {
        walk.Value(own_turn_);
        walk.Time(free_at_, 0);
        if (walk.Loads())
        {
            stirred_at_ = kNeverYet;
        }
    }
    /// No packet waits here or is on the link.
    bool Quiet() const
    {
        return on_wire_ == 0 && waiting_ == 0 && pauses_.Empty() && control_.Empty();
    }
    /// When a packet was last put on the link, or came to its end.
    int64_t StirredAt() const
    {
        return stirred_at_;
    }
    /// Bytes sent, as telemetry tells them: those of a time that was leapt over are not among them.
    uint64_t SentBytes() const
    {
        return sent_bytes_;
    }
    void AddSent(uint64_t bytes)
    {
        sent_bytes_ += bytes;
    }
    /// Numbers drawn for marks.
    uint64_t Drawn() const
    {
        return drawn_;
    }
    /// Adds pauses of a time that was not simulated.
    void AddPaused(int64_t ps)
    {
        paused_ps_ += ps;
    }
    /// Time that any class was stopped, up to `now`.
    int64_t PausedPs(int64_t now) const;

  private:
    Packet* Pick(int64_t now);
    void Leave(Packet* packet, int64_t now);
    /// From 0 up to 1.
    double Draw();
    void Start(Packet* packet, int64_t now);
    void Plan(int64_t at);
    void PlanNext(int64_t now);
    void OnTime(int64_t at);

    LinkFacts facts_;
    SharedBuffer* buffer_;
    PacketPool* pool_;
    BusyLog* busy_;
    uint64_t seed_;
    Arrive arrive_;
    std::unique_ptr<SendList> senders_;
    PacketQueue pauses_;
    PacketQueue control_;
    std::array<PacketQueue, kMaxClasses> queues_;
    uint64_t waiting_ = 0;
    uint64_t drawn_ = 0;
    std::function<void(uint32_t link)> tell_draw_;
    uint64_t sent_bytes_ = 0;
    int64_t free_at_ = 0;
    uint64_t on_wire_ = 0;
    int64_t stirred_at_ = kNeverYet;
    /// Of the earliest event that will look again; -1: none.
    int64_t planned_ = -1;
    std::array<int64_t, kMaxClasses> paused_since_;
    int64_t paused_from_ = -1;
    int64_t paused_ps_ = 0;
    uint32_t paused_classes_ = 0;
    bool up_ = true;
    bool telemetry_ = false;
    /// Whose turn it is: the queue pairs', or the packets' on their way through.
    bool own_turn_ = false;
};

} // namespace cosim
