// From the protocol's Open to what every session has.
#pragma once

#include "adapter.h"
#include "session_settings.h"

namespace cosim {

/// Throws SessionError (INVALID_OPEN).
void TakeSession(const wire::Open& open, SessionSettings& settings);

} // namespace cosim
