#include "recall.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace cosim {

Recall::Recall(std::shared_ptr<const Phase> phase, double tolerance, Likeness likeness)
    : phase_(std::move(phase)),
      likeness_(std::move(likeness)),
      tolerance_(tolerance),
      slack_(static_cast<int64_t>(tolerance * static_cast<double>(phase_->end))),
      taken_(phase_->inputs.size())
{
}

size_t
Recall::Find(const RdmaFabric& fabric, const PhaseInput& input) const
{
    const auto& inputs = phase_->inputs;
    const auto same = [&](const PhaseInput& known) {
        return known.SameMessage(input) && likeness_.Fits(fabric, known.connection, input.connection);
    };
    if (tolerance_ == 0)
    {
        const bool next = first_ < inputs.size() && inputs[first_].at == input.at && inputs[first_].round == input.round &&
                          same(inputs[first_]);
        return next ? first_ : inputs.size();
    }
    size_t at = first_;
    while (at < inputs.size() && (taken_[at] || !same(inputs[at])) && inputs[at].at <= input.at + slack_)
    {
        ++at;
    }
    return at < inputs.size() && std::abs(inputs[at].at - input.at) <= slack_ ? at : inputs.size();
}

bool
Recall::Follow(const RdmaFabric& fabric, const PhaseInput& input, const ApartNow& apart)
{
    const size_t at = Find(fabric, input);
    if (at == phase_->inputs.size() || !likeness_.Take(fabric, phase_->inputs[at].connection, input.connection))
    {
        return false;
    }
    const PhaseInput& known = phase_->inputs[at];
    double most = 0;
    for (uint32_t k = known.first_state; k < known.end_state && most <= tolerance_; ++k)
    {
        most = std::max(most, apart(phase_->states[k], likeness_));
    }
    if (most > tolerance_)
    {
        return false;
    }
    const int64_t later = input.at - known.at;
    error_ = std::max({error_, most, std::abs(static_cast<double>(later)) / static_cast<double>(phase_->end)});
    taken_[at] = true;
    while (first_ < taken_.size() && taken_[first_])
    {
        ++first_;
    }
    arrivals_.push({known.end_at + later, known.end_order, count_++});
    return true;
}

} // namespace cosim
