// The paths that the client gives.
#pragma once

#include "world.h"

#include <map>
#include <tuple>

namespace cosim {

/// Links of (source, destination, channel) triples, a path of its own and others round sets of dead links; none ever changes.
class GivenPaths
{
  public:
    using Triple = std::tuple<uint32_t, uint32_t, uint32_t>;

    /// Sets of dead links are numbered from 1 to `num_sets`.
    explicit GivenPaths(const TopologySettings& topology, uint32_t num_sets = 0)
        : topology_(topology),
          num_sets_(num_sets)
    {
    }

    /// There are sets of dead links up to this number.
    void KnowSets(uint32_t num_sets)
    {
        num_sets_ = num_sets;
    }

    /// Throws SessionError (INVALID_FLOWS) unless the links lead there, the same way as before.
    void Give(const Triple& triple, std::vector<uint32_t> links, uint32_t dead_set);

    /// Throws SessionError (NO_PATH) where none was given.
    const std::vector<uint32_t>& Find(const Triple& triple) const;
    /// Its path round a set of dead links: its own where none was given.
    const std::vector<uint32_t>& Around(const Triple& triple, uint32_t dead_set) const;

  private:
    const TopologySettings& topology_;
    uint32_t num_sets_;
    std::map<std::pair<Triple, uint32_t>, std::vector<uint32_t>> given_;
};

} // namespace cosim
