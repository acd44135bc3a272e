// Sets of bytes, as intervals.
#pragma once

#include <cstdint>
#include <map>

namespace cosim {

/// Disjoint half-open intervals; those that touch are one.
class Intervals
{
  public:
    /// Adds an interval; returns how many bytes of it were not there.
    uint64_t Add(uint64_t begin, uint64_t end);
    /// Takes an interval out.
    void Remove(uint64_t begin, uint64_t end);
    /// Drops everything below.
    void DropBelow(uint64_t begin)
    {
        Remove(0, begin);
    }
    /// The end of the interval that holds a byte, or the byte itself.
    uint64_t EndFrom(uint64_t at) const;
    bool Empty() const
    {
        return intervals_.empty();
    }
    /// The first byte of the first one, of which there has to be one.
    uint64_t First() const
    {
        return intervals_.begin()->first;
    }
    /// The end of the last one; 0: there is none.
    uint64_t Last() const
    {
        return intervals_.empty() ? 0 : intervals_.rbegin()->second;
    }
    uint64_t Bytes() const
    {
        return bytes_;
    }
    uint64_t BytesBelow(uint64_t end) const;

  private:
    std::map<uint64_t, uint64_t> intervals_;
    uint64_t bytes_ = 0;
};

} // namespace cosim
