// Every node's packet memory, with the headroom that PFC needs there.
#pragma once

#include "path_finder.h"
#include "rdma_settings.h"
#include "shared_buffer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cosim {

/// The memory of each node, by the rates of its links, and whether what PFC keeps fits into it.
class Switches
{
  public:
    Switches(const RdmaSettings& settings, const PathFinder& finder, SharedBuffer::Pause pause);

    SharedBuffer& Of(uint32_t node)
    {
        return *buffers_[node];
    }
    const SharedBuffer& Of(uint32_t node) const
    {
        return *buffers_[node];
    }
    const std::vector<std::unique_ptr<SharedBuffer>>& All() const
    {
        return buffers_;
    }
    /// Keeps headroom for a class of priority and those before it. Throws SessionError where there is no such class, or no room.
    void UseClass(uint32_t priority);
    /// Classes in use.
    uint32_t NumClasses() const
    {
        return num_classes_;
    }

  private:
    LinkPlaces Places() const;
    uint64_t Headroom(uint32_t link) const;
    BufferFacts Facts(uint64_t room, size_t ports) const;
    void Check(uint32_t node) const;

    const RdmaSettings& settings_;
    const PathFinder& finder_;
    const LinkPlaces places_;
    std::vector<std::unique_ptr<SharedBuffer>> buffers_;
    uint32_t num_classes_ = 1;
};

} // namespace cosim
