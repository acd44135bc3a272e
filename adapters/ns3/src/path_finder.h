// Fewest-link paths.
#pragma once

#include "session_settings.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cosim {

inline constexpr uint32_t kNoLink = ~uint32_t{0};

/// Fewest-link paths over directed links, round those to be avoided while there is a way; distances are found once for each
/// destination that is asked for.
class PathFinder
{
  public:
    explicit PathFinder(const SessionSettings& settings);

    /// From now on paths go round these links, and no others, where there is a way.
    void Avoid(const std::vector<uint32_t>& dead);
    /// Whether a path has one of them.
    bool IsCut(const std::vector<uint32_t>& path) const;

    /// Links from src to dst where all work. ECMP: a hash of (src, dst, channel, seed) and the node picks among the equally
    /// near, as cosim's own routing `ecmp` does. Throws SessionError (NO_PATH).
    std::vector<uint32_t> Find(uint32_t src, uint32_t dst, uint32_t channel);
    /// The same round what is to be avoided.
    std::vector<uint32_t> Around(uint32_t src, uint32_t dst, uint32_t channel);

    /// Out-links of a node on a shortest way to dst, round what is to be avoided.
    std::vector<uint32_t> Choices(uint32_t node, uint32_t dst);

    /// The way back along the same cables; the shortest one where some link has no opposite.
    std::vector<uint32_t> Back(const std::vector<uint32_t>& path, uint32_t src, uint32_t dst, uint32_t channel);

    /// The link of the same cable the other way, or kNoLink.
    uint32_t Opposite(uint32_t link) const
    {
        return opposite_[link];
    }

  private:
    /// To dst, of every node, with `all` links or those not to be avoided.
    const std::vector<uint32_t>& Distances(uint32_t dst, bool all);
    std::vector<uint32_t> Choices(uint32_t node, uint32_t dst, bool all);
    std::vector<uint32_t> Hash(uint32_t src, uint32_t dst, uint32_t channel, bool all);

    const SessionSettings& settings_;
    std::vector<std::vector<uint32_t>> out_;
    std::vector<std::vector<uint32_t>> in_;
    std::vector<uint32_t> opposite_;
    std::vector<bool> dead_;
    std::unordered_map<uint64_t, std::vector<uint32_t>> distances_;
};

} // namespace cosim
