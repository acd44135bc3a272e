#include "fiber.h"

#include <cstdint>

namespace cosim {
namespace {

constexpr size_t kStackBytes = size_t{1} << 20;

} // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)),
      stack_(kStackBytes)
{
    getcontext(&there_);
    there_.uc_stack.ss_sp = stack_.data();
    there_.uc_stack.ss_size = stack_.size();
    there_.uc_link = &here_;
    // makecontext hands over ints only.
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&there_,
                reinterpret_cast<void (*)()>(&Fiber::Enter),
                2,
                static_cast<unsigned>(self),
                static_cast<unsigned>(uint64_t{self} >> 32));
}

void
Fiber::Enter(unsigned low, unsigned high)
{
    const auto self = static_cast<uintptr_t>(uint64_t{low} | uint64_t{high} << 32);
    reinterpret_cast<Fiber*>(self)->body_();
}

void
Fiber::Resume()
{
    swapcontext(&here_, &there_);
}

void
Fiber::Pause()
{
    swapcontext(&there_, &here_);
}

} // namespace cosim
