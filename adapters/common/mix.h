// Hashing: splitmix64's finaliser (Steele, Lea, Flood 2014, doi:10.1145/2714064.2660195), as all of cosim uses it.
#pragma once

#include <cstdint>

namespace cosim {

inline constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

inline uint64_t
Mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

/// The protocol's digest: sums over completions, in any order.
struct Digest
{
    uint64_t a = 0;
    uint64_t b = 0;

    void Add(int64_t key_high, int64_t key_low, int64_t time)
    {
        uint64_t s = Mix(static_cast<uint64_t>(key_high) + kGolden);
        s = Mix(s + static_cast<uint64_t>(key_low) + kGolden);
        s = Mix(s + static_cast<uint64_t>(time) + kGolden);
        a += s;
        b += Mix(s ^ kGolden);
    }
};

} // namespace cosim
