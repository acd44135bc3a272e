// What was not simulated, as links count it.
#pragma once

#include "rdma_fabric.h"
#include "recall.h"
#include "seam.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace cosim {

/// Adds to what links measured what was recalled and leapt over, and keeps how much of it that is.
class ForwardCounts
{
  public:
    ForwardCounts(RdmaFabric& fabric, size_t num_links)
        : rdma_(fabric),
          recalled_(num_links),
          leapt_(num_links),
          error_(num_links)
    {
    }

    /// A phase from `start` on was recalled.
    void Add(const Recall& recall, int64_t start)
    {
        Count(recall, start, 1);
    }
    /// A queue pair carried so much in a time that was leapt over, wrong by this share.
    void Leapt(uint32_t pair, uint64_t bytes, double error);

    /// Adds the rest of a phase that is being recalled, for who asks now; Forget takes it away again.
    void AddForNow(const Recall& recall, int64_t start);
    bool ForNow() const
    {
        return busy_before_.has_value();
    }
    void Forget(const Recall& recall, int64_t start);

    /// Of each link the bytes recalled, leapt over, and of both together the error to be expected.
    void Tell(std::vector<LinkMeasure>& measures) const;

  private:
    void Count(const Recall& recall, int64_t start, int sign);

    RdmaFabric& rdma_;
    /// Busy times without what was added for now.
    std::optional<BusyMeter> busy_before_;
    std::vector<double> recalled_;
    std::vector<double> leapt_;
    std::vector<double> error_;
};

} // namespace cosim
