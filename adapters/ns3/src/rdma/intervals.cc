#include "intervals.h"

#include <algorithm>
#include <iterator>

namespace cosim {

uint64_t
Intervals::Add(uint64_t begin, uint64_t end)
{
    const uint64_t before = bytes_;
    auto at = intervals_.upper_bound(begin);
    if (at != intervals_.begin() && std::prev(at)->second >= begin)
    {
        --at;
    }
    while (at != intervals_.end() && at->first <= end)
    {
        begin = std::min(begin, at->first);
        end = std::max(end, at->second);
        bytes_ -= at->second - at->first;
        at = intervals_.erase(at);
    }
    intervals_.emplace(begin, end);
    bytes_ += end - begin;
    return bytes_ - before;
}

void
Intervals::Remove(uint64_t begin, uint64_t end)
{
    auto at = intervals_.upper_bound(begin);
    if (at != intervals_.begin() && std::prev(at)->second > begin)
    {
        --at;
    }
    while (at != intervals_.end() && at->first < end)
    {
        const auto [first, last] = *at;
        at = intervals_.erase(at);
        bytes_ -= std::min(last, end) - std::max(first, begin);
        if (first < begin)
        {
            intervals_.emplace(first, begin);
        }
        if (last > end)
        {
            at = intervals_.emplace(end, last).first;
        }
    }
}

uint64_t
Intervals::BytesBelow(uint64_t end) const
{
    uint64_t below = bytes_;
    for (auto at = intervals_.rbegin(); at != intervals_.rend() && at->second > end; ++at)
    {
        below -= at->second - std::max(at->first, end);
    }
    return below;
}

uint64_t
Intervals::EndFrom(uint64_t at) const
{
    auto found = intervals_.upper_bound(at);
    if (found == intervals_.begin())
    {
        return at;
    }
    return std::max(at, std::prev(found)->second);
}

} // namespace cosim
