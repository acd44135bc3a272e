// The parts that the network falls into, by what has been sent.
#pragma once

#include "part.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

namespace cosim {

/// Queue pairs whose packets pass a common link or node are in one part: a switch's memory, too, is shared. Parts grow with the
/// queue pairs that are used, and never part again.
class Parts
{
  public:
    /// Told of two that become one, before they do.
    using Joined = std::function<void(Part& one, Part& other)>;

    Parts(RdmaFabric& fabric, IdleStates& states, Joined joined)
        : fabric_(fabric),
          states_(states),
          joined_(std::move(joined))
    {
    }

    /// The part of a queue pair that is used.
    Part& Of(uint32_t pair);

    /// That of a link that is used.
    const Part& OfLink(uint32_t link) const
    {
        return *of_node_.at(fabric_.PortOf(link).Facts().src);
    }
    /// All of them, in the order of their first use.
    std::deque<Part>& All()
    {
        return parts_;
    }

  private:

    RdmaFabric& fabric_;
    IdleStates& states_;
    Joined joined_;
    std::deque<Part> parts_;
    /// By part, its nodes; by node and by queue pair, the part.
    std::unordered_map<Part*, std::vector<uint32_t>> nodes_;
    std::unordered_map<uint32_t, Part*> of_node_;
    std::unordered_map<uint32_t, uint32_t> node_of_pair_;
};

} // namespace cosim
