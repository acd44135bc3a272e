// What MLTCP looks at.
#pragma once

#include <cstdint>

namespace cosim {

/// What the connections of one coflow (a job's iteration) have sent together, as acknowledged.
struct Coflow
{
    int64_t acknowledged = 0;
    int64_t total = 0;

    /// Share sent, 0 to 1; 1 where the size is not known.
    double Share() const
    {
        return total <= 0 || acknowledged >= total ? 1.0
                                                   : static_cast<double>(acknowledged) / static_cast<double>(total);
    }
};

} // namespace cosim
