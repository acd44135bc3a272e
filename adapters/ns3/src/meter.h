// What a directed link measures.
#pragma once

#include "seam.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cosim {

/// Bytes, drops, marks and queue lengths of one link.
struct LinkMeter
{
    uint64_t bytes = 0;
    uint64_t drops = 0;
    /// Packets sent while the link was down: no queue dropped them.
    uint64_t cut = 0;
    uint64_t marks = 0;
    uint64_t queue_max = 0;
    uint64_t samples = 0;
    /// Samples by length: eight bins for each doubling, so that a percentile is within 9 % of the true one.
    std::array<uint32_t, 280> histogram{};

    void SampleQueue(uint64_t queued_bytes);
    /// The length, in bytes, that a share of the samples does not exceed.
    double Percentile(double share) const;
};

/// Bytes of each link.
std::vector<int64_t> BytesOf(const std::vector<LinkMeter>& meters);

/// All other measures of each link, by name.
std::vector<LinkMeasure> MeasuresOf(const std::vector<LinkMeter>& meters);

} // namespace cosim
