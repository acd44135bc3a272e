// Simulated time and the clock on the wall.
#pragma once

#include <chrono>
#include <cstdint>

namespace cosim {

/// Time that never comes; what the protocol calls 2^62 - 1.
inline constexpr int64_t kNever = (int64_t{1} << 62) - 1;

/// Time of what has not happened yet: longer ago than anything.
inline constexpr int64_t kNeverYet = -(int64_t{1} << 61);

using Wall = std::chrono::steady_clock;

} // namespace cosim
