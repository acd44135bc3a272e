// Time that need not be simulated: what is known is recalled, what has settled is leapt over.
#pragma once

#include "forward_counts.h"
#include "idle_states.h"
#include "network.h"
#include "phase.h"
#include "phase_recorder.h"
#include "rdma_fabric.h"
#include "recall.h"
#include "settling.h"

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace cosim {

/// A session with RDMA in which the session's time goes on without ns-3's.
///
/// A *phase* is from a quiet network (no packet anywhere, no timer running, nobody with data) to the next quiet one. Its
/// messages and their completions are kept, with the state of each queue pair and port that it touched. Where a phase begins
/// as a known one did, its completions are given as remembered, message by message, as long as what is sent is what was sent
/// then, at the same times since the start; with the first difference the phase is simulated from its start with what was
/// sent so far. Nothing is predicted: what has been told so far holds for every continuation.
///
/// With a tolerance of 0 states must be the same to the bit, and phases in which a number was drawn are not recalled: the
/// completions are those of a run without. With a tolerance, windows and rates may differ by it, and settled rates (Settling) are
/// extended to the next start or completion.
class FastForward : public Network
{
  public:
    FastForward(const RdmaSettings& settings, double tolerance);

    std::vector<int64_t> LinkBytes() override;
    /// Adds, of each link, the bytes recalled, leapt over, and of both together the error to be expected.
    std::vector<LinkMeasure> Measures() override;
    /// Refused: what is recalled or leapt over has no queues.
    std::vector<LinkSample> Queues(const std::vector<uint32_t>& links) override;
    std::vector<RateSample> Rates() override;

  protected:
    int64_t RunThrough(int64_t limit) override;
    void StartAt(int64_t time) override;
    void Begin(uint64_t id, const FlowSpec& spec) override;
    void Arrived(uint64_t id) override;
    void Lower(int64_t limit) override;
    void StopSoon() override;

  private:
    struct Given
    {
        uint64_t id;
        FlowSpec spec;
        int64_t at;
        uint32_t round;
    };

    PhaseInput InputOf(const FlowSpec& spec, int64_t at, uint32_t round) const;
    // Simulated.
    int64_t Simulate(int64_t limit);
    void LookForLeap();
    void Open(int64_t start);
    void Close();
    void Send(uint64_t id, const FlowSpec& spec);
    // Recalled.
    bool Recognise(uint64_t id, const FlowSpec& spec);
    bool Follow(uint64_t id, const FlowSpec& spec);
    int64_t Play(int64_t limit);
    void Finish();
    void SimulateAfterAll(int64_t until);
    void RunTo(int64_t time);
    void CountForNow();
    void Uncount();

    RdmaFabric& rdma_;
    const double tolerance_;
    PhaseBook book_;
    uint32_t num_classes_ = 1;
    IdleStates states_;
    Settling settling_;
    /// By how much the session's time is later than ns-3's.
    int64_t offset_ = 0;
    int64_t now_ = 0;
    uint32_t round_ = 0;

    /// The phase that is simulated.
    PhaseRecorder open_;
    int64_t start_ = 0;

    /// What the phase that is recalled may be, what was sent in it and what of that was told to have arrived.
    std::vector<Recall> known_;
    std::vector<Given> given_;
    std::unordered_set<uint64_t> told_;
    int64_t told_at_ = 0;
    int64_t gate_ = 0;
    /// Told before ns-3 has come to it.
    std::unordered_set<uint64_t> ahead_;
    std::vector<uint64_t> late_;
    bool catches_up_ = false;

    ForwardCounts counts_;
};

} // namespace cosim
