#include "fast_forward.h"

#include "error.h"

#include <ns3/simulator.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace cosim {
namespace {

/// What is shorter is not worth a leap.
constexpr int64_t kLeastLeap = 1'000'000;
constexpr auto kNotSampled = "with fast_forward queues and rates are not simulated at all times: say fast_forward off";

int64_t
Ns3Now()
{
    return ns3::Simulator::Now().GetTimeStep();
}

} // namespace

FastForward::FastForward(const RdmaSettings& settings, double tolerance)
    : Network(settings.topology.num_endpoints,
              [&](Fabric::Arrived arrived) { return std::make_unique<RdmaFabric>(settings, std::move(arrived)); }),
      rdma_(static_cast<RdmaFabric&>(GetFabric())),
      tolerance_(tolerance),
      book_(tolerance),
      states_(rdma_),
      settling_(rdma_, tolerance),
      open_(rdma_, states_),
      counts_(rdma_, settings.topology.link_src.size())
{
}

PhaseInput
FastForward::InputOf(const FlowSpec& spec, int64_t at, uint32_t round) const
{
    return {at - start_,
            round,
            spec.connection,
            static_cast<uint64_t>(std::max<int64_t>(spec.size_bytes, 1)),
            spec.priority,
            spec.weight,
            0,
            0,
            kNever,
            0};
}

int64_t
FastForward::RunThrough(int64_t limit)
{
    Uncount();
    return known_.empty() ? Simulate(limit) : Play(limit);
}

void
FastForward::StartAt(int64_t time)
{
    round_ = time == now_ ? round_ + 1 : 0;
    now_ = time;
}

void
FastForward::Begin(uint64_t id, const FlowSpec& spec)
{
    Uncount();
    if (!known_.empty())
    {
        if (now_ >= start_ + known_.front().Of().end)
        {
            Finish();
        }
        else if (Follow(id, spec))
        {
            return;
        }
        else
        {
            SimulateAfterAll(now_);
        }
    }
    if (!open_.Recording() || rdma_.Quiet(open_.Pairs()))
    {
        Close();
        if (Recognise(id, spec))
        {
            return;
        }
        Open(now_);
    }
    Send(id, spec);
}

void
FastForward::Arrived(uint64_t id)
{
    const int64_t time = Ns3Now() + offset_;
    settling_.Ended(open_.Arrived(id, time));
    settling_.Restart(Ns3Now());
    if (ahead_.erase(id) > 0)
    {
        return;
    }
    if (catches_up_)
    {
        late_.push_back(id);
        return;
    }
    Done(id, time);
}

void
FastForward::Lower(int64_t limit)
{
    gate_ = std::min(gate_, limit);
    if (known_.empty())
    {
        Network::Lower(limit - offset_);
    }
}

void
FastForward::StopSoon()
{
    if (known_.empty())
    {
        Network::StopSoon();
    }
    gate_ = std::min(gate_, known_.empty() ? Ns3Now() + offset_ : told_at_);
}

// --- simulated

int64_t
FastForward::Simulate(int64_t limit)
{
    gate_ = limit;
    while (true)
    {
        const bool looks = tolerance_ > 0 && open_.Recording() && rdma_.Settled();
        const int64_t until = looks ? std::min(gate_ - offset_, settling_.NextLook()) : gate_ - offset_;
        const int64_t reached = GetClock().RunThrough(std::max(until, GetClock().Reached()));
        if (reached < until || reached + offset_ >= gate_ || !GetFabric().Fault().empty() || Interrupted())
        {
            return std::min(reached + offset_, gate_);
        }
        LookForLeap();
    }
}

void
FastForward::LookForLeap()
{
    const int64_t now = GetClock().Reached();
    if (now >= settling_.NextLook())
    {
        settling_.Look(now, open_.Pairs());
    }
    const int64_t leap = std::min(settling_.Longest(), gate_ - offset_ - now);
    if (leap < kLeastLeap)
    {
        return;
    }
    const int64_t from = now + offset_;
    for (const Settling::Share& share : settling_.Take(leap))
    {
        rdma_.Skip(share.pair, share.bytes, from, from + leap);
        counts_.Leapt(share.pair, share.bytes, share.error);
    }
    offset_ += leap;
    rdma_.BusyOf().SetOffset(offset_);
}

void
FastForward::Open(int64_t start)
{
    open_.Begin(start);
    start_ = start;
    offset_ = start - std::max(GetClock().Reached(), Ns3Now());
    rdma_.BusyOf().SetOffset(offset_);
    rdma_.BusyOf().Begin(start);
}

void
FastForward::Send(uint64_t id, const FlowSpec& spec)
{
    GetClock().MoveTo(now_ - offset_);
    open_.Sent(id, InputOf(spec, now_, round_), offset_);
    settling_.Expect(rdma_.BaseRtt(spec.connection));
    settling_.Restart(now_ - offset_);
    Network::Begin(id, spec);
}

void
FastForward::Close()
{
    if (!open_.Recording())
    {
        return;
    }
    PhaseRecorder::Recorded done = open_.End(offset_);
    const bool same_classes = rdma_.NumClasses() == num_classes_;
    if (!same_classes)
    {
        // Each class takes room from the others.
        num_classes_ = rdma_.NumClasses();
        book_ = PhaseBook(tolerance_);
    }
    // What was drawn is not drawn again.
    if (same_classes && done.settled && (tolerance_ > 0 || !done.drew))
    {
        book_.Add(std::move(done.phase));
    }
}

// --- recalled

bool
FastForward::Recognise(uint64_t id, const FlowSpec& spec)
{
    start_ = now_;
    told_at_ = now_;
    given_.clear();
    told_.clear();
    if (rdma_.Settled())
    {
        for (auto& phase : book_.Find(InputOf(spec, now_, round_)))
        {
            known_.emplace_back(std::move(phase), tolerance_);
        }
        if (!Follow(id, spec))
        {
            known_.clear();
        }
    }
    return !known_.empty();
}

bool
FastForward::Follow(uint64_t id, const FlowSpec& spec)
{
    const PhaseInput input = InputOf(spec, now_, round_);
    const SentBytes sent = [this](uint32_t link) { return rdma_.PortOf(link).SentBytes(); };
    const auto apart = [&](const PhaseState& known) {
        return Apart(known, states_.From(known.entity, start_, sent), tolerance_);
    };
    std::vector<bool> follows;
    for (Recall& one : known_)
    {
        follows.push_back(one.Follow(input, apart));
    }
    if (std::find(follows.begin(), follows.end(), true) == follows.end())
    {
        return false;
    }
    size_t at = 0;
    known_.erase(std::remove_if(known_.begin(), known_.end(), [&](const Recall&) { return !follows[at++]; }), known_.end());
    given_.push_back({id, spec, now_, round_});
    return true;
}

int64_t
FastForward::Play(int64_t limit)
{
    gate_ = limit;
    while (true)
    {
        Recall& recall = known_.front();
        const auto [at, place] = recall.Next();
        const int64_t awaited = recall.Awaits() == kNever ? kNever : start_ + recall.Awaits();
        if (at != kNever && start_ + at <= std::min(gate_, awaited))
        {
            recall.Drop();
            // Another one that was followed may have told of it.
            if (told_.insert(given_[place].id).second)
            {
                told_at_ = std::max(told_at_, start_ + at);
                Done(given_[place].id, told_at_);
            }
            continue;
        }
        if (gate_ <= awaited)
        {
            return gate_;
        }
        // What was sent then was not sent now.
        if (known_.size() == 1)
        {
            SimulateAfterAll(awaited);
            return Simulate(gate_);
        }
        known_.erase(known_.begin());
    }
}

void
FastForward::Finish()
{
    const Recall& recall = known_.front();
    const Phase* phase = &recall.Of();
    const SentBytes sent = [this](uint32_t link) { return rdma_.PortOf(link).SentBytes(); };
    std::vector<Words> after;
    for (const PhaseState& state : phase->states)
    {
        after.push_back(After(state, states_.From(state.entity, start_, sent), phase->end));
    }
    for (const PhaseLink& link : phase->links)
    {
        rdma_.PortOf(link.link).AddSent(link.sent);
    }
    for (size_t k = 0; k < after.size(); ++k)
    {
        states_.Set(phase->states[k].entity, after[k], start_ + phase->end, sent);
    }
    counts_.Add(recall, start_);
    known_.clear();
}

void
FastForward::SimulateAfterAll(int64_t until)
{
    ahead_.insert(told_.begin(), told_.end());
    known_.clear();
    const int64_t now = now_;
    const uint32_t round = round_;
    Open(start_);
    catches_up_ = true;
    for (const Given& one : given_)
    {
        if (one.at != now_ || one.round != round_ || open_.Empty())
        {
            RunTo(one.at);
        }
        now_ = one.at;
        round_ = one.round;
        Send(one.id, one.spec);
    }
    RunTo(until);
    catches_up_ = false;
    now_ = now;
    round_ = round;
    if (tolerance_ == 0 && !(ahead_.empty() && late_.empty()))
    {
        throw std::logic_error("fast_forward: a phase was not what it was remembered as");
    }
    std::vector<uint64_t> late;
    late.swap(late_);
    for (const uint64_t id : late)
    {
        Done(id, until);
    }
}

void
FastForward::RunTo(int64_t time)
{
    const int64_t until = time - offset_;
    while (GetClock().RunThrough(until) < until && GetFabric().Fault().empty())
    {
    }
}

// --- counted

void
FastForward::CountForNow()
{
    if (known_.empty() || counts_.ForNow())
    {
        return;
    }
    if (told_.size() < known_.front().Of().inputs.size())
    {
        SimulateAfterAll(Granted());
        return;
    }
    // All that is missing are acknowledgements.
    counts_.AddForNow(known_.front(), start_);
}

void
FastForward::Uncount()
{
    if (counts_.ForNow())
    {
        counts_.Forget(known_.front(), start_);
    }
}

std::vector<int64_t>
FastForward::LinkBytes()
{
    CountForNow();
    return Network::LinkBytes();
}

std::vector<LinkMeasure>
FastForward::Measures()
{
    CountForNow();
    std::vector<LinkMeasure> measures = Network::Measures();
    counts_.Tell(measures);
    return measures;
}

std::vector<LinkSample>
FastForward::Queues(const std::vector<uint32_t>& links)
{
    if (!links.empty())
    {
        throw SessionError("STATE", kNotSampled, {{"request", "sample"}});
    }
    return {};
}

std::vector<RateSample>
FastForward::Rates()
{
    throw SessionError("STATE", kNotSampled, {{"request", "sample"}});
}

} // namespace cosim
