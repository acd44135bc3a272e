#include "answer.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include <algorithm>
#include <map>

namespace cosim {
namespace {

constexpr uint64_t kDefaultMessageBytes = uint64_t{4} << 20; // what gRPC takes if nothing is said
constexpr uint64_t kRoomForScalars = 1024;
constexpr uint64_t kBytesOfCompletion = 24;

uint64_t
Room(uint64_t max_message_bytes)
{
    const uint64_t most = std::min(max_message_bytes == 0 ? kDefaultMessageBytes : max_message_bytes, kMaxMessageBytes);
    return most > 2 * kRoomForScalars ? most - kRoomForScalars : most / 2;
}

wire::StopReason
Reason(StopReason reason)
{
    switch (reason)
    {
    case StopReason::kHorizon:
        return wire::STOP_REASON_HORIZON;
    case StopReason::kReaction:
        return wire::STOP_REASON_REACTION;
    case StopReason::kBuffer:
        return wire::STOP_REASON_BUFFER;
    case StopReason::kBudget:
        return wire::STOP_REASON_BUDGET;
    case StopReason::kCancelled:
        return wire::STOP_REASON_CANCELLED;
    }
    return wire::STOP_REASON_UNSPECIFIED;
}

uint64_t
Credit(const Network& network)
{
    return kMaxOpenFlows - std::min(kMaxOpenFlows, const_cast<Network&>(network).GetFlows().NumOpen());
}

template <typename Get>
void
AddColumn(wire::Statistics& answer, const char* name, const std::vector<LinkMeter>& meters, Get get)
{
    wire::LinkColumn& column = *answer.add_columns();
    column.set_name(name);
    column.mutable_values()->Reserve(static_cast<int>(meters.size()));
    for (const LinkMeter& meter : meters)
    {
        column.add_values(static_cast<double>(get(meter)));
    }
}

} // namespace

void
FillDescription(wire::DescribeResponse& answer)
{
    answer.mutable_version()->set_major(kMajor);
    answer.mutable_version()->set_minor(kMinor);
    answer.set_simulator("ns-3");
    answer.set_simulator_version(COSIM_NS3_VERSION);
    answer.set_build("cosim-ns3 1, ns-3 " COSIM_NS3_VERSION ", " __VERSION__);
    answer.set_deterministic(true);
    answer.set_quantum_ps(1);
    for (const wire::Feature feature : Features())
    {
        answer.add_features(feature);
    }
    wire::Limits& limits = *answer.mutable_limits();
    limits.set_max_message_bytes(kMaxMessageBytes);
    limits.set_max_open_flows(kMaxOpenFlows);
    limits.set_max_sessions(1);
    limits.set_max_nodes(kMaxNodes);
    limits.set_max_links(kMaxLinks);
    for (const char* name : {"cubic", "newreno", "dctcp"})
    {
        answer.add_transports(name);
    }
    for (const char* name : {"drop_tail", "red"})
    {
        answer.add_queue_disciplines(name);
    }
    for (const auto& [key, about] : Settings::Options())
    {
        (*answer.mutable_options())[key] = about;
    }
}

void
FillOpened(const Network& network, wire::Opened& answer)
{
    answer.set_credit(Credit(network));
    for (const auto& [key, value] : network.GetSettings().Told())
    {
        (*answer.mutable_settings())[key] = value;
    }
}

std::vector<wire::SessionResponse>
MakeAdvanced(Network& network, const Advanced& done, uint64_t sequence, uint64_t max_message_bytes)
{
    const size_t fits = std::max<size_t>(1, Room(max_message_bytes) / kBytesOfCompletion);
    std::vector<wire::SessionResponse> parts;
    size_t first = 0;
    do
    {
        const size_t last = std::min(first + fits, done.completions.size());
        wire::Advanced& part = *parts.emplace_back().mutable_advanced();
        part.set_sequence(sequence);
        part.set_more(last < done.completions.size());
        const int count = static_cast<int>(last - first);
        part.mutable_id()->Reserve(count);
        part.mutable_start_ps()->Reserve(count);
        part.mutable_time_ps()->Reserve(count);
        for (size_t k = first; k < last; ++k)
        {
            part.add_id(done.completions[k].id);
            part.add_start_ps(done.completions[k].start);
            part.add_time_ps(done.completions[k].time);
        }
        first = last;
    } while (first < done.completions.size());
    wire::Advanced& tail = *parts.back().mutable_advanced();
    tail.set_granted_ps(done.granted);
    tail.set_stop_reason(Reason(done.reason));
    tail.set_credit(Credit(network));
    tail.mutable_digest()->set_a(network.GetDigest().a);
    tail.mutable_digest()->set_b(network.GetDigest().b);
    tail.set_events(network.GetClock().Events());
    return parts;
}

void
FillStatistics(Network& network, uint64_t max_message_bytes, wire::Statistics& answer)
{
    const std::vector<LinkMeter>& meters = network.GetFabric().Meters();
    for (const LinkMeter& meter : meters)
    {
        answer.add_link_bytes(static_cast<int64_t>(meter.bytes));
    }
    AddColumn(answer, "drops", meters, [](const LinkMeter& m) { return m.drops; });
    AddColumn(answer, "marks", meters, [](const LinkMeter& m) { return m.marks; });
    AddColumn(answer, "queue_p50_bytes", meters, [](const LinkMeter& m) { return m.Percentile(0.5); });
    AddColumn(answer, "queue_p99_bytes", meters, [](const LinkMeter& m) { return m.Percentile(0.99); });
    AddColumn(answer, "queue_max_bytes", meters, [](const LinkMeter& m) { return m.queue_max; });
    answer.set_flows_started(network.GetFlows().NumStarted());
    answer.set_flows_completed(network.NumCompleted());
    answer.set_events(network.GetClock().Events());
    // Bins are joined in pairs until they fit the client's message.
    std::vector<int64_t> busy = network.GetFabric().Busy().Used();
    int64_t bin_ps = network.GetFabric().Busy().BinPs();
    const size_t links = std::max<size_t>(meters.size(), 1);
    const uint64_t used = answer.ByteSizeLong();
    const uint64_t room = Room(max_message_bytes);
    while (busy.size() > links && used + busy.size() * sizeof(int64_t) > room)
    {
        const size_t bins = busy.size() / links;
        for (size_t bin = 0; bin < bins; bin += 2)
        {
            for (size_t link = 0; link < links; ++link)
            {
                const int64_t second = bin + 1 < bins ? busy[(bin + 1) * links + link] : 0;
                busy[bin / 2 * links + link] = busy[bin * links + link] + second;
            }
        }
        busy.resize((bins + 1) / 2 * links);
        bin_ps *= 2;
    }
    answer.set_bin_ps(bin_ps);
    answer.mutable_busy_ps()->Add(busy.begin(), busy.end());
}

grpc::Status
MakeStatus(const SessionError& error)
{
    static const std::map<std::string, grpc::StatusCode> codes = {
        {"VERSION", grpc::StatusCode::FAILED_PRECONDITION},
        {"FEATURE_MISSING", grpc::StatusCode::FAILED_PRECONDITION},
        {"INVALID_OPEN", grpc::StatusCode::INVALID_ARGUMENT},
        {"STATE", grpc::StatusCode::FAILED_PRECONDITION},
        {"SEQUENCE", grpc::StatusCode::FAILED_PRECONDITION},
        {"CAUSALITY", grpc::StatusCode::FAILED_PRECONDITION},
        {"INVALID_FLOWS", grpc::StatusCode::INVALID_ARGUMENT},
        {"NO_PATH", grpc::StatusCode::FAILED_PRECONDITION},
        {"OVERLOADED", grpc::StatusCode::RESOURCE_EXHAUSTED},
        {"TOO_LARGE", grpc::StatusCode::RESOURCE_EXHAUSTED},
    };
    const auto found = codes.find(error.Reason());
    const grpc::StatusCode code = found == codes.end() ? grpc::StatusCode::INTERNAL : found->second;
    google::rpc::ErrorInfo info;
    info.set_reason(error.Reason());
    info.set_domain("cosim.protocol.v1");
    for (const auto& [key, value] : error.Metadata())
    {
        (*info.mutable_metadata())[key] = value;
    }
    google::rpc::Status status;
    status.set_code(code);
    status.set_message(error.what());
    status.add_details()->PackFrom(info);
    return {code, error.what(), status.SerializeAsString()};
}

} // namespace cosim
