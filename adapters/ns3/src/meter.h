// What a directed link measures.
#pragma once

#include "seam.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cosim {

/// What is counted at one link.
struct LinkCounts
{
    uint64_t bytes = 0;
    uint64_t drops = 0;
    /// Packets sent while the link was down: no queue dropped them.
    uint64_t cut = 0;
    uint64_t marks = 0;
    /// Packets that lost their payload for want of room.
    uint64_t trims = 0;
    uint64_t samples = 0;
    uint64_t queue_max = 0;

    /// Adds them `by` times, modulo 2^64 (in which -1 is a number like others); the longest queue is the longer of both.
    void Add(const LinkCounts& other, uint64_t by);
};

/// Bytes, drops, marks and queue lengths of one link.
struct LinkMeter : LinkCounts
{
    /// Samples by length: eight bins for each doubling, so that a percentile is within 9 % of the true one.
    std::array<uint32_t, 280> histogram{};
    /// The longest queue since whoever asks for changes set it to 0.
    uint64_t recent_max = 0;

    void SampleQueue(uint64_t queued_bytes);
    /// The length, in bytes, that a share of the samples does not exceed.
    double Percentile(double share) const;
};

/// What a link measured in between.
struct LinkChange : LinkCounts
{
    /// (bin, samples)
    std::vector<std::pair<uint16_t, uint32_t>> bins;
};

/// The longest queue of a change is `recent_max`.
LinkChange ChangeOf(const LinkMeter& before, const LinkMeter& after);
/// Adds it, or with a sign of -1 takes it away again but for the longest queue.
void Apply(const LinkChange& change, LinkMeter& meter, int sign = 1);

/// Bytes of each link.
std::vector<int64_t> BytesOf(const std::vector<LinkMeter>& meters);

/// All other measures of each link, by name.
std::vector<LinkMeasure> MeasuresOf(const std::vector<LinkMeter>& meters);

} // namespace cosim
