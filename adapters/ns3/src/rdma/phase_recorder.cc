#include "phase_recorder.h"

#include <utility>

namespace cosim {

void
PhaseRecorder::Begin(int64_t start)
{
    phase_ = std::make_unique<Phase>();
    start_ = start;
    arrived_ = 0;
    drawn_before_ = 0;
    settled_ = rdma_.Settled();
}

void
PhaseRecorder::Sent(uint64_t id, PhaseInput input, int64_t offset)
{
    std::vector<uint32_t> entities = rdma_.LinksOf(input.connection);
    for (uint32_t& link : entities)
    {
        link |= kPortBit;
    }
    entities.push_back(input.connection);
    input.first_state = static_cast<uint32_t>(phase_->states.size());
    for (const uint32_t entity : entities)
    {
        Touch(entity, offset);
    }
    input.end_state = static_cast<uint32_t>(phase_->states.size());
    places_.emplace(id, static_cast<uint32_t>(phase_->inputs.size()));
    phase_->inputs.push_back(input);
}

void
PhaseRecorder::Touch(uint32_t entity, int64_t offset)
{
    if (!touched_.insert(entity).second)
    {
        return;
    }
    const uint32_t link = entity & ~kPortBit;
    if (link == entity)
    {
        pairs_.push_back(entity);
    }
    else
    {
        links_before_[link] = {rdma_.MeterOf(link), rdma_.PortOf(link).SentBytes(), rdma_.PortOf(link).PausedPs(0)};
        drawn_before_ += rdma_.PortOf(link).Drawn();
    }
    PhaseState state{entity, states_.From(entity, start_, SentBefore()), {}, false, 0};
    if (link == entity)
    {
        state.retransmitted = rdma_.SenderOf(entity).RetransmittedPackets();
        uses_before_[entity] = rdma_.SenderOf(entity).Uses();
    }
    phase_->states.push_back(std::move(state));
    states_.Bring(entity, offset);
}

SentBytes
PhaseRecorder::SentBefore()
{
    return [this](uint32_t link) {
        const auto before = links_before_.find(link);
        return before == links_before_.end() ? rdma_.PortOf(link).SentBytes() : before->second.sent;
    };
}

uint32_t
PhaseRecorder::Arrived(uint64_t id, int64_t time)
{
    const auto place = places_.find(id);
    PhaseInput& input = phase_->inputs[place->second];
    input.end_at = time - start_;
    input.end_order = arrived_++;
    places_.erase(place);
    return input.connection;
}

PhaseRecorder::Recorded
PhaseRecorder::End(int64_t offset)
{
    phase_->end = rdma_.QuietSince(pairs_) + offset - start_;
    const SentBytes sent = [this](uint32_t link) { return rdma_.PortOf(link).SentBytes(); };
    uint64_t drawn = 0;
    for (PhaseState& state : phase_->states)
    {
        states_.Simulated(state.entity, offset);
        state.after = states_.From(state.entity, start_ + phase_->end, sent);
        if ((state.entity & kPortBit) == 0)
        {
            const Sender& sender = rdma_.SenderOf(state.entity);
            state.used = sender.Uses() != uses_before_[state.entity];
            state.retransmitted = sender.RetransmittedPackets() - state.retransmitted;
        }
    }
    for (const auto& [link, before] : links_before_)
    {
        const Port& port = rdma_.PortOf(link);
        drawn += port.Drawn();
        phase_->links.push_back({link,
                                 port.SentBytes() - before.sent,
                                 ChangeOf(before.meter, rdma_.MeterOf(link)),
                                 port.PausedPs(0) - before.paused_ps,
                                 rdma_.BusyOf().Take(link)});
    }
    pairs_.clear();
    touched_.clear();
    links_before_.clear();
    uses_before_.clear();
    return {std::exchange(phase_, nullptr), drawn != drawn_before_, settled_};
}

} // namespace cosim
