#include "meter.h"

#include <algorithm>
#include <cmath>

namespace cosim {
namespace {

constexpr size_t kBusyCells = size_t{1} << 20;

} // namespace

void
LinkMeter::SampleQueue(uint64_t queued_bytes)
{
    queue_max = std::max(queue_max, queued_bytes);
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

BusyMeter::BusyMeter(size_t num_links)
    : links_(std::max<size_t>(num_links, 1)),
      bins_(8)
{
    while (bins_ < 512 && 2 * bins_ * links_ <= kBusyCells)
    {
        bins_ *= 2;
    }
    busy_.assign(bins_ * links_, 0);
}

void
BusyMeter::Widen()
{
    for (size_t bin = 0; bin < bins_ / 2; ++bin)
    {
        for (size_t link = 0; link < links_; ++link)
        {
            busy_[bin * links_ + link] = busy_[2 * bin * links_ + link] + busy_[(2 * bin + 1) * links_ + link];
        }
    }
    std::fill(busy_.begin() + static_cast<std::ptrdiff_t>(bins_ / 2 * links_), busy_.end(), 0);
    bin_ps_ *= 2;
    used_ = (used_ + 1) / 2;
}

void
BusyMeter::Add(uint32_t link, int64_t start, int64_t duration)
{
    while (start + duration > static_cast<int64_t>(bins_) * bin_ps_)
    {
        Widen();
    }
    while (duration > 0)
    {
        const auto bin = static_cast<size_t>(start / bin_ps_);
        const int64_t part = std::min(duration, static_cast<int64_t>(bin + 1) * bin_ps_ - start);
        busy_[bin * links_ + link] += part;
        used_ = std::max(used_, bin + 1);
        start += part;
        duration -= part;
    }
}

std::vector<int64_t>
BusyMeter::Used() const
{
    return {busy_.begin(), busy_.begin() + static_cast<std::ptrdiff_t>(used_ * links_)};
}

} // namespace cosim
