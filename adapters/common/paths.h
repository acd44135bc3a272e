// The paths that the client gives.
#pragma once

#include "world.h"

#include <map>
#include <tuple>

namespace cosim {

/// Links of (source, destination, channel) triples; a triple's path never changes.
class GivenPaths
{
  public:
    using Triple = std::tuple<uint32_t, uint32_t, uint32_t>;

    explicit GivenPaths(const TopologySettings& topology)
        : topology_(topology)
    {
    }

    /// Throws SessionError (INVALID_FLOWS) unless the links lead there, the same way as before.
    void Give(const Triple& triple, std::vector<uint32_t> links);

    /// Throws SessionError (NO_PATH) where none was given.
    const std::vector<uint32_t>& Find(const Triple& triple) const;

  private:
    const TopologySettings& topology_;
    std::map<Triple, std::vector<uint32_t>> given_;
};

} // namespace cosim
