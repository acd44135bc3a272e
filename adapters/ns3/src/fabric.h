// What carries messages between endpoints, with TCP or RDMA.
#pragma once

#include "busy.h"
#include "coflow.h"
#include "error.h"
#include "seam.h"
#include "session_settings.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cosim {

/// Built for one session; needs a Clock that lives longer.
class Fabric
{
  public:
    /// Told within the event in which a message's last byte came.
    using Arrived = std::function<void(uint64_t id)>;

    Fabric() = default;
    virtual ~Fabric() = default;
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    /// The links of a triple, round a set of dead links or (0) its own, for RoutingKind::kGiven. Throws SessionError (INVALID_FLOWS) unless they lead there.
    virtual void GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set) = 0;
    /// A link changes, or what routing knows to be dead, at a time that is not before now. Throws SessionError (INVALID_FLOWS).
    virtual void ChangeLink(const LinkEvent& /*event*/)
    {
        throw SessionError("STATE", "links don't change while it runs");
    }
    virtual void ChangeRoutes(int64_t /*time*/, std::vector<uint32_t> /*dead*/)
    {
        throw SessionError("STATE", "routes don't change while it runs");
    }
    /// The number of a job's connection; made when first asked for. Throws SessionError (NO_PATH).
    virtual uint32_t Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel) = 0;
    /// Sends a message on its connection, now.
    virtual void Send(uint64_t id, const FlowSpec& spec, Coflow* coflow) = 0;
    /// What it really runs with.
    virtual std::map<std::string, std::string> Told() const = 0;
    virtual std::vector<int64_t> LinkBytes() = 0;
    virtual std::vector<LinkMeasure> Measures() = 0;
    virtual const BusyMeter& Busy() const = 0;
    /// See Seam; `now` is the time granted.
    virtual std::vector<LinkSample> Queues(const std::vector<uint32_t>& /*links*/, int64_t /*now*/) const
    {
        return {};
    }
    virtual std::vector<RateSample> Rates() const
    {
        return {};
    }
    /// Why the run can't go on; empty where it can.
    const std::string& Fault() const
    {
        return fault_;
    }
    /// Called when it can't: to be set before anything runs.
    std::function<void()> on_fault;

  protected:
    /// Ends the run.
    void Fail(const std::string& why)
    {
        fault_ = why;
        on_fault();
    }

  private:
    std::string fault_;
};

} // namespace cosim
