#include "phase_recorder.h"

#include <utility>

namespace cosim {

std::vector<uint32_t>
EntitiesOf(const RdmaFabric& fabric, uint32_t pair)
{
    std::vector<uint32_t> entities = fabric.LinksOf(pair);
    for (uint32_t& link : entities)
    {
        link |= kPortBit;
    }
    entities.push_back(pair);
    return entities;
}

void
PhaseRecorder::Begin(int64_t start)
{
    phase_ = std::make_shared<Phase>();
    start_ = start;
    arrived_ = 0;
    drawn_before_ = 0;
    settled_ = rdma_.Settled();
}

void
PhaseRecorder::Sent(uint64_t id, PhaseInput input, int64_t offset)
{
    input.first_state = static_cast<uint32_t>(phase_->states.size());
    for (const uint32_t entity : EntitiesOf(rdma_, input.connection))
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
        links_.push_back(link);
        rdma_.BusyOf().Begin(link, start_);
        rdma_.MeterOf(link).recent_max = 0;
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
    const uint32_t which = place->second;
    places_.erase(place);
    return which;
}

bool
PhaseRecorder::Drew() const
{
    uint64_t drawn = 0;
    for (const uint32_t link : links_)
    {
        drawn += rdma_.PortOf(link).Drawn();
    }
    return drawn != drawn_before_;
}

void
PhaseRecorder::Join(PhaseRecorder& other)
{
    if (!Recording())
    {
        Begin(other.start_);
    }
    const auto at = static_cast<uint32_t>(phase_->inputs.size());
    for (const auto& [id, place] : other.places_)
    {
        places_.emplace(id, at + place);
    }
    phase_->inputs.insert(phase_->inputs.end(), other.phase_->inputs.begin(), other.phase_->inputs.end());
    phase_->states.insert(phase_->states.end(), other.phase_->states.begin(), other.phase_->states.end());
    pairs_.insert(pairs_.end(), other.pairs_.begin(), other.pairs_.end());
    links_.insert(links_.end(), other.links_.begin(), other.links_.end());
    touched_.insert(other.touched_.begin(), other.touched_.end());
    links_before_.insert(other.links_before_.begin(), other.links_before_.end());
    uses_before_.insert(other.uses_before_.begin(), other.uses_before_.end());
    drawn_before_ += other.drawn_before_;
    settled_ = false;
    other.Forget();
}

void
PhaseRecorder::Forget()
{
    phase_ = nullptr;
    places_.clear();
    pairs_.clear();
    links_.clear();
    touched_.clear();
    links_before_.clear();
    uses_before_.clear();
}

std::vector<PhaseLink>
PhaseRecorder::LinksSoFar() const
{
    std::vector<PhaseLink> links;
    for (const auto& [link, before] : links_before_)
    {
        const Port& port = rdma_.PortOf(link);
        links.push_back({link,
                         port.SentBytes() - before.sent,
                         ChangeOf(before.meter, rdma_.MeterOf(link)),
                         port.PausedPs(Sender::Now()) - before.paused_ps,
                         rdma_.BusyOf().Since(link)});
    }
    return links;
}

std::vector<std::pair<uint32_t, uint64_t>>
PhaseRecorder::SentAgain() const
{
    std::vector<std::pair<uint32_t, uint64_t>> again;
    for (const PhaseState& state : phase_->states)
    {
        if ((state.entity & kPortBit) == 0)
        {
            again.emplace_back(state.entity, rdma_.SenderOf(state.entity).RetransmittedPackets() - state.retransmitted);
        }
    }
    return again;
}

PhaseRecorder::Recorded
PhaseRecorder::End(int64_t offset)
{
    phase_->end = rdma_.QuietSince(pairs_, links_) + offset - start_;
    const SentBytes sent = [this](uint32_t link) { return rdma_.PortOf(link).SentBytes(); };
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
    phase_->links = LinksSoFar();
    const Recorded done{phase_, Drew(), settled_};
    Forget();
    return done;
}

} // namespace cosim
