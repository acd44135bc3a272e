#include "path_finder.h"

#include "error.h"
#include "mix.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>

namespace cosim {
namespace {

constexpr uint32_t kFar = ~uint32_t{0};

} // namespace

PathFinder::PathFinder(const SessionSettings& settings)
    : settings_(settings),
      out_(settings.topology.num_nodes),
      in_(settings.topology.num_nodes),
      opposite_(settings.topology.link_src.size(), kNoLink),
      dead_(settings.topology.link_src.size())
{
    const TopologySettings& t = settings.topology;
    // The first link from a to b makes a cable with the first from b to a, the second with the second ...
    std::map<std::pair<uint32_t, uint32_t>, std::deque<uint32_t>> single;
    for (uint32_t link = 0; link < t.link_src.size(); ++link)
    {
        const uint32_t a = t.link_src[link];
        const uint32_t b = t.link_dst[link];
        out_[a].push_back(link);
        in_[b].push_back(link);
        auto other = single.find({b, a});
        if (other != single.end() && !other->second.empty())
        {
            opposite_[link] = other->second.front();
            opposite_[other->second.front()] = link;
            other->second.pop_front();
        }
        else
        {
            single[{a, b}].push_back(link);
        }
    }
}

void
PathFinder::Avoid(const std::vector<uint32_t>& dead)
{
    dead_.assign(dead_.size(), false);
    for (const uint32_t link : dead)
    {
        dead_[link] = true;
    }
    distances_.clear();
}

bool
PathFinder::IsCut(const std::vector<uint32_t>& path) const
{
    return std::any_of(path.begin(), path.end(), [this](uint32_t link) { return dead_[link]; });
}

const std::vector<uint32_t>&
PathFinder::Distances(uint32_t dst, bool all)
{
    auto [found, fresh] = distances_.try_emplace(uint64_t{dst} << 1 | (all ? 1 : 0));
    std::vector<uint32_t>& distance = found->second;
    if (!fresh)
    {
        return distance;
    }
    const TopologySettings& t = settings_.topology;
    distance.assign(t.num_nodes, kFar);
    distance[dst] = 0;
    std::deque<uint32_t> queue{dst};
    while (!queue.empty())
    {
        const uint32_t node = queue.front();
        queue.pop_front();
        // An endpoint can be where a path begins, but paths lead through it only where endpoints forward.
        if (node != dst && node < t.num_endpoints && !settings_.endpoints_forward)
        {
            continue;
        }
        for (const uint32_t link : in_[node])
        {
            const uint32_t before = t.link_src[link];
            if (distance[before] == kFar && (all || !dead_[link]))
            {
                distance[before] = distance[node] + 1;
                queue.push_back(before);
            }
        }
    }
    return distance;
}

std::vector<uint32_t>
PathFinder::Choices(uint32_t node, uint32_t dst)
{
    std::vector<uint32_t> choices = Choices(node, dst, false);
    // No way is left: it waits at what is dead.
    return choices.empty() ? Choices(node, dst, true) : choices;
}

std::vector<uint32_t>
PathFinder::Choices(uint32_t node, uint32_t dst, bool all)
{
    const std::vector<uint32_t>& distance = Distances(dst, all);
    const TopologySettings& t = settings_.topology;
    std::vector<uint32_t> choices;
    if (distance[node] == kFar)
    {
        return choices;
    }
    for (const uint32_t link : out_[node])
    {
        const uint32_t next = t.link_dst[link];
        const bool forwards = next == dst || next >= t.num_endpoints || settings_.endpoints_forward;
        if (forwards && (all || !dead_[link]) && distance[next] != kFar && distance[next] + 1 == distance[node])
        {
            choices.push_back(link);
        }
    }
    return choices;
}

std::vector<uint32_t>
PathFinder::Find(uint32_t src, uint32_t dst, uint32_t channel)
{
    return Hash(src, dst, channel, true);
}

std::vector<uint32_t>
PathFinder::Around(uint32_t src, uint32_t dst, uint32_t channel)
{
    return Hash(src, dst, channel, false);
}

std::vector<uint32_t>
PathFinder::Hash(uint32_t src, uint32_t dst, uint32_t channel, bool all)
{
    uint64_t h = Mix(Mix(Mix(settings_.routing_seed + kGolden) + src) + dst);
    h = Mix(h + channel);
    std::vector<uint32_t> path;
    for (uint32_t node = src; node != dst;)
    {
        const std::vector<uint32_t> choices = all ? Choices(node, dst, true) : Choices(node, dst);
        if (choices.empty())
        {
            throw SessionError("NO_PATH",
                               "no path from node " + std::to_string(src) + " to node " + std::to_string(dst),
                               {{"src", std::to_string(src)}, {"dst", std::to_string(dst)}});
        }
        const uint64_t x = Mix(h + node * kGolden);
        path.push_back(choices[((x >> 32) * choices.size()) >> 32]);
        node = settings_.topology.link_dst[path.back()];
    }
    return path;
}

std::vector<uint32_t>
PathFinder::Back(const std::vector<uint32_t>& path, uint32_t src, uint32_t dst, uint32_t channel)
{
    std::vector<uint32_t> back;
    for (auto link = path.rbegin(); link != path.rend(); ++link)
    {
        if (opposite_[*link] == kNoLink)
        {
            return Find(dst, src, channel);
        }
        back.push_back(opposite_[*link]);
    }
    return back;
}

} // namespace cosim
