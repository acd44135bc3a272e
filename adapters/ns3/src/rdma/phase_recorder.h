// A phase while it is simulated, as what it will be recalled as.
#pragma once

#include "idle_states.h"
#include "meter.h"
#include "phase.h"
#include "rdma_fabric.h"

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cosim {

/// A queue pair and the ports that anything goes through because of it.
std::vector<uint32_t> EntitiesOf(const RdmaFabric& fabric, uint32_t pair);

/// Notes the messages of a phase with their completions, and the states of the queue pairs and ports that they touch, before
/// and after. Times are the session's, `offset` later than ns-3's.
class PhaseRecorder
{
  public:
    PhaseRecorder(RdmaFabric& fabric, IdleStates& states)
        : rdma_(fabric),
          states_(states)
    {
    }

    bool Recording() const
    {
        return phase_ != nullptr;
    }
    /// The queue pairs of its messages.
    const std::vector<uint32_t>& Pairs() const
    {
        return pairs_;
    }
    /// Nothing is going on in it.
    bool Quiet() const
    {
        return rdma_.Quiet(pairs_, links_);
    }
    /// Whether a number was drawn in it.
    bool Drew() const;
    const std::vector<PhaseInput>& Inputs() const
    {
        return phase_->inputs;
    }
    const std::vector<PhaseState>& States() const
    {
        return phase_->states;
    }
    /// All failures were over when it began, and it joined no other.
    bool Whole() const
    {
        return settled_;
    }
    /// Takes what is going on in another one, too; the two together are not kept.
    void Join(PhaseRecorder& other);

    void Begin(int64_t start);
    /// A message is sent: what it touches is put into the state that it has at that time.
    void Sent(uint64_t id, PhaseInput input, int64_t offset);
    /// One arrived; which of them.
    uint32_t Arrived(uint64_t id, int64_t time);
    /// What its links have done so far.
    std::vector<PhaseLink> LinksSoFar() const;
    /// By queue pair, what it sent again so far.
    std::vector<std::pair<uint32_t, uint64_t>> SentAgain() const;

    struct Recorded
    {
        std::shared_ptr<Phase> phase;
        /// Whether a number was drawn, and whether it can be recalled: all failures were over when it began, and it joined no other.
        bool drew;
        bool settled;
    };
    /// All is quiet again.
    Recorded End(int64_t offset);

  private:
    struct LinkBefore
    {
        LinkMeter meter;
        uint64_t sent;
        int64_t paused_ps;
    };

    void Touch(uint32_t entity, int64_t offset);
    void Forget();
    SentBytes SentBefore();

    RdmaFabric& rdma_;
    IdleStates& states_;
    std::shared_ptr<Phase> phase_;
    int64_t start_ = 0;
    /// Where each message that is under way stands in it.
    std::unordered_map<uint64_t, uint32_t> places_;
    uint32_t arrived_ = 0;
    std::vector<uint32_t> pairs_;
    std::vector<uint32_t> links_;
    std::unordered_set<uint32_t> touched_;
    std::map<uint32_t, LinkBefore> links_before_;
    std::unordered_map<uint32_t, uint64_t> uses_before_;
    uint64_t drawn_before_ = 0;
    bool settled_ = false;
};

} // namespace cosim
