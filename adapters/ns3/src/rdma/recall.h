// A known phase that is followed again, message by message.
#pragma once

#include "likeness.h"
#include "phase.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

namespace cosim {

/// With a tolerance of 0 each message has to be the next one of the phase, at its time. Else it may come earlier or later by that
/// share of the phase's length, and takes as long as it took then.
class Recall
{
  public:
    /// `likeness`: Same, or empty where it may be the phase of other queue pairs.
    Recall(std::shared_ptr<const Phase> phase, double tolerance, Likeness likeness);

    /// How far the state of what a message touches may be from what it was: 0 the same, more than the tolerance: another.
    using ApartNow = std::function<double(const PhaseState& known, const Likeness& likeness)>;

    /// The next message that was sent; false: the phase had none such.
    bool Follow(const RdmaFabric& fabric, const PhaseInput& input, const ApartNow& apart);

    /// The next to arrive, in time since the start: when, and which of those that were sent. `kNever`: none.
    std::pair<int64_t, size_t> Next() const
    {
        return arrivals_.empty() ? std::make_pair(kNever, size_t{0})
                                 : std::make_pair(std::get<0>(arrivals_.top()), std::get<2>(arrivals_.top()));
    }
    void Drop()
    {
        arrivals_.pop();
    }

    /// Until when the next message has to be sent; kNever: all were.
    int64_t Awaits() const
    {
        return first_ < phase_->inputs.size() ? phase_->inputs[first_].at + slack_ : kNever;
    }
    const Phase& Of() const
    {
        return *phase_;
    }
    const Likeness& By() const
    {
        return likeness_;
    }
    /// How far states and times have been from what they were, at most, as a share.
    double Error() const
    {
        return error_;
    }

  private:
    size_t Find(const RdmaFabric& fabric, const PhaseInput& input) const;

    std::shared_ptr<const Phase> phase_;
    Likeness likeness_;
    double tolerance_;
    int64_t slack_;
    double error_ = 0;
    /// Messages of the phase that were sent again, and the first that was not.
    std::vector<bool> taken_;
    size_t first_ = 0;
    size_t count_ = 0;
    /// When, in which order of the phase, which.
    using Arrival = std::tuple<int64_t, uint32_t, size_t>;
    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

} // namespace cosim
