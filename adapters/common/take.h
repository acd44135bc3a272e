// From messages to what the simulator takes; every fault in them is a SessionError.
#pragma once

#include "adapter.h"
#include "world.h"

namespace cosim {

/// Throws SessionError (VERSION).
void CheckVersion(const wire::Version& version);

/// Throws SessionError (VERSION, FEATURE_MISSING, TOO_LARGE): what no adapter opens a session with.
void CheckOpen(const wire::Open& open, const Adapter& adapter);

/// Throws SessionError (INVALID_OPEN).
TopologySettings TakeTopology(const wire::Topology& topology);

/// Paths, flows, starts, in this order. Throws SessionError (INVALID_FLOWS, CAUSALITY, NO_PATH, OVERLOADED).
void TakeBatch(const wire::Advance& advance, Seam& seam);

} // namespace cosim
