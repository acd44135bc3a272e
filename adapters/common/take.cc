#include "take.h"

#include "error.h"

#include <algorithm>
#include <functional>

namespace cosim {
namespace {

[[noreturn]] void
Fault(const std::string& field, const std::string& message)
{
    throw SessionError("INVALID_FLOWS", field + ": " + message, {{"field", field}});
}

/// A column: an entry for each flow, one for all, or none for the default.
template <typename Repeated>
class Column
{
  public:
    using Value = typename Repeated::value_type;

    Column(const char* name, const Repeated& values, uint32_t count, Value missing)
        : data_(values.data()),
          step_(values.size() == static_cast<int>(count) ? 1 : 0),
          missing_(missing)
    {
        if (values.empty())
        {
            data_ = &missing_;
            step_ = 0;
        }
        else if (values.size() != 1 && values.size() != static_cast<int>(count))
        {
            Fault(name, std::to_string(values.size()) + " entries for " + std::to_string(count) + " flows");
        }
    }

    Column(const Column&) = delete;
    Column& operator=(const Column&) = delete;

    Value operator[](uint32_t k) const
    {
        return data_[k * step_];
    }

  private:
    const Value* data_;
    size_t step_;
    Value missing_;
};

template <typename Repeated>
Column(const char*, const Repeated&, uint32_t, int) -> Column<Repeated>;

void
TakePaths(const wire::Paths& paths, Seam& seam)
{
    const int count = paths.src_size();
    if (paths.dst_size() != count || paths.channel_size() != count || paths.end_size() != count ||
        (paths.dead_set_size() != 0 && paths.dead_set_size() != count))
    {
        Fault("paths", "columns differ in length");
    }
    uint32_t first = 0;
    for (int k = 0; k < count; ++k)
    {
        const uint32_t end = paths.end(k);
        if (end < first || end > static_cast<uint32_t>(paths.link_size()))
        {
            Fault("paths.end", "not ascending, or beyond the links");
        }
        seam.GivePath(paths.src(k),
                      paths.dst(k),
                      paths.channel(k),
                      {paths.link().begin() + first, paths.link().begin() + end},
                      paths.dead_set_size() != 0 ? paths.dead_set(k) : 0);
        first = end;
    }
}

void
TakeChanges(const wire::Changes& changes, Seam& seam)
{
    if (changes.link_size() != changes.time_ps_size() || changes.rate_bps_size() != changes.time_ps_size() ||
        changes.dead_end_size() != changes.route_ps_size())
    {
        Fault("changes", "columns differ in length");
    }
    for (int k = 0; k < changes.time_ps_size(); ++k)
    {
        seam.GiveLinkChange(changes.time_ps(k), changes.link(k), changes.rate_bps(k));
    }
    uint32_t first = 0;
    for (int k = 0; k < changes.route_ps_size(); ++k)
    {
        const uint32_t end = changes.dead_end(k);
        if (end < first || end > static_cast<uint32_t>(changes.dead_size()))
        {
            Fault("changes.dead_end", "not ascending, or beyond the links");
        }
        const std::vector<uint32_t> dead(changes.dead().begin() + first, changes.dead().begin() + end);
        if (std::adjacent_find(dead.begin(), dead.end(), std::greater_equal<>()) != dead.end())
        {
            Fault("changes.dead", "a set of dead links ascends");
        }
        seam.GiveRouteChange(changes.route_ps(k), dead);
        first = end;
    }
    if (first != static_cast<uint32_t>(changes.dead_size()))
    {
        Fault("changes.dead", "links beyond the last set");
    }
    if (changes.control_size() != 0)
    {
        throw SessionError("STATE", "it has no control whose parameters change while it runs");
    }
}

using Waits = std::vector<std::pair<uint64_t, Wait>>;

void
TakeWaits(const wire::Flows& flows, uint32_t k, uint64_t id, uint64_t oldest, Waits& waits)
{
    waits.clear();
    if (flows.dependency_end_size() == 0)
    {
        return;
    }
    const uint32_t begin = k == 0 ? 0 : flows.dependency_end(static_cast<int>(k) - 1);
    const uint32_t end = flows.dependency_end(static_cast<int>(k));
    if (end < begin || end > static_cast<uint32_t>(flows.dependency_id_size()))
    {
        Fault("flows.dependency_end", "not ascending, or beyond the dependencies");
    }
    for (auto at = static_cast<int>(begin); at < static_cast<int>(end); ++at)
    {
        if (flows.dependency_id(at) >= id)
        {
            Fault("flows.dependency_id",
                  "flow " + std::to_string(id) + " waits for flow " + std::to_string(flows.dependency_id(at)) +
                      ", which is not an earlier one");
        }
        if (flows.dependency_id(at) < oldest)
        {
            Fault("flows.dependency_id",
                  "flow " + std::to_string(id) + " waits for flow " + std::to_string(flows.dependency_id(at)) +
                      ", below oldest_id " + std::to_string(oldest) + " of an earlier advance");
        }
        Wait wait = Wait::kCompletion;
        if (flows.dependency_kind_size() > 0)
        {
            const auto kind = flows.dependency_kind(at);
            if (kind != wire::DEPENDENCY_KIND_COMPLETION && kind != wire::DEPENDENCY_KIND_START)
            {
                Fault("flows.dependency_kind", "unknown kind " + std::to_string(kind));
            }
            wait = kind == wire::DEPENDENCY_KIND_START ? Wait::kStart : Wait::kCompletion;
        }
        waits.emplace_back(flows.dependency_id(at), wait);
    }
}

void
TakeFlows(const wire::Flows& flows, Seam& seam)
{
    const uint32_t count = flows.count();
    if (count == 0)
    {
        return;
    }
    const Flows& book = seam.GetFlows();
    if (flows.first_id() != book.Count())
    {
        Fault("flows.first_id",
              "the next flow is " + std::to_string(book.Count()) + ", not " + std::to_string(flows.first_id()));
    }
    if (count > kMaxOpenFlows - std::min(kMaxOpenFlows, book.NumOpen()))
    {
        throw SessionError("OVERLOADED",
                           std::to_string(count) + " flows, " + std::to_string(book.NumOpen()) + " open",
                           {{"limit", std::to_string(kMaxOpenFlows)}});
    }
    if (flows.dependency_end_size() != 0 && flows.dependency_end_size() != static_cast<int>(count))
    {
        Fault("flows.dependency_end", "neither empty nor one entry for each flow");
    }
    if (flows.dependency_kind_size() != 0 && flows.dependency_kind_size() != flows.dependency_id_size())
    {
        Fault("flows.dependency_kind", "neither empty nor one entry for each dependency");
    }
    const Column key_high("flows.key_high", flows.key_high(), count, 0);
    const Column key_low("flows.key_low", flows.key_low(), count, 0);
    const Column src("flows.src", flows.src(), count, 0);
    const Column dst("flows.dst", flows.dst(), count, 0);
    const Column size("flows.size_bytes", flows.size_bytes(), count, 0);
    const Column channel("flows.channel", flows.channel(), count, 0);
    const Column start("flows.start_ps", flows.start_ps(), count, -1);
    const Column cause("flows.cause_ps", flows.cause_ps(), count, -1);
    const Column priority("flows.priority", flows.priority(), count, 0);
    const Column weight("flows.weight", flows.weight(), count, 1);
    const Column job("flows.job", flows.job(), count, 0);
    const Column coflow("flows.coflow", flows.coflow(), count, 0);
    const Column coflow_bytes("flows.coflow_bytes", flows.coflow_bytes(), count, 0);
    const Column reaction("flows.reaction_delay_ps", flows.reaction_delay_ps(), count, 0);
    const Column delay("flows.delay_ps", flows.delay_ps(), count, 0);
    const uint32_t endpoints = seam.NumEndpoints();
    Waits waits;
    for (uint32_t k = 0; k < count; ++k)
    {
        const uint64_t id = flows.first_id() + k;
        if (src[k] >= endpoints || dst[k] >= endpoints)
        {
            Fault("flows.src", "flow " + std::to_string(id) + " is not between endpoints");
        }
        TakeWaits(flows, k, id, book.Oldest(), waits);
        if (size[k] < 0 || reaction[k] < 0 || delay[k] < 0 || start[k] < -1 || (start[k] >= 0 && !waits.empty()))
        {
            Fault("flows", "flow " + std::to_string(id) + " has a negative number, or both a start and dependencies");
        }
        FlowSpec spec;
        spec.key_high = key_high[k];
        spec.key_low = key_low[k];
        spec.size_bytes = size[k];
        spec.reaction_ps = reaction[k];
        spec.delay_ps = delay[k];
        if (!(weight[k] > 0))
        {
            Fault("flows.weight", "flow " + std::to_string(id) + " has a weight that is not above 0");
        }
        spec.priority = priority[k];
        spec.weight = weight[k];
        spec.coflow = seam.CoflowOf(job[k], coflow[k], coflow_bytes[k]);
        spec.connection =
            src[k] == dst[k] ? kMark : seam.Connect(job[k], src[k], dst[k], channel[k]);
        const int64_t starts = start[k];
        seam.Give(spec, waits, starts, flows.cause_ps_size() == 0 ? starts : std::min(cause[k], starts));
    }
}

void
TakeStarts(const wire::Starts& starts, Seam& seam)
{
    const int count = starts.id_size();
    if (starts.start_ps_size() != count || (starts.cause_ps_size() != 0 && starts.cause_ps_size() != count))
    {
        Fault("starts", "columns differ in length");
    }
    for (int k = 0; k < count; ++k)
    {
        const int64_t start = starts.start_ps(k);
        seam.GiveStart(starts.id(k), start, starts.cause_ps_size() == 0 ? start : starts.cause_ps(k));
    }
}

} // namespace

void
CheckVersion(const wire::Version& version)
{
    if (version.major() != kMajor)
    {
        throw SessionError("VERSION",
                           "this adapter speaks version " + std::to_string(kMajor) + "." + std::to_string(kMinor) +
                               " of the protocol, the client " + std::to_string(version.major()) + "." +
                               std::to_string(version.minor()),
                           {{"expected", std::to_string(kMajor)}, {"given", std::to_string(version.major())}});
    }
}

void
CheckOpen(const wire::Open& open, const Adapter& adapter)
{
    CheckVersion(open.version());
    for (const int feature : open.required_features())
    {
        if (std::find(adapter.features.begin(), adapter.features.end(), feature) == adapter.features.end())
        {
            const auto& name = wire::Feature_Name(static_cast<wire::Feature>(feature));
            throw SessionError("FEATURE_MISSING",
                               adapter.simulator + " can't do " + (name.empty() ? std::to_string(feature) : name),
                               {{"feature", name.empty() ? std::to_string(feature) : name}});
        }
    }
    const wire::Topology& topology = open.topology();
    if (topology.node_names_size() > static_cast<int>(adapter.max_nodes) ||
        topology.link_src_size() > static_cast<int>(adapter.max_links))
    {
        throw SessionError("TOO_LARGE",
                           "the topology is larger than this adapter takes",
                           {{"limit",
                             std::to_string(adapter.max_nodes) + " nodes, " + std::to_string(adapter.max_links) +
                                 " links"}});
    }
}

TopologySettings
TakeTopology(const wire::Topology& topology)
{
    TopologySettings taken;
    taken.num_endpoints = topology.num_endpoints();
    taken.num_nodes = static_cast<uint32_t>(topology.node_names_size());
    taken.node_names.assign(topology.node_names().begin(), topology.node_names().end());
    taken.link_src.assign(topology.link_src().begin(), topology.link_src().end());
    taken.link_dst.assign(topology.link_dst().begin(), topology.link_dst().end());
    taken.link_rate_bps.assign(topology.link_rate_bps().begin(), topology.link_rate_bps().end());
    taken.link_latency_ps.assign(topology.link_latency_ps().begin(), topology.link_latency_ps().end());
    CheckTopology(taken);
    return taken;
}

void
TakeBatch(const wire::Advance& advance, Seam& seam)
{
    TakeChanges(advance.changes(), seam);
    TakePaths(advance.paths(), seam);
    TakeFlows(advance.flows(), seam);
    TakeStarts(advance.starts(), seam);
    seam.GetFlows().Forget(advance.oldest_id());
}

} // namespace cosim
