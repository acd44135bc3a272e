#include "forward_counts.h"

namespace cosim {

void
ForwardChange::Translate(const Likeness& likeness)
{
    for (PhaseLink& link : links)
    {
        link.link = likeness.Here(link.link | kPortBit) & ~kPortBit;
    }
    for (auto& [pair, packets] : again)
    {
        pair = likeness.Here(pair);
    }
}

ForwardChange
ChangeOf(const Phase& phase, int64_t start, double error)
{
    ForwardChange change{start, error, phase.links, {}};
    for (const PhaseState& state : phase.states)
    {
        if ((state.entity & kPortBit) == 0)
        {
            change.again.emplace_back(state.entity, state.retransmitted);
        }
    }
    return change;
}

void
ForwardCounts::Leapt(uint32_t pair, uint64_t bytes, double error)
{
    for (const uint32_t link : rdma_.PathOf(pair))
    {
        leapt_[link] += static_cast<double>(bytes);
        error_[link] += static_cast<double>(bytes) * error;
        open_error_[link] += static_cast<double>(bytes) * error;
    }
}

void
ForwardCounts::Count(const ForwardChange& change, int sign)
{
    for (const PhaseLink& link : change.links)
    {
        const auto bytes = static_cast<double>(link.change.bytes);
        Apply(link.change, rdma_.MeterOf(link.link), sign);
        rdma_.PortOf(link.link).AddPaused(sign * link.paused_ps);
        recalled_[link.link] += sign * bytes;
        error_[link.link] += sign * (change.error * bytes + link.error);
        for (const Stretch& stretch : link.busy)
        {
            if (sign > 0)
            {
                rdma_.BusyOf().AddAt(link.link, change.start + stretch.start, stretch.busy);
            }
        }
    }
    for (const auto& [pair, packets] : change.again)
    {
        rdma_.SenderOf(pair).AddRetransmitted(static_cast<uint64_t>(sign) * packets);
    }
}

void
ForwardCounts::AddForNow(std::vector<ForwardChange> changes)
{
    busy_before_ = rdma_.Busy();
    for_now_ = std::move(changes);
    for (const ForwardChange& change : for_now_)
    {
        Count(change, 1);
    }
}

void
ForwardCounts::Forget()
{
    for (const ForwardChange& change : for_now_)
    {
        Count(change, -1);
    }
    for_now_.clear();
    rdma_.BusyOf().SetMeter(*busy_before_);
    busy_before_.reset();
}

void
ForwardCounts::Tell(std::vector<LinkMeasure>& measures) const
{
    measures.push_back({"recalled_bytes", recalled_});
    measures.push_back({"leapt_bytes", leapt_});
    measures.push_back({"fast_forward_error_bytes", error_});
}

} // namespace cosim
