// Time that need not be simulated: what is known is recalled, what has settled is leapt over.
#pragma once

#include "forward_counts.h"
#include "idle_states.h"
#include "network.h"
#include "parts.h"
#include "phase.h"
#include "rdma_fabric.h"
#include "settling.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace cosim {

/// A session with RDMA in which the session's time goes on without ns-3's.
///
/// Each Part of the network goes its own way. A *phase* of it is from when it is quiet (no packet anywhere, no timer running,
/// nobody with data) to the next such time. Its messages and their completions are kept, with the state of each queue pair and port
/// that it touched. Where a phase begins as a known one did, of these queue pairs or of others that are like them, its completions
/// are given as remembered, message by message, as long as what is sent is what was sent then, at the same times since the start.
/// Where it begins as one does in another part in the same instant, it mirrors that one. With the first difference the phase is
/// simulated from its start with what was sent so far, by itself. Nothing is predicted: what has been told so far holds for every
/// continuation.
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
    /// What a part is sent in an instant, and how much of it is seen to.
    struct Starts
    {
        Part* part;
        std::vector<Given> given;
        size_t next = 0;
    };

    PhaseInput InputOf(const Part& part, const Given& given) const;
    int64_t Ns3Time(int64_t time) const;
    int64_t SessionTime(int64_t time) const;
    bool AnySimulated();
    // What starts in an instant.
    void StartGiven();
    std::vector<Starts> Sorted();
    Starts* Find(std::vector<Starts>& all, const Part* part);
    void FinishIfOver(Part& part);
    void Recognise(Starts& starts);
    void KeepMirroring(std::vector<Starts>& all);
    void SendAll(Starts& starts);
    void Send(Part& part, const Given& given);
    void Join(Part& one, Part& other);
    // Simulated.
    int64_t Simulate(int64_t limit);
    void LookForLeap(int64_t limit);
    void Open(Part& part);
    void CloseQuiet();
    void Close(Part& part);
    // Recalled or mirrored.
    bool Follow(Part& part, const Given& given);
    bool Mirror(Part& part, Part& leader, const std::vector<Given>& given, int64_t time);
    bool Mirrors(Part& part, const Part& leader, size_t since);
    void StopFollowing(Part& part, int64_t until, Starts* starts);
    int64_t NextKnown();
    void Play(int64_t time);
    void Tell(Part& part, size_t place, int64_t time);
    void GiveUpAwaiting(int64_t time);
    void GiveUpDrawn(int64_t time);
    void Finish(Part& part, const Phase& phase, const Likeness& likeness, double error);
    static void Detach(Part& part);
    void SimulateAfterAll(Part& part, int64_t until);
    void RunTo(int64_t time);
    // Counted.
    void CountForNow();
    void Uncount();

    RdmaFabric& rdma_;
    const double tolerance_;
    PhaseBook book_;
    uint32_t num_classes_ = 1;
    IdleStates states_;
    Settling settling_;
    Parts parts_;
    /// By how much the session's time is later than ns-3's.
    int64_t offset_;
    int64_t now_ = 0;
    uint32_t round_ = 0;
    /// Sent in this instant, and not seen to yet.
    std::vector<Given> starting_;
    /// As far as may be run, and the time of what is told.
    int64_t gate_ = 0;
    int64_t telling_ = 0;
    /// The part that is simulated after all, and what of it was not told, with when it came.
    const Part* catching_up_ = nullptr;
    std::vector<std::pair<uint64_t, int64_t>> late_;

    ForwardCounts counts_;
};

} // namespace cosim
