// Parts that are recalled, or mirror another one, until they don't (FastForward).
#include "fast_forward.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

namespace cosim {

bool
FastForward::Follow(Part& part, const Given& given)
{
    const PhaseInput input = InputOf(part, given);
    const SentBytes sent = [this](uint32_t link) { return rdma_.PortOf(link).SentBytes(); };
    const auto apart = [&](const PhaseState& known, const Likeness& likeness) {
        const Words now = states_.From(likeness.Here(known.entity), part.start, sent);
        return Apart(known, likeness.ToKnown(now), tolerance_);
    };
    std::vector<bool> follows;
    for (Recall& one : part.known)
    {
        follows.push_back(one.Follow(rdma_, input, apart));
    }
    if (std::find(follows.begin(), follows.end(), true) == follows.end())
    {
        return false;
    }
    size_t at = 0;
    part.known.erase(
        std::remove_if(part.known.begin(), part.known.end(), [&](const Recall&) { return !follows[at++]; }),
        part.known.end());
    part.given.push_back(given);
    return true;
}

bool
FastForward::Mirror(Part& part, Part& leader, const std::vector<Given>& given, int64_t time)
{
    Part as(rdma_, states_);
    as.start = part.start;
    as.given = given;
    if (!Mirrors(as, leader, 0))
    {
        return false;
    }
    std::unordered_set<uint64_t> told = part.told;
    Detach(part);
    part.leader = &leader;
    part.likeness = std::move(as.likeness);
    part.given = given;
    part.told = std::move(told);
    leader.mirrors.push_back(&part);
    for (size_t place = 0; place < given.size(); ++place)
    {
        if (leader.open.Inputs()[place].end_at != kNever)
        {
            Tell(part, place, time);
        }
    }
    return true;
}

bool
FastForward::Mirrors(Part& part, const Part& leader, size_t since)
{
    const std::vector<PhaseInput>& theirs = leader.open.Inputs();
    if (theirs.size() != part.given.size() || !leader.open.Whole() || (tolerance_ == 0 && leader.open.Drew()))
    {
        return false;
    }
    const SentBytes sent = [this](uint32_t link) { return rdma_.PortOf(link).SentBytes(); };
    for (size_t k = since; k < theirs.size(); ++k)
    {
        const PhaseInput input = InputOf(part, part.given[k]);
        if (!input.SameMessage(theirs[k]) || input.at != theirs[k].at || input.round != theirs[k].round ||
            !part.likeness.Take(rdma_, theirs[k].connection, input.connection))
        {
            return false;
        }
        for (uint32_t one = theirs[k].first_state; one < theirs[k].end_state; ++one)
        {
            PhaseState known = leader.open.States()[one];
            // What will be read isn't known yet.
            known.used = true;
            const Words now = states_.From(part.likeness.Here(known.entity), part.start, sent);
            if (Apart(known, part.likeness.ToKnown(now), tolerance_) > tolerance_)
            {
                return false;
            }
        }
    }
    return true;
}

void
FastForward::StopFollowing(Part& part, int64_t until, Starts* starts)
{
    const bool begins = part.Idle();
    std::vector<Given> given = part.given;
    if (starts != nullptr)
    {
        given.insert(given.end(), starts->given.begin() + static_cast<int64_t>(starts->next), starts->given.end());
    }
    for (Part& other : parts_.All())
    {
        if (&other != &part && other.Simulated() && other.start == part.start && Mirror(part, other, given, until))
        {
            return;
        }
    }
    if (begins)
    {
        Open(part);
    }
    else
    {
        SimulateAfterAll(part, until);
    }
    if (starts != nullptr)
    {
        SendAll(*starts);
    }
}

int64_t
FastForward::NextKnown()
{
    int64_t next = kNever;
    for (const Part& part : parts_.All())
    {
        if (!part.known.empty())
        {
            const int64_t since = std::min(part.known.front().Next().first, part.known.front().Awaits());
            next = std::min(next, since == kNever ? kNever : part.start + since);
        }
    }
    return next;
}

void
FastForward::Play(int64_t time)
{
    for (Part& part : parts_.All())
    {
        while (!part.known.empty() && part.known.front().Next().first <= time - part.start)
        {
            const size_t place = part.known.front().Next().second;
            part.known.front().Drop();
            Tell(part, place, time);
        }
    }
}

void
FastForward::Tell(Part& part, size_t place, int64_t time)
{
    const uint64_t id = part.given[place].id;
    // Another one that was followed may have told of it.
    if (part.told.insert(id).second)
    {
        telling_ = time;
        Done(id, time);
    }
}

void
FastForward::GiveUpAwaiting(int64_t time)
{
    for (Part& part : parts_.All())
    {
        while (!part.known.empty() && part.known.front().Awaits() <= time - part.start)
        {
            // What was sent then was not sent now.
            if (part.known.size() > 1)
            {
                part.known.erase(part.known.begin());
                continue;
            }
            StopFollowing(part, time, nullptr);
        }
    }
}

void
FastForward::GiveUpDrawn(int64_t time)
{
    for (Part& part : parts_.All())
    {
        if (tolerance_ == 0 && part.leader != nullptr && part.leader->open.Drew())
        {
            SimulateAfterAll(part, time);
        }
    }
}

void
FastForward::Finish(Part& part, const Phase& phase, const Likeness& likeness, double error)
{
    const SentBytes sent = [this](uint32_t link) { return rdma_.PortOf(link).SentBytes(); };
    std::vector<Words> after;
    for (const PhaseState& state : phase.states)
    {
        const Words now = likeness.ToKnown(states_.From(likeness.Here(state.entity), part.start, sent));
        after.push_back(likeness.ToHere(After(state, now, phase.end)));
    }
    for (const PhaseLink& link : phase.links)
    {
        rdma_.PortOf(likeness.Here(link.link | kPortBit) & ~kPortBit).AddSent(link.sent);
    }
    for (size_t k = 0; k < after.size(); ++k)
    {
        states_.Set(likeness.Here(phase.states[k].entity), after[k], part.start + phase.end, sent);
    }
    ForwardChange change = ChangeOf(phase, part.start, error);
    change.Translate(likeness);
    counts_.Add(change);
    Detach(part);
}

void
FastForward::Detach(Part& part)
{
    if (part.leader != nullptr)
    {
        auto& mirrors = part.leader->mirrors;
        mirrors.erase(std::remove(mirrors.begin(), mirrors.end(), &part), mirrors.end());
    }
    part.leader = nullptr;
    part.known.clear();
    part.given.clear();
    part.told.clear();
}

void
FastForward::SimulateAfterAll(Part& part, int64_t until)
{
    part.ahead.insert(part.told.begin(), part.told.end());
    const std::vector<Given> given = part.given;
    Detach(part);
    const bool beside_others = AnySimulated();
    if (beside_others)
    {
        GetClock().MoveTo(Ns3Time(until));
        GetClock().GoBack(Ns3Time(part.start));
    }
    Open(part);
    catching_up_ = &part;
    const Given* last = nullptr;
    for (const Given& one : given)
    {
        if (last == nullptr || one.at != last->at || one.round != last->round)
        {
            RunTo(one.at);
        }
        Send(part, one);
        last = &one;
    }
    RunTo(until);
    catching_up_ = nullptr;
    if (beside_others)
    {
        GetClock().Resume();
        settling_.Restart(Sender::Now());
    }
    const bool too_late = std::any_of(late_.begin(), late_.end(), [&](const auto& one) { return one.second < until; });
    if (tolerance_ == 0 && (too_late || !part.ahead.empty()))
    {
        throw std::logic_error("fast_forward: a phase was not what it was remembered as");
    }
    telling_ = until;
    for (const auto& [id, time] : std::exchange(late_, {}))
    {
        Done(id, until);
    }
}

void
FastForward::RunTo(int64_t time)
{
    const int64_t until = Ns3Time(time);
    while (GetClock().RunThrough(until) < until && GetFabric().Fault().empty())
    {
    }
}

} // namespace cosim
