// Which links and queue pairs play which others' parts, where two phases are alike.
#pragma once

#include "phase.h"
#include "rdma_fabric.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cosim {

/// A map of the queue pairs, links and nodes of a known phase onto others that are the same but for their names. It grows with the
/// messages that are found alike.
class Likeness
{
  public:
    /// Everything is itself.
    static Likeness Same()
    {
        Likeness likeness;
        likeness.same_ = true;
        return likeness;
    }

    /// Whether a queue pair can play the part of the known one, beside those taken before.
    bool Fits(const RdmaFabric& fabric, uint32_t known, uint32_t here) const;
    /// It does from now on; false: it can't.
    bool Take(const RdmaFabric& fabric, uint32_t known, uint32_t here);

    /// A queue pair or port by its name here.
    uint32_t Here(uint32_t known) const
    {
        return same_ ? known : here_.at(known);
    }
    /// Words of a state with the links' names of the known phase; those of here.
    Words ToKnown(Words words) const;
    Words ToHere(Words words) const;

  private:
    using Names = std::unordered_map<uint32_t, uint32_t>;
    /// Names there and here; empty: the two aren't alike.
    using Named = std::vector<std::pair<uint32_t, uint32_t>>;

    static Named NamesOf(const RdmaFabric& fabric, uint32_t known, uint32_t here);
    static Words Translated(Words words, const Names& names);
    bool Agrees(const Named& named) const;

    bool same_ = false;
    Names here_;
    Names known_;
};

} // namespace cosim
