// PFC deadlocks: links that wait for each other for ever.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cosim {

class Port;
class SharedBuffer;

/// While some link is stopped, looks once a millisecond for links that have been stopped all that time and of which every
/// byte beyond, in the switch that stopped them, waits for another such link: none of them can ever send again.
class PauseWatch
{
  public:
    /// `ports` by link, `buffers` by node; `fault` is told what to say.
    PauseWatch(const std::vector<std::unique_ptr<Port>>& ports,
               const std::vector<std::unique_ptr<SharedBuffer>>& buffers,
               std::function<void(const std::vector<uint32_t>& links)> fault);

    /// Some link was stopped.
    void Begin();

  private:
    struct Stopped
    {
        uint32_t link;
        uint32_t priority;
    };

    void Look();
    /// The links out that bytes which came in over a stopped link wait for.
    std::vector<uint32_t> WaitsFor(const Stopped& one) const;
    std::vector<Stopped> Stuck(int64_t now) const;
    std::vector<uint32_t> Circle(const std::vector<Stopped>& stuck) const;

    const std::vector<std::unique_ptr<Port>>& ports_;
    const std::vector<std::unique_ptr<SharedBuffer>>& buffers_;
    std::function<void(const std::vector<uint32_t>& links)> fault_;
    bool watching_ = false;
};

} // namespace cosim
