// From the protocol's Open to settings.
#pragma once

#include "adapter.h"
#include "tcp_settings.h"

namespace cosim {

/// Throws SessionError (INVALID_OPEN).
TcpSettings TakeTcp(const wire::Open& open);

} // namespace cosim
