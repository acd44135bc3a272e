#include "fast_forward.h"

#include "error.h"

#include <algorithm>

namespace cosim {
namespace {

/// What is shorter is not worth a leap.
constexpr int64_t kLeastLeap = 1'000'000;
/// ns-3's time at the session's start, ten hours: a phase that is simulated after all began earlier, by all that was leapt over since.
constexpr int64_t kBegin = int64_t{1} << 55;
constexpr auto kNotSampled = "with fast_forward queues and rates are not simulated at all times: say fast_forward off";

} // namespace

FastForward::FastForward(const RdmaSettings& settings, double tolerance)
    : Network(
          settings.topology.num_endpoints,
          [&](Fabric::Arrived arrived) { return std::make_unique<RdmaFabric>(settings, std::move(arrived)); },
          kBegin),
      rdma_(static_cast<RdmaFabric&>(GetFabric())),
      tolerance_(tolerance),
      book_(tolerance),
      states_(rdma_),
      settling_(rdma_, tolerance),
      parts_(rdma_, states_, [this](Part& one, Part& other) { Join(one, other); }),
      offset_(-kBegin),
      counts_(rdma_, settings.topology.link_src.size())
{
    rdma_.BusyOf().SetOffset(offset_);
    if (tolerance_ == 0)
    {
        // What mirrors this part is another one from here on.
        rdma_.TellDraws([this](uint32_t link) {
            if (!parts_.OfLink(link).mirrors.empty())
            {
                GetClock().StopSoon();
            }
        });
    }
}

PhaseInput
FastForward::InputOf(const Part& part, const Given& given) const
{
    const FlowSpec& spec = given.spec;
    return {given.at - part.start,
            given.round,
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
FastForward::Ns3Time(int64_t time) const
{
    return time == kNever ? kNever : time - offset_;
}

int64_t
FastForward::SessionTime(int64_t time) const
{
    return time == kNever ? kNever : time + offset_;
}

bool
FastForward::AnySimulated()
{
    const auto& all = parts_.All();
    return std::any_of(all.begin(), all.end(), [](const Part& part) { return part.Simulated(); });
}

int64_t
FastForward::RunThrough(int64_t limit)
{
    Uncount();
    gate_ = limit;
    StartGiven();
    while (true)
    {
        const int64_t reached = Simulate(std::min(gate_, NextKnown()));
        GiveUpDrawn(reached);
        Play(reached);
        if (reached >= gate_ || !GetFabric().Fault().empty() || Interrupted())
        {
            return std::min(reached, gate_);
        }
        GiveUpAwaiting(reached);
    }
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
    starting_.push_back({id, spec, now_, round_});
}

void
FastForward::Arrived(uint64_t id)
{
    const uint32_t pair = GetFlows().Spec(id).connection;
    Part& part = parts_.Of(pair);
    const int64_t time = Sender::Now() + offset_;
    const uint32_t place = part.open.Arrived(id, time);
    settling_.Ended(pair);
    settling_.Restart(Sender::Now());
    if (part.ahead.erase(id) == 0)
    {
        if (catching_up_ == &part)
        {
            late_.emplace_back(id, time);
            return;
        }
        telling_ = time;
        Done(id, time);
    }
    if (tolerance_ == 0 && !part.mirrors.empty() && part.open.Drew())
    {
        return;
    }
    for (Part* mirror : part.mirrors)
    {
        Tell(*mirror, place, time);
    }
}

void
FastForward::Lower(int64_t limit)
{
    gate_ = std::min(gate_, limit);
    Network::Lower(Ns3Time(limit));
}

void
FastForward::StopSoon()
{
    Network::StopSoon();
    gate_ = std::min(gate_, telling_);
}

// --- simulated

int64_t
FastForward::Simulate(int64_t limit)
{
    while (AnySimulated() || !rdma_.Settled())
    {
        const int64_t until = Ns3Time(std::min(limit, gate_));
        const bool looks = tolerance_ > 0 && rdma_.Settled();
        const int64_t stop = std::max(looks ? std::min(until, settling_.NextLook()) : until, GetClock().Reached());
        const int64_t reached = GetClock().RunThrough(stop);
        const int64_t goal = std::min(limit, gate_);
        if (reached < stop || reached >= Ns3Time(goal) || !GetFabric().Fault().empty() || Interrupted())
        {
            return std::min(SessionTime(reached), goal);
        }
        LookForLeap(goal);
    }
    return std::min(limit, gate_);
}

void
FastForward::LookForLeap(int64_t limit)
{
    // What is quiet has its times in ns-3's as they are before.
    CloseQuiet();
    const int64_t now = GetClock().Reached();
    if (now >= settling_.NextLook())
    {
        std::vector<uint32_t> pairs;
        for (const Part& part : parts_.All())
        {
            pairs.insert(pairs.end(), part.open.Pairs().begin(), part.open.Pairs().end());
        }
        settling_.Look(now, pairs);
    }
    const int64_t leap = std::min(settling_.Longest(), Ns3Time(limit) - now);
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
FastForward::Open(Part& part)
{
    if (!AnySimulated())
    {
        offset_ = part.start - std::max(GetClock().Reached(), Sender::Now());
        rdma_.BusyOf().SetOffset(offset_);
    }
    part.open.Begin(part.start);
}

void
FastForward::Send(Part& part, const Given& given)
{
    GetClock().MoveTo(Ns3Time(given.at));
    part.open.Sent(given.id, InputOf(part, given), offset_);
    settling_.Expect(rdma_.BaseRtt(given.spec.connection));
    settling_.Restart(Ns3Time(given.at));
    Network::Begin(given.id, given.spec);
}

void
FastForward::CloseQuiet()
{
    for (Part& part : parts_.All())
    {
        if (part.Simulated() && part.open.Quiet())
        {
            Close(part);
        }
    }
}

void
FastForward::Close(Part& part)
{
    const PhaseRecorder::Recorded done = part.open.End(offset_);
    for (PhaseLink& link : done.phase->links)
    {
        link.error = counts_.TakeError(link.link);
    }
    for (Part* mirror : std::exchange(part.mirrors, {}))
    {
        Finish(*mirror, *done.phase, mirror->likeness, 0);
    }
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
        book_.Add(done.phase);
    }
}

// --- counted

void
FastForward::CountForNow()
{
    if (counts_.ForNow())
    {
        return;
    }
    GiveUpDrawn(Granted());
    for (Part& part : parts_.All())
    {
        if (!part.known.empty() && part.told.size() < part.known.front().Of().inputs.size())
        {
            SimulateAfterAll(part, Granted());
        }
    }
    std::vector<ForwardChange> changes;
    for (const Part& part : parts_.All())
    {
        if (!part.known.empty())
        {
            // All that is missing are acknowledgements.
            const Recall& recall = part.known.front();
            changes.push_back(ChangeOf(recall.Of(), part.start, recall.Error()));
            changes.back().Translate(recall.By());
        }
        else if (part.leader != nullptr)
        {
            const PhaseRecorder& open = part.leader->open;
            changes.push_back({part.start, 0, open.LinksSoFar(), open.SentAgain()});
            changes.back().Translate(part.likeness);
        }
    }
    if (!changes.empty())
    {
        counts_.AddForNow(std::move(changes));
    }
}

void
FastForward::Uncount()
{
    if (counts_.ForNow())
    {
        counts_.Forget();
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
