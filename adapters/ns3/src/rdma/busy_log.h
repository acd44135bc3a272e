// How busy links are, in the session's time, and how busy they were in one phase.
#pragma once

#include "busy.h"
#include "times.h"

#include <cstdint>
#include <vector>

namespace cosim {

/// A time in which a link sent, with short gaps.
struct Stretch
{
    int64_t start;
    int64_t end;
    int64_t busy;
};

/// What ports tell when they send.
class BusyLog
{
  public:
    explicit BusyLog(size_t num_links)
        : meter_(num_links),
          stretches_(num_links),
          starts_(num_links, kNever)
    {
    }

    /// In ns-3's time.
    void Add(uint32_t link, int64_t start, int64_t duration)
    {
        AddAt(link, start + offset_, duration);
        if (starts_[link] != kNever)
        {
            Keep(link, start + offset_, duration);
        }
    }

    /// In the session's time, and not of this phase.
    void AddAt(uint32_t link, int64_t start, int64_t duration)
    {
        meter_.Add(link, start, duration);
    }

    /// By how much the session's time is later than ns-3's.
    void SetOffset(int64_t offset)
    {
        offset_ = offset;
    }

    int64_t Offset() const
    {
        return offset_;
    }

    /// From now on what is told of a link is kept, as of a phase that began at `start`.
    void Begin(uint32_t link, int64_t start)
    {
        starts_[link] = start;
        stretches_[link].clear();
    }

    /// What a link did since, in time since then.
    const std::vector<Stretch>& Since(uint32_t link) const
    {
        return stretches_[link];
    }

    void SetMeter(const BusyMeter& meter)
    {
        meter_ = meter;
    }
    const BusyMeter& Meter() const
    {
        return meter_;
    }

  private:
    void Keep(uint32_t link, int64_t start, int64_t duration)
    {
        constexpr int64_t least = 1'000'000;
        constexpr int64_t share = 64;
        const int64_t since = start - starts_[link];
        auto& all = stretches_[link];
        if (!all.empty() && since - all.back().end <= (since < least * share ? least : since / share))
        {
            all.back().end = since + duration;
            all.back().busy += duration;
            return;
        }
        all.push_back({since, since + duration, duration});
    }

    BusyMeter meter_;
    std::vector<std::vector<Stretch>> stretches_;
    /// When the phase began that a link is in; kNever: none is kept.
    std::vector<int64_t> starts_;
    int64_t offset_ = 0;
};

} // namespace cosim
