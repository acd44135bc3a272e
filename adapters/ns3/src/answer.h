// From what the simulator did to messages.
#pragma once

#include "error.h"
#include "network.h"
#include "take.h"

#include <grpcpp/support/status.h>

namespace cosim {

void FillDescription(wire::DescribeResponse& answer);

void FillOpened(const Network& network, wire::Opened& answer);

/// Splits an answer so that no message is larger than the client takes. Wall times are of this advance.
std::vector<wire::SessionResponse> MakeAdvanced(Network& network,
                                                const Advanced& done,
                                                uint64_t sequence,
                                                uint64_t max_message_bytes);

void FillStatistics(Network& network, uint64_t max_message_bytes, wire::Statistics& answer);

/// The status of an error, with google.rpc details.
grpc::Status MakeStatus(const SessionError& error);

} // namespace cosim
