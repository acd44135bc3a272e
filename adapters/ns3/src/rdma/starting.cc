// What becomes of the messages of an instant: simulated, recalled, or mirrored (FastForward).
#include "fast_forward.h"

#include <algorithm>
#include <utility>

namespace cosim {

void
FastForward::StartGiven()
{
    if (starting_.empty())
    {
        return;
    }
    GiveUpDrawn(now_);
    std::vector<Starts> all = Sorted();
    CloseQuiet();
    for (Starts& starts : all)
    {
        FinishIfOver(*starts.part);
        Recognise(starts);
    }
    for (Starts& starts : all)
    {
        if (starts.part->Simulated())
        {
            SendAll(starts);
        }
    }
    KeepMirroring(all);
    for (Starts& starts : all)
    {
        if (starts.next < starts.given.size())
        {
            StopFollowing(*starts.part, now_, &starts);
        }
    }
}

std::vector<FastForward::Starts>
FastForward::Sorted()
{
    const std::vector<Given> given = std::exchange(starting_, {});
    for (const Given& one : given)
    {
        // Some may become one.
        parts_.Of(one.spec.connection);
    }
    std::vector<Starts> all;
    for (const Given& one : given)
    {
        Part* part = &parts_.Of(one.spec.connection);
        Starts* starts = Find(all, part);
        if (starts == nullptr)
        {
            starts = &all.emplace_back(Starts{part, {}, 0});
        }
        starts->given.push_back(one);
        if (one.spec.priority >= rdma_.NumClasses())
        {
            // A class of priority that begins takes room from the others, everywhere.
            for (Part& mirror : parts_.All())
            {
                if (mirror.leader != nullptr)
                {
                    SimulateAfterAll(mirror, now_);
                }
            }
        }
    }
    return all;
}

void
FastForward::FinishIfOver(Part& part)
{
    if (!part.known.empty() && now_ >= part.start + part.known.front().Of().end)
    {
        const Recall recall = part.known.front();
        Finish(part, recall.Of(), recall.By(), recall.Error());
    }
}

FastForward::Starts*
FastForward::Find(std::vector<Starts>& all, const Part* part)
{
    const auto found = std::find_if(all.begin(), all.end(), [part](const Starts& one) { return one.part == part; });
    return found == all.end() ? nullptr : &*found;
}

void
FastForward::Recognise(Starts& starts)
{
    Part& part = *starts.part;
    if (part.Idle())
    {
        part.start = now_;
        const PhaseInput input = InputOf(part, starts.given.front());
        for (auto& phase : rdma_.Settled() ? book_.Find(input) : PhaseBook::Phases{})
        {
            part.known.emplace_back(std::move(phase), tolerance_, Likeness::Same());
        }
        for (auto& phase : rdma_.Settled() ? book_.FindAlike(input) : PhaseBook::Phases{})
        {
            part.known.emplace_back(std::move(phase), tolerance_, Likeness());
        }
    }
    while (!part.known.empty() && starts.next < starts.given.size() && Follow(part, starts.given[starts.next]))
    {
        ++starts.next;
    }
    if (part.given.empty())
    {
        part.known.clear();
    }
}

void
FastForward::KeepMirroring(std::vector<Starts>& all)
{
    for (Part& part : parts_.All())
    {
        if (part.leader == nullptr)
        {
            continue;
        }
        Starts* mine = Find(all, &part);
        const size_t since = part.given.size();
        if (mine != nullptr)
        {
            part.given.insert(part.given.end(), mine->given.begin(), mine->given.end());
            mine->next = mine->given.size();
        }
        if (!Mirrors(part, *part.leader, since))
        {
            StopFollowing(part, now_, nullptr);
        }
    }
}

void
FastForward::SendAll(Starts& starts)
{
    for (; starts.next < starts.given.size(); ++starts.next)
    {
        Send(*starts.part, starts.given[starts.next]);
    }
}

void
FastForward::Join(Part& one, Part& other)
{
    for (Part* part : {&one, &other})
    {
        for (Part* mirror : std::vector<Part*>(part->mirrors))
        {
            SimulateAfterAll(*mirror, now_);
        }
        if (part->Simulated() && part->open.Quiet())
        {
            Close(*part);
        }
        FinishIfOver(*part);
        if (!part->known.empty() || part->leader != nullptr)
        {
            SimulateAfterAll(*part, now_);
        }
    }
    one.ahead.insert(other.ahead.begin(), other.ahead.end());
    other.ahead.clear();
    if (other.Simulated())
    {
        one.start = one.Simulated() ? one.start : other.start;
        one.open.Join(other.open);
    }
}

} // namespace cosim
