#include "likeness.h"

#include <algorithm>

namespace cosim {
namespace {

/// A node, beside kPortBit for a port.
constexpr uint32_t kNodeBit = uint32_t{1} << 30;

} // namespace

Likeness::Named
Likeness::NamesOf(const RdmaFabric& fabric, uint32_t known, uint32_t here)
{
    const std::vector<uint32_t> theirs = fabric.LinksOf(known);
    const std::vector<uint32_t> mine = fabric.LinksOf(here);
    if (theirs.size() != mine.size())
    {
        return {};
    }
    Named named{{known, here}};
    for (size_t k = 0; k < mine.size(); ++k)
    {
        if (!fabric.Alike(theirs[k], mine[k]))
        {
            return {};
        }
        const LinkFacts& one = fabric.PortOf(theirs[k]).Facts();
        const LinkFacts& two = fabric.PortOf(mine[k]).Facts();
        named.emplace_back(theirs[k] | kPortBit, mine[k] | kPortBit);
        named.emplace_back(one.src | kNodeBit, two.src | kNodeBit);
        named.emplace_back(one.dst | kNodeBit, two.dst | kNodeBit);
    }
    return named;
}

bool
Likeness::Agrees(const Named& named) const
{
    const auto says = [](const Names& names, uint32_t of, uint32_t name) {
        const auto found = names.find(of);
        return found == names.end() || found->second == name;
    };
    return !named.empty() && std::all_of(named.begin(), named.end(), [&](const auto& one) {
        return says(here_, one.first, one.second) && says(known_, one.second, one.first);
    });
}

bool
Likeness::Fits(const RdmaFabric& fabric, uint32_t known, uint32_t here) const
{
    if (same_)
    {
        return known == here;
    }
    if (const auto found = here_.find(known); found != here_.end())
    {
        return found->second == here;
    }
    return known_.count(here) == 0 && Agrees(NamesOf(fabric, known, here));
}

bool
Likeness::Take(const RdmaFabric& fabric, uint32_t known, uint32_t here)
{
    if (!Fits(fabric, known, here))
    {
        return false;
    }
    if (!same_ && here_.count(known) == 0)
    {
        for (const auto& [there, name] : NamesOf(fabric, known, here))
        {
            here_.emplace(there, name);
            known_.emplace(name, there);
        }
    }
    return true;
}

Words
Likeness::Translated(Words words, const Names& names)
{
    const auto name = [&](uint32_t link) {
        const auto found = names.find(link | kPortBit);
        return found == names.end() ? kNoLink : found->second & ~kPortBit;
    };
    for (Word& word : words)
    {
        if (word.kind == Word::Kind::kSent)
        {
            word.link = name(word.link);
        }
        else if (word.kind == Word::Kind::kLink)
        {
            word.bits = name(static_cast<uint32_t>(word.bits));
        }
    }
    return words;
}

Words
Likeness::ToKnown(Words words) const
{
    return same_ ? words : Translated(std::move(words), known_);
}

Words
Likeness::ToHere(Words words) const
{
    return same_ ? words : Translated(std::move(words), here_);
}

} // namespace cosim
