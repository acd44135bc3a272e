// A part of the network that shares no link and no switch with the others, and what goes on there.
#pragma once

#include "flows.h"
#include "likeness.h"
#include "phase_recorder.h"
#include "recall.h"

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace cosim {

/// A message that was sent in a phase.
struct Given
{
    uint64_t id;
    FlowSpec spec;
    int64_t at;
    uint32_t round;
};

/// Nothing goes on in it; or its phase is simulated; or it is recalled, as one of some known ones; or it mirrors another part that is
/// simulated, which began the same in the same instant.
struct Part
{
    Part(RdmaFabric& fabric, IdleStates& states)
        : open(fabric, states)
    {
    }

    bool Simulated() const
    {
        return open.Recording();
    }
    bool Idle() const
    {
        return !Simulated() && known.empty() && leader == nullptr;
    }

    /// When its phase began.
    int64_t start = 0;
    PhaseRecorder open;
    std::vector<Recall> known;
    /// The part that it mirrors, as which of it; and who mirrors it.
    Part* leader = nullptr;
    Likeness likeness;
    std::vector<Part*> mirrors;
    /// What was sent since the start where it isn't simulated, and what of that was told to have arrived.
    std::vector<Given> given;
    std::unordered_set<uint64_t> told;
    /// Told before ns-3 has come to it.
    std::unordered_set<uint64_t> ahead;
};

} // namespace cosim
