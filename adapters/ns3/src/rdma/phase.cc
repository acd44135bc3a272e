#include "phase.h"

#include "mix.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace cosim {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

double
Number(const Word& word)
{
    double value;
    std::memcpy(&value, &word.bits, sizeof value);
    return value;
}

/// More phases of other queue pairs that begin the same are not looked at.
constexpr size_t kMostAlike = 8;

uint64_t
Hash(const PhaseInput& first)
{
    return Mix(Mix(first.bytes + kGolden) + first.priority);
}

uint64_t
HashOfPair(const PhaseInput& first)
{
    return Mix(Hash(first) + first.connection);
}

} // namespace

double
Apart(const PhaseState& known, const Words& now, double tolerance)
{
    if (known.before.size() != now.size())
    {
        return 2;
    }
    double most = 0;
    for (size_t k = 0; k < now.size(); ++k)
    {
        const Word& one = known.before[k];
        if (one.bits == now[k].bits && one.link == now[k].link)
        {
            continue;
        }
        if (tolerance == 0)
        {
            if (one.lazy && !known.used)
            {
                continue;
            }
            return 2;
        }
        if (one.kind == Word::Kind::kSpeed)
        {
            const double a = Number(one);
            const double b = Number(now[k]);
            most = std::max(most, std::abs(a - b) / std::max(std::abs(a), std::abs(b)));
        }
    }
    return most;
}

Words
After(const PhaseState& known, const Words& now, int64_t length)
{
    Words after = known.after;
    for (size_t k = 0; k < std::min(after.size(), now.size()); ++k)
    {
        if (after[k].lazy && !known.used && known.before[k].bits != now[k].bits)
        {
            after[k] = now[k];
            const bool passes = now[k].kind == Word::Kind::kTime && now[k].bits != kNeverYet && now[k].bits != kNever;
            after[k].bits -= passes ? length : 0;
        }
    }
    return after;
}


void
PhaseBook::Add(std::shared_ptr<const Phase> phase)
{
    uint64_t words = 0;
    for (const PhaseState& state : phase->states)
    {
        words += state.before.size() + state.after.size();
    }
    uint64_t stretches = 0;
    for (const PhaseLink& link : phase->links)
    {
        stretches += link.busy.size() + link.change.bins.size();
    }
    bytes_ += words * sizeof(Word) + stretches * sizeof(Stretch) + phase->inputs.size() * sizeof(PhaseInput) +
              phase->links.size() * sizeof(PhaseLink);
    if (bytes_ >= kMostBytes)
    {
        return;
    }
    std::set<uint64_t> beginnings;
    std::set<uint64_t> alike;
    for (const PhaseInput& input : phase->inputs)
    {
        if (static_cast<double>(input.at) > tolerance_ * static_cast<double>(phase->end))
        {
            break;
        }
        beginnings.insert(HashOfPair(input));
        alike.insert(Hash(input));
    }
    for (const uint64_t beginning : beginnings)
    {
        phases_[beginning].push_back(phase);
    }
    for (const uint64_t beginning : alike)
    {
        if (Phases& known = alike_[beginning]; known.size() < kMostAlike)
        {
            known.push_back(phase);
        }
    }
}

PhaseBook::Phases
PhaseBook::Find(const PhaseInput& first) const
{
    const auto found = phases_.find(HashOfPair(first));
    return found == phases_.end() ? Phases{} : found->second;
}

PhaseBook::Phases
PhaseBook::FindAlike(const PhaseInput& first) const
{
    const auto found = alike_.find(Hash(first));
    return found == alike_.end() ? Phases{} : found->second;
}

} // namespace cosim
