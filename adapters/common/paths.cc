#include "paths.h"

#include "error.h"

namespace cosim {
namespace {

std::string
Name(const GivenPaths::Triple& triple)
{
    const auto [src, dst, channel] = triple;
    return "(" + std::to_string(src) + ", " + std::to_string(dst) + ", " + std::to_string(channel) + ")";
}

} // namespace

void
GivenPaths::Give(const Triple& triple, std::vector<uint32_t> links, uint32_t dead_set)
{
    if (dead_set > num_sets_)
    {
        throw SessionError("INVALID_FLOWS",
                           "a path round set " + std::to_string(dead_set) + " of " + std::to_string(num_sets_) +
                               " sets of dead links",
                           {{"field", "paths.dead_set"}});
    }
    const auto [src, dst, channel] = triple;
    const TopologySettings& t = topology_;
    uint32_t at = src;
    bool leads = src < t.num_endpoints && dst < t.num_endpoints;
    for (const uint32_t link : links)
    {
        leads = leads && link < t.link_src.size() && t.link_src[link] == at;
        at = leads ? t.link_dst[link] : at;
    }
    if (!leads || at != dst)
    {
        throw SessionError("INVALID_FLOWS",
                           "the path given for " + Name(triple) + " does not lead there",
                           {{"field", "paths"}});
    }
    const auto [known, fresh] = given_.try_emplace({triple, dead_set}, links);
    if (!fresh && known->second != links)
    {
        throw SessionError("INVALID_FLOWS", "the path of a triple never changes", {{"field", "paths"}});
    }
}

const std::vector<uint32_t>&
GivenPaths::Find(const Triple& triple) const
{
    const auto given = given_.find({triple, 0});
    if (given == given_.end())
    {
        throw SessionError("NO_PATH",
                           "no path was given for " + Name(triple),
                           {{"src", std::to_string(std::get<0>(triple))}, {"dst", std::to_string(std::get<1>(triple))}});
    }
    return given->second;
}

const std::vector<uint32_t>&
GivenPaths::Around(const Triple& triple, uint32_t dead_set) const
{
    const auto given = given_.find({triple, dead_set});
    return given == given_.end() ? Find(triple) : given->second;
}

} // namespace cosim
