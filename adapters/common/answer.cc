#include "answer.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include <algorithm>
#include <map>

namespace cosim {
namespace {

constexpr uint64_t kDefaultMessageBytes = uint64_t{4} << 20; // what gRPC takes if nothing is said
constexpr uint64_t kRoomForScalars = 1024;
constexpr uint64_t kBytesOfCompletion = 32;

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
Credit(Seam& seam)
{
    return kMaxOpenFlows - std::min(kMaxOpenFlows, seam.GetFlows().NumOpen());
}

} // namespace

void
FillDescription(const Adapter& adapter, wire::DescribeResponse& answer)
{
    answer.mutable_version()->set_major(kMajor);
    answer.mutable_version()->set_minor(kMinor);
    answer.set_simulator(adapter.simulator);
    answer.set_simulator_version(adapter.version);
    answer.set_build(adapter.build);
    answer.set_deterministic(true);
    answer.set_quantum_ps(adapter.quantum_ps);
    for (const wire::Feature feature : adapter.features)
    {
        answer.add_features(feature);
    }
    wire::Limits& limits = *answer.mutable_limits();
    limits.set_max_message_bytes(kMaxMessageBytes);
    limits.set_max_open_flows(kMaxOpenFlows);
    limits.set_max_sessions(1);
    limits.set_max_nodes(adapter.max_nodes);
    limits.set_max_links(adapter.max_links);
    *answer.mutable_transports() = {adapter.transports.begin(), adapter.transports.end()};
    *answer.mutable_queue_disciplines() = {adapter.queue_disciplines.begin(), adapter.queue_disciplines.end()};
    answer.mutable_options()->insert(adapter.options.begin(), adapter.options.end());
}

void
FillOpened(Seam& seam, wire::Opened& answer)
{
    answer.set_credit(Credit(seam));
    const auto told = seam.Told();
    answer.mutable_settings()->insert(told.begin(), told.end());
}

std::vector<wire::SessionResponse>
MakeAdvanced(Seam& seam, const Advanced& done, uint64_t sequence, uint64_t max_message_bytes)
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
        const auto early = std::any_of(done.completions.begin() + static_cast<std::ptrdiff_t>(first),
                                       done.completions.begin() + static_cast<std::ptrdiff_t>(last),
                                       [](const Completion& one) { return one.cause != one.time; });
        for (size_t k = first; k < last; ++k)
        {
            if (early)
            {
                part.add_cause_ps(done.completions[k].cause);
            }
            part.add_id(done.completions[k].id);
            part.add_start_ps(done.completions[k].start);
            part.add_time_ps(done.completions[k].time);
        }
        first = last;
    } while (first < done.completions.size());
    wire::Advanced& tail = *parts.back().mutable_advanced();
    tail.set_granted_ps(done.granted);
    tail.set_stop_reason(Reason(done.reason));
    tail.set_credit(Credit(seam));
    tail.mutable_digest()->set_a(seam.GetDigest().a);
    tail.mutable_digest()->set_b(seam.GetDigest().b);
    tail.set_events(seam.Events());
    return parts;
}

void
FillSample(const Adapter& adapter, Seam& seam, const wire::SampleRequest& asked, wire::Sampled& answer)
{
    const auto need = [&](wire::Feature feature, bool is_asked) {
        const auto& has = adapter.features;
        if (is_asked && std::find(has.begin(), has.end(), feature) == has.end())
        {
            throw SessionError("STATE", adapter.simulator + " has no " + wire::Feature_Name(feature), {{"request", "sample"}});
        }
    };
    need(wire::FEATURE_QUEUES, asked.link_size() > 0);
    need(wire::FEATURE_RATES, asked.rates());
    const std::vector<uint32_t> links(asked.link().begin(), asked.link().end());
    const size_t num_links = seam.LinkBytes().size();
    for (const uint32_t link : links)
    {
        if (link >= num_links)
        {
            throw SessionError("STATE",
                               "link " + std::to_string(link) + " of " + std::to_string(num_links),
                               {{"request", "sample"}});
        }
    }
    for (const LinkSample& one : seam.Queues(links))
    {
        answer.add_queue_bytes(one.queue_bytes);
        answer.add_sent_bytes(one.sent_bytes);
        answer.add_marks(one.marks);
        answer.add_drops(one.drops);
        answer.add_pause_ps(one.pause_ps);
    }
    for (const RateSample& one : asked.rates() ? seam.Rates() : std::vector<RateSample>())
    {
        answer.add_job(one.job);
        answer.add_src(one.src);
        answer.add_dst(one.dst);
        answer.add_rate_bps(one.rate_bps);
        answer.add_window_bytes(one.window_bytes);
        answer.add_marked(one.marked);
    }
    answer.set_has_work(seam.HasWork());
}

void
FillStatistics(Seam& seam, uint64_t max_message_bytes, wire::Statistics& answer)
{
    const std::vector<int64_t> bytes = seam.LinkBytes();
    answer.mutable_link_bytes()->Add(bytes.begin(), bytes.end());
    for (const LinkMeasure& measure : seam.Measures())
    {
        wire::LinkColumn& column = *answer.add_columns();
        column.set_name(measure.name);
        column.mutable_values()->Add(measure.values.begin(), measure.values.end());
    }
    answer.set_flows_started(seam.GetFlows().NumStarted());
    answer.set_flows_completed(seam.NumCompleted());
    answer.set_events(seam.Events());
    // Bins are joined in pairs until they fit the client's message.
    std::vector<int64_t> busy = seam.Busy().Used();
    int64_t bin_ps = seam.Busy().BinPs();
    const size_t links = std::max<size_t>(bytes.size(), 1);
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
