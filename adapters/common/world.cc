#include "world.h"

#include "error.h"

namespace cosim {

std::string
TopologySettings::NodeName(uint32_t node) const
{
    return node < node_names.size() ? node_names[node] : "node " + std::to_string(node);
}

std::string
TopologySettings::LinkName(uint32_t link) const
{
    return NodeName(link_src[link]) + " -> " + NodeName(link_dst[link]);
}

void
Invalid(const std::string& field, const std::string& message)
{
    throw SessionError("INVALID_OPEN", message, {{"field", field}});
}

void
CheckTopology(const TopologySettings& t)
{
    const size_t links = t.link_src.size();
    if (t.link_dst.size() != links || t.link_rate_bps.size() != links || t.link_latency_ps.size() != links)
    {
        Invalid("topology", "the columns of the links differ in length");
    }
    if (t.num_endpoints > t.num_nodes)
    {
        Invalid("topology.num_endpoints", "there are more endpoints than nodes");
    }
    for (size_t l = 0; l < links; ++l)
    {
        if (t.link_src[l] >= t.num_nodes || t.link_dst[l] >= t.num_nodes || t.link_src[l] == t.link_dst[l])
        {
            Invalid("topology.link_src", "link " + std::to_string(l) + " does not join two nodes");
        }
        if (!(t.link_rate_bps[l] >= 1 && t.link_rate_bps[l] < 1e18) || t.link_latency_ps[l] < 0)
        {
            Invalid("topology.link_rate_bps",
                    "link " + std::to_string(l) + " needs a rate of 1 bit/s to 10^18 and a latency of 0 or more");
        }
    }
}

} // namespace cosim
