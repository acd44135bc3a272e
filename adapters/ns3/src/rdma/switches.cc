#include "switches.h"

#include "error.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cosim {

Switches::Switches(const RdmaSettings& settings, const PathFinder& finder, SharedBuffer::Pause pause)
    : settings_(settings),
      finder_(finder),
      places_(Places())
{
    const TopologySettings& t = settings_.topology;
    std::vector<uint64_t> room(t.num_nodes);
    std::vector<std::vector<LinkIn>> in(t.num_nodes);
    std::vector<std::vector<uint32_t>> out(t.num_nodes);
    for (uint32_t link = 0; link < t.link_src.size(); ++link)
    {
        room[t.link_src[link]] += settings_.BufferOf(t.link_rate_bps[link]);
        out[t.link_src[link]].push_back(link);
        in[t.link_dst[link]].push_back({link, settings_.Lossless() ? Headroom(link) : 0});
    }
    for (uint32_t node = 0; node < t.num_nodes; ++node)
    {
        buffers_.push_back(
            std::make_unique<SharedBuffer>(Facts(room[node], out[node].size()), in[node], out[node], places_, pause));
        Check(node);
    }
}

LinkPlaces
Switches::Places() const
{
    const TopologySettings& t = settings_.topology;
    LinkPlaces places;
    std::vector<uint32_t> in(t.num_nodes);
    std::vector<uint32_t> out(t.num_nodes);
    for (uint32_t link = 0; link < t.link_src.size(); ++link)
    {
        places.in.push_back(in[t.link_dst[link]]++);
        places.out.push_back(out[t.link_src[link]]++);
    }
    return places;
}

uint64_t
Switches::Headroom(uint32_t link) const
{
    const TopologySettings& t = settings_.topology;
    const uint32_t back = finder_.Opposite(link);
    if (back == kNoLink)
    {
        Invalid("options.pfc",
                "PFC stops a link over the link the other way, which " + t.LinkName(link) + " has not; say pfc off");
    }
    if (settings_.headroom_bytes > 0)
    {
        return settings_.headroom_bytes;
    }
    // What comes after the threshold: while the pause frame waits for a packet and others of its kind, and is on its way;
    // what is on the way then; and the packets with which this began and that the other side is in the middle of.
    const double wire = settings_.WireBytes();
    const double waits = (wire + kMaxClasses * kPauseBytes) * 8e12 / t.link_rate_bps[back];
    const auto both = static_cast<double>(t.link_latency_ps[link] + t.link_latency_ps[back]);
    return static_cast<uint64_t>(std::ceil(t.link_rate_bps[link] * (both + waits) / 8e12 + 2 * wire));
}

BufferFacts
Switches::Facts(uint64_t room, size_t ports) const
{
    BufferFacts facts;
    facts.room = room;
    facts.shared = settings_.shared_buffer;
    facts.lossless = settings_.Lossless();
    facts.alpha = settings_.alpha;
    facts.wire_bytes = settings_.WireBytes();
    facts.pause_bytes = settings_.pfc_threshold_bytes;
    if (facts.lossless && !facts.shared && facts.pause_bytes == 0 && ports > 0)
    {
        facts.pause_bytes = std::max<uint64_t>(room / ports / 2, 1);
    }
    return facts;
}

void
Switches::Check(uint32_t node) const
{
    const TopologySettings& t = settings_.topology;
    const SharedBuffer& buffer = *buffers_[node];
    const BufferFacts& facts = buffer.Facts();
    // Endpoints that don't forward hold no packets of others.
    if (!facts.lossless || (node < t.num_endpoints && !settings_.endpoints_forward))
    {
        return;
    }
    const uint64_t headroom = buffer.Headroom() * num_classes_;
    if (headroom >= facts.room)
    {
        Invalid("queue.capacity_bytes",
                "the buffer of " + t.NodeName(node) + ", " + std::to_string(facts.room) +
                    " bytes in all, is smaller than the headroom that PFC needs there, " + std::to_string(headroom) +
                    " bytes for its links and classes: say a larger buffer");
    }
    const uint64_t thresholds = facts.pause_bytes * buffer.NumIn() * num_classes_;
    if (thresholds + headroom > facts.room)
    {
        Invalid("options.pfc_threshold_bytes",
                "at " + t.NodeName(node) + " thresholds of " + std::to_string(facts.pause_bytes) + " bytes for each of " +
                    std::to_string(buffer.NumIn()) + " links, and headroom of " + std::to_string(headroom) +
                    " in all, do not fit into its buffer of " + std::to_string(facts.room) +
                    ": links would be stopped too late, and PFC lose packets");
    }
}

void
Switches::UseClass(uint32_t priority)
{
    if (priority >= kMaxClasses)
    {
        throw SessionError("INVALID_FLOWS",
                           "priority " + std::to_string(priority) + " is not one of the " +
                               std::to_string(kMaxClasses) + " classes 0 to 7",
                           {{"field", "flows.priority"}});
    }
    if (priority < num_classes_)
    {
        return;
    }
    num_classes_ = priority + 1;
    for (uint32_t node = 0; node < buffers_.size(); ++node)
    {
        buffers_[node]->UseClasses(num_classes_);
        Check(node);
    }
}

} // namespace cosim
