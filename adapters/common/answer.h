// From what the simulator did to messages.
#pragma once

#include "adapter.h"
#include "error.h"

#include <grpcpp/support/status.h>

namespace cosim {

void FillDescription(const Adapter& adapter, wire::DescribeResponse& answer);

void FillOpened(Seam& seam, wire::Opened& answer);

/// Splits an answer so that no message is larger than the client takes. Wall times are of this advance.
std::vector<wire::SessionResponse> MakeAdvanced(Seam& seam,
                                                const Advanced& done,
                                                uint64_t sequence,
                                                uint64_t max_message_bytes);

/// Throws SessionError (STATE) for what the adapter doesn't claim, or a link that isn't there.
void FillSample(const Adapter& adapter, Seam& seam, const wire::SampleRequest& asked, wire::Sampled& answer);

void FillStatistics(Seam& seam, uint64_t max_message_bytes, wire::Statistics& answer);

/// The status of an error, with google.rpc details.
grpc::Status MakeStatus(const SessionError& error);

} // namespace cosim
