// The sending side of a queue pair.
#pragma once

#include "coflow.h"
#include "control.h"
#include "intervals.h"
#include "packet.h"
#include "rdma_settings.h"
#include "retransmission_timer.h"
#include "state.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

namespace cosim {

class Port;

/// Cuts messages into packets, keeps to its control's window and rate, and sends again what was lost.
///
/// Go-back-N: from the first missing byte on. Selective repeat, as IRN (Mittal et al. 2018, doi:10.1145/3230543.3230557)
/// has it: what came after a gap is known, the gaps are sent again once, and what is lost then waits for the timeout. What was
/// trimmed is sent again as often as that is said of it, within the window.
class Sender
{
  public:
    enum class Listed : uint8_t
    {
        kNot,
        kReady,
        kTimed,
    };

    struct Way
    {
        uint32_t number;
        uint32_t destination;
        /// Null: switches choose.
        const std::vector<uint32_t>* path;
        Port* port;
    };

    Sender(const RdmaSettings& settings, const Way& way, const PathFacts& facts, PacketPool* pool);

    static int64_t Now();

    /// Goes by another path from its next packet on; null: switches choose.
    void TakeWay(const std::vector<uint32_t>* path, Port* port);
    /// More to send, after all that was given before.
    void Give(uint64_t bytes, uint32_t priority, double weight, Coflow* coflow);

    /// Whether it has something to send that its window lets go.
    bool Wants() const;
    /// When it may.
    int64_t NextTime() const;
    /// The next packet; only when it wants to and may.
    Packet* Make(int64_t now);
    /// An acknowledgement of any kind, or a notification.
    void Take(const Packet& answer);

    uint32_t Priority() const
    {
        return messages_.empty() ? 0 : messages_.front().priority;
    }
    uint64_t RetransmittedPackets() const
    {
        return retransmitted_;
    }
    /// Adds what was sent again in a time that was not simulated.
    void AddRetransmitted(uint64_t packets)
    {
        retransmitted_ += packets;
    }

    /// Everything that was given is acknowledged.
    bool Idle() const
    {
        return messages_.empty();
    }
    /// Idle, and nothing will happen here before more is given: no pacing, no timer of the control.
    bool Quiet(int64_t now) const
    {
        return messages_.empty() && listed == Listed::kNot && control_->NextTimer() == kNever && NextTime() <= now;
    }
    /// What it is left with where it is quiet.
    void State(StateWalk& walk);
    /// When its control's timer last ran out.
    int64_t StirredAt() const
    {
        return stirred_at_;
    }
    /// How often the lazy part of that was read.
    uint64_t Uses() const
    {
        return control_->Uses();
    }

    /// All that has been acknowledged, and what is on its way.
    uint64_t Delivered() const
    {
        return skipped_ + acked_ + known_.Bytes();
    }
    /// What its window and rate come to, bits per second; its window, NaN where it has none; the part of the last round trip's
    /// bytes that was marked.
    double Pace() const;
    double Window() const;
    double Marked() const
    {
        return marked_;
    }
    /// Its control's window and rate; whether that will change it by itself.
    std::pair<double, double> Speed() const
    {
        return {control_->window, control_->rate};
    }
    bool Timed() const
    {
        return control_->NextTimer() != kNever;
    }
    /// When the last of that was acknowledged.
    int64_t DeliveredAt() const
    {
        return delivered_at_;
    }
    uint64_t InFlight() const
    {
        return next_ - acked_ - known_.BytesBelow(next_) - trimmed_.Bytes();
    }
    /// Bytes of the message under way that have not been sent; 0 while something is sent again.
    uint64_t Unsent() const;
    /// Makes the message under way, none of whose last bytes was sent, so much shorter.
    void Skip(uint64_t bytes);

    /// Where the port's list has it; the list's to set.
    Listed listed = Listed::kNot;
    int64_t listed_at = 0;

  private:
    struct Message
    {
        uint64_t begin;
        uint64_t end;
        uint32_t priority;
        double weight;
        Coflow* coflow;
    };

    bool Repeats() const
    {
        return repeat_from_ < repeat_until_;
    }
    uint64_t PacketEnd(uint64_t sequence) const;
    void Acknowledge(uint64_t expected);
    void Lost(const Packet& nack, int64_t now);
    void Trimmed(const Packet& nack, int64_t now);
    void TellLoss(int64_t now);
    void BeginFront();
    void SetGain();
    double RoundTrip() const;
    void CountMarks(const Packet& answer);
    void TimeOut(int64_t now);
    void PlanTimer();
    void OnTimer(int64_t at);
    void Changed();

    const RdmaSettings& settings_;
    Way way_;
    PacketPool* pool_;
    std::unique_ptr<Control> control_;
    RetransmissionTimer timeout_;
    std::deque<Message> messages_;
    uint64_t given_ = 0;
    /// First byte not acknowledged; next byte to send; end of all that was ever sent.
    uint64_t acked_ = 0;
    uint64_t next_ = 0;
    uint64_t highest_ = 0;
    /// Beyond `acked_`, what the receiver has (selective).
    Intervals known_;
    /// Sent before `next_` and trimmed, not sent again yet.
    Intervals trimmed_;
    /// Gaps from here to there are sent again, once.
    uint64_t repeat_from_ = 0;
    uint64_t repeat_until_ = 0;
    /// Losses of data before this are the same event.
    uint64_t recovery_ = 0;
    int64_t sent_at_ = kNeverYet;
    uint32_t sent_bytes_ = 0;
    int64_t timer_ = -1;
    int64_t stirred_at_ = kNeverYet;
    /// Of the round trip that goes on, and of the last one.
    uint64_t round_ends_ = 0;
    uint64_t round_bytes_ = 0;
    uint64_t round_marked_ = 0;
    double marked_ = 0;
    uint64_t retransmitted_ = 0;
    uint64_t skipped_ = 0;
    int64_t delivered_at_ = 0;
};

} // namespace cosim
