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
    bool Empty() const
    {
        return phase_->inputs.empty();
    }
    /// The queue pairs of its messages.
    const std::vector<uint32_t>& Pairs() const
    {
        return pairs_;
    }

    void Begin(int64_t start);
    /// A message is sent: what it touches is put into the state that it has at that time.
    void Sent(uint64_t id, PhaseInput input, int64_t offset);
    /// One arrived; its connection.
    uint32_t Arrived(uint64_t id, int64_t time);

    struct Recorded
    {
        std::unique_ptr<Phase> phase;
        /// Whether a number was drawn, and whether all failures were over when it began.
        bool drew;
        bool settled;
    };
    /// The network is quiet again.
    Recorded End(int64_t offset);

  private:
    struct LinkBefore
    {
        LinkMeter meter;
        uint64_t sent;
        int64_t paused_ps;
    };

    void Touch(uint32_t entity, int64_t offset);
    SentBytes SentBefore();

    RdmaFabric& rdma_;
    IdleStates& states_;
    std::unique_ptr<Phase> phase_;
    int64_t start_ = 0;
    /// Where each message that is under way stands in it.
    std::unordered_map<uint64_t, uint32_t> places_;
    uint32_t arrived_ = 0;
    std::vector<uint32_t> pairs_;
    std::unordered_set<uint32_t> touched_;
    std::map<uint32_t, LinkBefore> links_before_;
    std::unordered_map<uint32_t, uint64_t> uses_before_;
    uint64_t drawn_before_ = 0;
    bool settled_ = false;
};

} // namespace cosim
