// ECN: which packets a port marks.
#pragma once

#include <cstdint>

namespace cosim {

/// RED on the queue itself, not an average: nothing below `from`, `most` just below `all`, everything from there on; both
/// equal: a step.
struct Marking
{
    double from_bytes = 0;
    double all_bytes = 0;
    /// 0: nothing is marked.
    double most = 0;

    double Chance(uint64_t queue_bytes) const
    {
        const auto queue = static_cast<double>(queue_bytes);
        if (most <= 0 || queue <= from_bytes)
        {
            return 0;
        }
        return queue >= all_bytes ? 1.0 : most * (queue - from_bytes) / (all_bytes - from_bytes);
    }
};

} // namespace cosim
