#include "busy.h"

#include <algorithm>

namespace cosim {
namespace {

constexpr size_t kBusyCells = size_t{1} << 20;

} // namespace

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
