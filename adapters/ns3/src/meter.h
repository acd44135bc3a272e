// What a directed link measures.
#pragma once

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
    uint64_t marks = 0;
    uint64_t queue_max = 0;
    uint64_t samples = 0;
    /// Samples by length: eight bins for each doubling, so that a percentile is within 9 % of the true one.
    std::array<uint32_t, 280> histogram{};

    void SampleQueue(uint64_t queued_bytes);
    /// The length, in bytes, that a share of the samples does not exceed.
    double Percentile(double share) const;
};

/// Time that each link spent sending, in bins that double as time goes on.
class BusyMeter
{
  public:
    explicit BusyMeter(size_t num_links);
    void Add(uint32_t link, int64_t start, int64_t duration);

    int64_t BinPs() const
    {
        return bin_ps_;
    }

    /// [bin * links + link], up to the last bin in use.
    std::vector<int64_t> Used() const;

  private:
    void Widen();
    size_t links_;
    size_t bins_;
    size_t used_ = 0;
    int64_t bin_ps_ = 1 << 16;
    std::vector<int64_t> busy_;
};

} // namespace cosim
