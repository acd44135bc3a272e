// What was not simulated, as links count it.
#pragma once

#include "likeness.h"
#include "phase.h"
#include "rdma_fabric.h"
#include "seam.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace cosim {

/// What a phase, or its beginning, did to links and queue pairs that were not simulated.
struct ForwardChange
{
    int64_t start = 0;
    /// By how much completions may be wrong, as a share.
    double error = 0;
    std::vector<PhaseLink> links;
    /// Queue pairs, and packets that they sent again.
    std::vector<std::pair<uint32_t, uint64_t>> again;

    /// With the names of here.
    void Translate(const Likeness& likeness);
};

/// What a whole phase did, with its own names.
ForwardChange ChangeOf(const Phase& phase, int64_t start, double error);

/// Adds to what links measured what was recalled and leapt over, and keeps how much of it that is.
class ForwardCounts
{
  public:
    ForwardCounts(RdmaFabric& fabric, size_t num_links)
        : rdma_(fabric),
          recalled_(num_links),
          leapt_(num_links),
          error_(num_links),
          open_error_(num_links)
    {
    }

    void Add(const ForwardChange& change)
    {
        Count(change, 1);
    }
    /// A queue pair carried so much in a time that was leapt over, wrong by this share.
    void Leapt(uint32_t pair, uint64_t bytes, double error);
    /// Bytes by which what was leapt over at a link since the last call may be wrong.
    double TakeError(uint32_t link)
    {
        return std::exchange(open_error_[link], 0);
    }

    /// Adds what is under way and not simulated, for who asks now; Forget takes it away again.
    void AddForNow(std::vector<ForwardChange> changes);
    bool ForNow() const
    {
        return busy_before_.has_value();
    }
    void Forget();

    /// Of each link the bytes recalled, leapt over, and of both together the error to be expected.
    void Tell(std::vector<LinkMeasure>& measures) const;

  private:
    void Count(const ForwardChange& change, int sign);

    RdmaFabric& rdma_;
    /// Busy times without what was added for now, and what that was.
    std::optional<BusyMeter> busy_before_;
    std::vector<ForwardChange> for_now_;
    std::vector<double> recalled_;
    std::vector<double> leapt_;
    std::vector<double> error_;
    /// Of `error_`, what phases that are simulated have so far.
    std::vector<double> open_error_;
};

} // namespace cosim
