// Fewest-link paths.
#pragma once

#include "session_settings.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cosim {

inline constexpr uint32_t kNoLink = ~uint32_t{0};

/// Fewest-link paths over directed links; distances are found once for each destination that is asked for.
class PathFinder
{
  public:
    explicit PathFinder(const SessionSettings& settings);

    /// Links from src to dst. ECMP: a hash of (src, dst, channel, seed) and the node picks among the equally near, as
    /// cosim's own routing `ecmp` does. Throws SessionError (NO_PATH).
    std::vector<uint32_t> Find(uint32_t src, uint32_t dst, uint32_t channel);

    /// Out-links of a node on a shortest way to dst.
    std::vector<uint32_t> Choices(uint32_t node, uint32_t dst);

    /// The way back along the same cables; the shortest one where some link has no opposite.
    std::vector<uint32_t> Back(const std::vector<uint32_t>& path, uint32_t src, uint32_t dst, uint32_t channel);

    /// The link of the same cable the other way, or kNoLink.
    uint32_t Opposite(uint32_t link) const
    {
        return opposite_[link];
    }

  private:
    const std::vector<uint32_t>& Distances(uint32_t dst);

    const SessionSettings& settings_;
    std::vector<std::vector<uint32_t>> out_;
    std::vector<std::vector<uint32_t>> in_;
    std::vector<uint32_t> opposite_;
    std::unordered_map<uint32_t, std::vector<uint32_t>> distances_;
};

} // namespace cosim
