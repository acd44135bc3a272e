// The states of queue pairs and ports that nothing is going on in, whatever time has passed since.
#pragma once

#include "phase.h"
#include "rdma_fabric.h"

#include <cstdint>
#include <unordered_map>

namespace cosim {

/// A state is in ns-3's objects, with the offset of the session's time over ns-3's that held when it was last simulated, or it
/// is that of the end of a phase that was recalled. Here its times are always those of the session.
class IdleStates
{
  public:
    explicit IdleStates(RdmaFabric& fabric)
        : fabric_(fabric)
    {
    }

    /// A state as it looks from a time at which it is idle and links have sent so much.
    Words From(uint32_t entity, int64_t moment, const SentBytes& sent);
    /// Puts a state into ns-3's objects, for a time that is simulated with this offset.
    void Bring(uint32_t entity, int64_t offset);
    /// It was simulated, with this offset.
    void Simulated(uint32_t entity, int64_t offset);
    /// It is this, as it looks from a time.
    void Set(uint32_t entity, const Words& words, int64_t moment, const SentBytes& sent);

  private:
    struct Idle
    {
        bool recalled = false;
        int64_t offset = 0;
        Words words;
    };

    void Walk(uint32_t entity, StateWalk& walk);
    Words Of(uint32_t entity);

    RdmaFabric& fabric_;
    std::unordered_map<uint32_t, Idle> idle_;
};

} // namespace cosim
