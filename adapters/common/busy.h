// How busy links are, over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cosim {

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
