#include "meter.h"

#include <algorithm>
#include <cmath>

namespace cosim {
namespace {

template <typename Get>
LinkMeasure
Measure(const char* name, const std::vector<LinkMeter>& meters, Get get)
{
    LinkMeasure measure{name, {}};
    for (const LinkMeter& meter : meters)
    {
        measure.values.push_back(static_cast<double>(get(meter)));
    }
    return measure;
}

constexpr auto kMinusOne = static_cast<uint64_t>(-1);

} // namespace

void
LinkCounts::Add(const LinkCounts& other, uint64_t by)
{
    bytes += by * other.bytes;
    drops += by * other.drops;
    cut += by * other.cut;
    marks += by * other.marks;
    trims += by * other.trims;
    samples += by * other.samples;
    queue_max = std::max(queue_max, other.queue_max);
}

void
LinkMeter::SampleQueue(uint64_t queued_bytes)
{
    recent_max = std::max(recent_max, queued_bytes);
    queue_max = std::max(queue_max, recent_max);
    ++samples;
    size_t bin = 0;
    if (queued_bytes > 0)
    {
        // Eight bins an octave: the exponent, then the three bits below the leading one.
        const int octave = 63 - __builtin_clzll(queued_bytes);
        const uint64_t part = octave >= 3 ? (queued_bytes >> (octave - 3)) & 7 : (queued_bytes << (3 - octave)) & 7;
        bin = 1 + static_cast<size_t>(octave) * 8 + part;
    }
    ++histogram[std::min(bin, histogram.size() - 1)];
}

double
LinkMeter::Percentile(double share) const
{
    const double wanted = share * static_cast<double>(samples);
    uint64_t seen = 0;
    for (size_t bin = 0; bin < histogram.size(); ++bin)
    {
        seen += histogram[bin];
        if (static_cast<double>(seen) >= wanted)
        {
            if (bin == 0)
            {
                return 0;
            }
            const auto octave = static_cast<int>((bin - 1) / 8);
            const double low = std::ldexp(8.0 + static_cast<double>((bin - 1) % 8), octave - 3);
            return std::min(low, static_cast<double>(queue_max));
        }
    }
    return static_cast<double>(queue_max);
}

LinkChange
ChangeOf(const LinkMeter& before, const LinkMeter& after)
{
    LinkChange change{after, {}};
    change.Add(before, kMinusOne);
    change.queue_max = after.recent_max;
    for (size_t bin = 0; bin < after.histogram.size(); ++bin)
    {
        if (after.histogram[bin] != before.histogram[bin])
        {
            change.bins.emplace_back(static_cast<uint16_t>(bin), after.histogram[bin] - before.histogram[bin]);
        }
    }
    return change;
}

void
Apply(const LinkChange& change, LinkMeter& meter, int sign)
{
    const auto by = static_cast<uint64_t>(sign);
    meter.Add(change, by);
    for (const auto& [bin, samples] : change.bins)
    {
        meter.histogram[bin] += static_cast<uint32_t>(by) * samples;
    }
}

std::vector<int64_t>
BytesOf(const std::vector<LinkMeter>& meters)
{
    std::vector<int64_t> bytes;
    for (const LinkMeter& meter : meters)
    {
        bytes.push_back(static_cast<int64_t>(meter.bytes));
    }
    return bytes;
}

std::vector<LinkMeasure>
MeasuresOf(const std::vector<LinkMeter>& meters)
{
    return {
        Measure("drops", meters, [](const LinkMeter& m) { return m.drops + m.cut; }),
        Measure("marks", meters, [](const LinkMeter& m) { return m.marks; }),
        Measure("queue_p50_bytes", meters, [](const LinkMeter& m) { return m.Percentile(0.5); }),
        Measure("queue_p99_bytes", meters, [](const LinkMeter& m) { return m.Percentile(0.99); }),
        Measure("queue_max_bytes", meters, [](const LinkMeter& m) { return m.queue_max; }),
    };
}

} // namespace cosim
