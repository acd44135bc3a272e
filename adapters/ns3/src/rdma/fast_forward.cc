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
      recalled_(settings.topology.link_src.size()),
      leapt_(recalled_.size()),
      error_(recalled_.size())
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
    if (!open_ || rdma_.Quiet(pairs_))
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
    const auto place = places_.find(id);
    PhaseInput& input = open_->inputs[place->second];
    input.end_at = time - start_;
    input.end_order = arrived_++;
    places_.erase(place);
    settling_.Ended(input.connection);
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
        const bool looks = tolerance_ > 0 && open_ != nullptr && rdma_.Settled();
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
        settling_.Look(now, pairs_);
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
        for (const uint32_t link : rdma_.PathOf(share.pair))
        {
            leapt_[link] += static_cast<double>(share.bytes);
            error_[link] += static_cast<double>(share.bytes) * share.error;
        }
    }
    offset_ += leap;
    rdma_.BusyOf().SetOffset(offset_);
}

void
FastForward::Open(int64_t start)
{
    open_ = std::make_unique<Phase>();
    arrived_ = 0;
    start_ = start;
    offset_ = start - std::max(GetClock().Reached(), Ns3Now());
    rdma_.BusyOf().SetOffset(offset_);
    rdma_.BusyOf().Begin(start);
    drawn_before_ = 0;
    began_settled_ = rdma_.Settled();
}

void
FastForward::Send(uint64_t id, const FlowSpec& spec)
{
    GetClock().MoveTo(now_ - offset_);
    std::vector<uint32_t> entities = rdma_.LinksOf(spec.connection);
    for (uint32_t& link : entities)
    {
        link |= kPortBit;
    }
    entities.push_back(spec.connection);
    PhaseInput input = InputOf(spec, now_, round_);
    input.first_state = static_cast<uint32_t>(open_->states.size());
    for (const uint32_t entity : entities)
    {
        Touch(entity);
    }
    input.end_state = static_cast<uint32_t>(open_->states.size());
    places_.emplace(id, static_cast<uint32_t>(open_->inputs.size()));
    open_->inputs.push_back(input);
    settling_.Restart(now_ - offset_);
    Network::Begin(id, spec);
}

void
FastForward::Touch(uint32_t entity)
{
    if (!touched_.insert(entity).second)
    {
        return;
    }
    const uint32_t link = entity & ~kPortBit;
    if (link == entity)
    {
        pairs_.push_back(entity);
        settling_.Expect(rdma_.BaseRtt(entity));
    }
    else
    {
        links_before_[link] = {rdma_.MeterOf(link), rdma_.PortOf(link).SentBytes(), rdma_.PortOf(link).PausedPs(0)};
        drawn_before_ += rdma_.PortOf(link).Drawn();
    }
    PhaseState state{entity, states_.From(entity, start_, SentBefore()), {}, false, 0};
    if (link == entity)
    {
        state.retransmitted = rdma_.SenderOf(entity).RetransmittedPackets();
        uses_before_[entity] = rdma_.SenderOf(entity).Uses();
    }
    open_->states.push_back(std::move(state));
    states_.Bring(entity, offset_);
}

SentBytes
FastForward::SentBefore()
{
    return [this](uint32_t link) {
        const auto before = links_before_.find(link);
        return before == links_before_.end() ? rdma_.PortOf(link).SentBytes() : before->second.sent;
    };
}

void
FastForward::Close()
{
    if (!open_)
    {
        return;
    }
    open_->end = rdma_.QuietSince(pairs_) + offset_ - start_;
    const SentBytes sent = [this](uint32_t link) { return rdma_.PortOf(link).SentBytes(); };
    uint64_t drawn = 0;
    for (PhaseState& state : open_->states)
    {
        states_.Simulated(state.entity, offset_);
        state.after = states_.From(state.entity, start_ + open_->end, sent);
        if ((state.entity & kPortBit) == 0)
        {
            const Sender& sender = rdma_.SenderOf(state.entity);
            state.used = sender.Uses() != uses_before_[state.entity];
            state.retransmitted = sender.RetransmittedPackets() - state.retransmitted;
        }
    }
    for (const auto& [link, before] : links_before_)
    {
        const Port& port = rdma_.PortOf(link);
        drawn += port.Drawn();
        open_->links.push_back({link,
                                port.SentBytes() - before.sent,
                                ChangeOf(before.meter, rdma_.MeterOf(link)),
                                port.PausedPs(0) - before.paused_ps,
                                rdma_.BusyOf().Take(link)});
    }
    // What was drawn is not drawn again.
    Keep(tolerance_ > 0 || drawn == drawn_before_);
    pairs_.clear();
    touched_.clear();
    links_before_.clear();
    uses_before_.clear();
}

void
FastForward::Keep(bool repeats)
{
    const bool same_classes = rdma_.NumClasses() == num_classes_;
    if (!same_classes)
    {
        // Each class takes room from the others.
        num_classes_ = rdma_.NumClasses();
        book_ = PhaseBook(tolerance_);
    }
    if (same_classes && began_settled_ && repeats)
    {
        book_.Add(std::move(open_));
    }
    open_.reset();
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
    Count(recall, 1);
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
        if (one.at != now_ || one.round != round_ || open_->inputs.empty())
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
FastForward::Count(const Recall& recall, int sign)
{
    for (const PhaseLink& link : recall.Of().links)
    {
        Apply(link.change, rdma_.MeterOf(link.link), sign);
        rdma_.PortOf(link.link).AddPaused(sign * link.paused_ps);
        recalled_[link.link] += sign * static_cast<double>(link.change.bytes);
        error_[link.link] += sign * recall.Error() * static_cast<double>(link.change.bytes);
        for (const Stretch& stretch : link.busy)
        {
            if (sign > 0)
            {
                rdma_.BusyOf().AddAt(link.link, start_ + stretch.start, stretch.busy);
            }
        }
    }
    for (const PhaseState& state : recall.Of().states)
    {
        if ((state.entity & kPortBit) == 0)
        {
            rdma_.SenderOf(state.entity).AddRetransmitted(static_cast<uint64_t>(sign) * state.retransmitted);
        }
    }
}

void
FastForward::CountForNow()
{
    if (known_.empty() || uncounted_)
    {
        return;
    }
    if (told_.size() < known_.front().Of().inputs.size())
    {
        SimulateAfterAll(Granted());
        return;
    }
    // All that is missing are acknowledgements.
    uncounted_ = rdma_.Busy();
    Count(known_.front(), 1);
}

void
FastForward::Uncount()
{
    if (uncounted_)
    {
        Count(known_.front(), -1);
        rdma_.BusyOf().SetMeter(*uncounted_);
        uncounted_.reset();
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
    measures.push_back({"recalled_bytes", recalled_});
    measures.push_back({"leapt_bytes", leapt_});
    measures.push_back({"fast_forward_error_bytes", error_});
    return measures;
}

} // namespace cosim
