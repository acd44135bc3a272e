// From messages to what the simulator takes; every fault in them is a SessionError.
#pragma once

#include "network.h"
#include "settings.h"

#include <cosim/protocol/v1/network_simulator.pb.h>

namespace cosim {

namespace wire = cosim::protocol::v1;

inline constexpr uint32_t kMajor = 1;
inline constexpr uint32_t kMinor = 0;
inline constexpr uint64_t kMaxMessageBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxOpenFlows = uint64_t{4} << 20;
inline constexpr uint32_t kMaxNodes = 16384;
inline constexpr uint32_t kMaxLinks = 65536;

/// What this adapter can do.
const std::vector<wire::Feature>& Features();

/// Throws SessionError (VERSION).
void CheckVersion(const wire::Version& version);

/// Throws SessionError (VERSION, FEATURE_MISSING, INVALID_OPEN, TOO_LARGE).
Settings TakeOpen(const wire::Open& open);

/// Paths, flows, starts, in this order. Throws SessionError (INVALID_FLOWS, CAUSALITY, NO_PATH, OVERLOADED).
void TakeBatch(const wire::Advance& advance, Network& network);

} // namespace cosim
