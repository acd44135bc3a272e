#include "sender.h"

#include "port.h"
#include "send_list.h"

#include <ns3/simulator.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace cosim {

Sender::Sender(const RdmaSettings& settings, const Way& way, const PathFacts& facts, PacketPool* pool)
    : settings_(settings),
      way_(way),
      pool_(pool),
      control_(settings.Kind().make(facts, settings.parameters)),
      timeout_(settings, [this] { return InFlight() > 0; }, [this](int64_t now) { TimeOut(now); })
{
}

int64_t
Sender::Now()
{
    return ns3::Simulator::Now().GetTimeStep();
}

void
Sender::TakeWay(const std::vector<uint32_t>* path, Port* port)
{
    way_.path = path;
    if (port != way_.port)
    {
        way_.port->Senders().Remove(this);
        way_.port = port;
        Changed();
    }
}

void
Sender::Give(uint64_t bytes, uint32_t priority, double weight, Coflow* coflow)
{
    messages_.push_back({given_, given_ + bytes, priority, weight, coflow});
    given_ += bytes;
    if (messages_.size() == 1)
    {
        BeginFront();
    }
    Changed();
}

void
Sender::BeginFront()
{
    if (control_->weight != messages_.front().weight)
    {
        control_->weight = messages_.front().weight;
        control_->OnWeight();
    }
}

bool
Sender::Wants() const
{
    if (Repeats())
    {
        return true;
    }
    const uint64_t in_flight = InFlight();
    return (next_ < given_ || !trimmed_.Empty()) && (in_flight == 0 || static_cast<double>(in_flight) < control_->window);
}

int64_t
Sender::NextTime() const
{
    double rate = control_->rate;
    const PathFacts& path = control_->path;
    // Less than a packet a round trip: packets are apart by more than one.
    if (control_->window < path.mss_bytes)
    {
        const double rtt = RoundTrip();
        rate = std::min(rate, control_->window * 8e12 / rtt);
    }
    if (sent_at_ == kNeverYet || rate >= path.line_bps * (1 - 1e-9))
    {
        return 0;
    }
    return sent_at_ + static_cast<int64_t>(std::ceil(sent_bytes_ * 8e12 / rate));
}

uint64_t
Sender::PacketEnd(uint64_t sequence) const
{
    const auto after = std::upper_bound(messages_.begin(),
                                        messages_.end(),
                                        sequence,
                                        [](uint64_t at, const Message& one) { return at < one.begin; });
    const Message& message = *std::prev(after);
    const uint64_t payload = control_->path.mss_bytes;
    return std::min(message.begin + ((sequence - message.begin) / payload + 1) * payload, message.end);
}

Packet*
Sender::Make(int64_t now)
{
    const bool again = !trimmed_.Empty();
    const bool repeats = !again && Repeats();
    const uint64_t begin = again ? trimmed_.First() : repeats ? repeat_from_ : next_;
    const uint64_t end = PacketEnd(begin);
    if (InFlight() == 0)
    {
        timeout_.Restart(now);
    }
    retransmitted_ += begin < highest_ ? 1 : 0;
    if (again)
    {
        trimmed_.Remove(begin, end);
    }
    else
    {
        (repeats ? repeat_from_ : next_) = known_.EndFrom(end);
    }
    highest_ = std::max(highest_, end);
    Packet* packet = pool_->Take();
    packet->kind = PacketKind::kData;
    packet->priority = static_cast<uint8_t>(Priority());
    packet->payload_bytes = static_cast<uint32_t>(end - begin);
    packet->wire_bytes = packet->payload_bytes + settings_.WireBytes() - control_->path.mss_bytes;
    packet->queue_pair = way_.number;
    packet->destination = way_.destination;
    packet->in_link = kNoLink;
    packet->path = way_.path;
    packet->hop = 1;
    packet->sequence = begin;
    packet->sent_ps = now;
    sent_at_ = now;
    sent_bytes_ = packet->wire_bytes;
    SetGain();
    control_->OnSent(now, packet->payload_bytes);
    PlanTimer();
    return packet;
}

void
Sender::SetGain()
{
    const Coflow* coflow = messages_.empty() ? nullptr : messages_.front().coflow;
    if (settings_.mltcp && coflow != nullptr)
    {
        control_->gain = settings_.mltcp_slope * coflow->Share() + settings_.mltcp_intercept;
    }
}

void
Sender::Take(const Packet& answer)
{
    const int64_t now = Now();
    SetGain();
    if (answer.kind == PacketKind::kCnp)
    {
        control_->OnNotification(now);
        Changed();
        return;
    }
    if (answer.trimmed)
    {
        Trimmed(answer, now);
        Changed();
        return;
    }
    const int64_t rtt = now - answer.sent_ps;
    timeout_.Measure(rtt);
    CountMarks(answer);
    const bool limited = static_cast<double>(InFlight() + control_->path.mss_bytes) > control_->window;
    const uint64_t had = acked_ + known_.Bytes();
    if (settings_.Selective() && answer.sequence >= answer.expected && answer.sequence >= acked_)
    {
        known_.Add(answer.sequence, answer.sequence + answer.payload_bytes);
        trimmed_.Remove(answer.sequence, answer.sequence + answer.payload_bytes);
    }
    if (answer.expected > acked_)
    {
        Acknowledge(answer.expected);
        timeout_.Progress();
        timeout_.Restart(now);
    }
    const uint64_t newly = acked_ + known_.Bytes() - had;
    delivered_at_ = newly > 0 ? now : delivered_at_;
    Feedback feedback{now, rtt, newly, answer.marked, answer.sequence, next_, limited, answer.telemetry};
    feedback.flight = InFlight();
    if (!messages_.empty())
    {
        const Message& front = messages_.front();
        feedback.sent = acked_ - std::min(acked_, front.begin);
        feedback.size = front.end - front.begin;
        feedback.priority = front.priority;
        feedback.coflow = front.coflow;
    }
    control_->OnAck(feedback);
    if (answer.kind == PacketKind::kNack)
    {
        Lost(answer, now);
    }
    repeat_from_ = known_.EndFrom(std::max(repeat_from_, acked_));
    next_ = known_.EndFrom(next_);
    Changed();
}

void
Sender::Acknowledge(uint64_t expected)
{
    while (!messages_.empty())
    {
        const Message& front = messages_.front();
        const uint64_t until = std::min(expected, front.end);
        if (front.coflow != nullptr && until > acked_)
        {
            front.coflow->acknowledged += static_cast<int64_t>(until - acked_);
        }
        acked_ = std::max(acked_, until);
        if (expected < front.end)
        {
            break;
        }
        messages_.pop_front();
        if (!messages_.empty())
        {
            BeginFront();
        }
    }
    known_.DropBelow(acked_);
    trimmed_.DropBelow(acked_);
    next_ = std::max(next_, acked_);
}

void
Sender::Lost(const Packet& nack, int64_t now)
{
    // Of a loss that was mended meanwhile.
    if (nack.expected < acked_)
    {
        return;
    }
    if (settings_.Selective())
    {
        repeat_until_ = std::max(repeat_until_, known_.Last());
    }
    else
    {
        next_ = acked_;
    }
    TellLoss(now);
}

void
Sender::Trimmed(const Packet& nack, int64_t now)
{
    // What came since, or is sent from `next_` on in any case.
    if (nack.sequence < acked_ || nack.sequence >= next_ || known_.EndFrom(nack.sequence) != nack.sequence)
    {
        return;
    }
    trimmed_.Add(nack.sequence, nack.sequence + nack.payload_bytes);
    timeout_.Progress();
    timeout_.Restart(now);
    if (!control_->OnTrim(now, nack.payload_bytes, InFlight()))
    {
        TellLoss(now);
    }
}

void
Sender::TellLoss(int64_t now)
{
    if (acked_ >= recovery_)
    {
        recovery_ = highest_;
        control_->OnLoss(now);
    }
}

void
Sender::CountMarks(const Packet& answer)
{
    round_bytes_ += answer.payload_bytes;
    round_marked_ += answer.marked ? answer.payload_bytes : 0;
    if (answer.sequence >= round_ends_)
    {
        marked_ = static_cast<double>(round_marked_) / static_cast<double>(std::max<uint64_t>(round_bytes_, 1));
        round_bytes_ = round_marked_ = 0;
        round_ends_ = next_;
    }
}

double
Sender::Pace() const
{
    const double rtt = RoundTrip();
    return std::min(control_->rate, control_->window * 8e12 / rtt);
}

double
Sender::Window() const
{
    return control_->window >= kNoWindow ? std::nan("") : control_->window;
}

double
Sender::RoundTrip() const
{
    return timeout_.RoundTrip() > 0 ? timeout_.RoundTrip() : static_cast<double>(control_->path.base_rtt_ps);
}

void
Sender::TimeOut(int64_t now)
{
    next_ = known_.EndFrom(acked_);
    trimmed_ = {};
    repeat_from_ = repeat_until_ = 0;
    recovery_ = highest_;
    SetGain();
    control_->OnTimeout(now);
    Changed();
}

void
Sender::Changed()
{
    PlanTimer();
    way_.port->Senders().Add(this);
    way_.port->Wake();
}

void
Sender::PlanTimer()
{
    const int64_t at = control_->NextTimer();
    if (at == kNever || (timer_ >= 0 && timer_ <= at))
    {
        return;
    }
    timer_ = at;
    ns3::Simulator::Schedule(ns3::TimeStep(std::max<int64_t>(at - Now(), 0)), [this, at] { OnTimer(at); });
}

void
Sender::OnTimer(int64_t at)
{
    // An event that an earlier one has made needless.
    if (timer_ != at)
    {
        return;
    }
    timer_ = -1;
    const int64_t now = Now();
    if (control_->NextTimer() <= now)
    {
        stirred_at_ = now;
        SetGain();
        control_->OnTimer(now);
    }
    Changed();
}

void
Sender::State(StateWalk& walk)
{
    // With a fixed timeout and no window nobody reads them.
    timeout_.State(walk, !settings_.Lossless() || control_->window < kNoWindow);
    walk.Speed(control_->window);
    walk.Speed(control_->rate);
    walk.Value(control_->weight);
    control_->State(walk);
    if (walk.Loads())
    {
        // Where it is quiet, that is over.
        sent_at_ = kNeverYet;
        stirred_at_ = kNeverYet;
    }
}

uint64_t
Sender::Unsent() const
{
    const bool again = Repeats() || !trimmed_.Empty() || next_ < highest_;
    return messages_.empty() || again || next_ > messages_.front().end ? 0 : messages_.front().end - next_;
}

void
Sender::Skip(uint64_t bytes)
{
    messages_.front().end -= bytes;
    for (auto later = std::next(messages_.begin()); later != messages_.end(); ++later)
    {
        later->begin -= bytes;
        later->end -= bytes;
    }
    given_ -= bytes;
    skipped_ += bytes;
}

} // namespace cosim
