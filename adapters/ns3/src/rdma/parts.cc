#include "parts.h"

namespace cosim {

Part&
Parts::Of(uint32_t pair)
{
    if (const auto known = node_of_pair_.find(pair); known != node_of_pair_.end())
    {
        return *of_node_.at(known->second);
    }
    Part* part = nullptr;
    std::vector<uint32_t> fresh;
    for (const uint32_t link : fabric_.LinksOf(pair))
    {
        for (const uint32_t node : {fabric_.PortOf(link).Facts().src, fabric_.PortOf(link).Facts().dst})
        {
            const auto found = of_node_.find(node);
            if (found == of_node_.end())
            {
                fresh.push_back(node);
            }
            else if (part == nullptr)
            {
                part = found->second;
            }
            else if (found->second != part)
            {
                Part* other = found->second;
                joined_(*part, *other);
                for (const uint32_t moved : nodes_[other])
                {
                    of_node_[moved] = part;
                    nodes_[part].push_back(moved);
                }
                nodes_.erase(other);
            }
        }
    }
    part = part == nullptr ? &parts_.emplace_back(fabric_, states_) : part;
    for (const uint32_t node : fresh)
    {
        if (of_node_.emplace(node, part).second)
        {
            nodes_[part].push_back(node);
        }
    }
    node_of_pair_[pair] = fabric_.PortOf(fabric_.PathOf(pair).front()).Facts().src;
    return *part;
}

} // namespace cosim
