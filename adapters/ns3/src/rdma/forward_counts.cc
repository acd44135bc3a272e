#include "forward_counts.h"

namespace cosim {

void
ForwardCounts::Leapt(uint32_t pair, uint64_t bytes, double error)
{
    for (const uint32_t link : rdma_.PathOf(pair))
    {
        leapt_[link] += static_cast<double>(bytes);
        error_[link] += static_cast<double>(bytes) * error;
    }
}

void
ForwardCounts::Count(const Recall& recall, int64_t start, int sign)
{
    for (const PhaseLink& link : recall.Of().links)
    {
        Apply(link.change, rdma_.MeterOf(link.link), sign);
        rdma_.PortOf(link.link).AddPaused(sign * link.paused_ps);
        recalled_[link.link] += sign * static_cast<double>(link.change.bytes);
        error_[link.link] += sign * recall.Error() * static_cast<double>(link.change.bytes);
        for (const Stretch& stretch : link.busy)
        {
            if (sign > 0)
            {
                rdma_.BusyOf().AddAt(link.link, start + stretch.start, stretch.busy);
            }
        }
    }
    for (const PhaseState& state : recall.Of().states)
    {
        if ((state.entity & kPortBit) == 0)
        {
            rdma_.SenderOf(state.entity).AddRetransmitted(static_cast<uint64_t>(sign) * state.retransmitted);
        }
    }
}

void
ForwardCounts::AddForNow(const Recall& recall, int64_t start)
{
    busy_before_ = rdma_.Busy();
    Count(recall, start, 1);
}

void
ForwardCounts::Forget(const Recall& recall, int64_t start)
{
    Count(recall, start, -1);
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
