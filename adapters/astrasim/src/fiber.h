// A function that can be left in its middle, and entered again there.
#pragma once

#include <functional>
#include <vector>

#include <ucontext.h>

namespace cosim {

/// Needed because upstream runs all that starts at an instant from within its event list, and whoever uses it may only then
/// ask what starts there: the run is left in the middle of the instant, the client is asked, the run goes on.
class Fiber
{
  public:
    explicit Fiber(std::function<void()> body);
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Runs the body until it pauses or ends. Not after its end.
    void Resume();
    /// From within the body: back to whoever resumed it.
    void Pause();

  private:
    static void Enter(unsigned low, unsigned high);

    std::function<void()> body_;
    std::vector<char> stack_;
    ucontext_t here_{};
    ucontext_t there_{};
};

} // namespace cosim
