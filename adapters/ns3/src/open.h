// What a session with ns-3 is opened with, from the wire.
#pragma once

#include "settings.h"

#include <cosim/protocol/v1/network_simulator.pb.h>

namespace cosim {

/// Throws SessionError (INVALID_OPEN).
Settings TakeOpen(const protocol::v1::Open& open);

} // namespace cosim
