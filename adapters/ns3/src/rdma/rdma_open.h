// From the protocol's Open to settings.
#pragma once

#include "adapter.h"
#include "rdma_settings.h"

namespace cosim {

/// Throws SessionError (INVALID_OPEN).
RdmaSettings TakeRdma(const wire::Open& open);

} // namespace cosim
