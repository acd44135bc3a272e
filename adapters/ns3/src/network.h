// One session with ns-3.
#pragma once

#include "clock.h"
#include "fabric.h"
#include "seam.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace cosim {

/// The seam of cosim over ns-3.
///
/// An instant is rounds of (all of ns-3's events at t, then all starts at t in the order of their cause and key) until
/// neither is left. Flows released here and flows given from outside are started by the same code at the same point of the
/// same instant, so that both ways give the same ns-3 events in the same order.
class Network : public Seam
{
  public:
    using MakeFabric = std::function<std::unique_ptr<Fabric>(Fabric::Arrived)>;

    /// `make` is called once ns-3 can be used, whose clock then shows `begin`.
    Network(uint32_t num_endpoints, const MakeFabric& make, int64_t begin = 0);
    ~Network() override;

    void GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set) override;
    uint32_t Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel) override;
    uint32_t CoflowOf(uint32_t job, uint64_t coflow, int64_t total_bytes) override;
    std::map<std::string, std::string> Told() const override;
    uint64_t Events() const override;
    int64_t RunNs() const override;
    std::vector<int64_t> LinkBytes() override;
    std::vector<LinkMeasure> Measures() override;
    const BusyMeter& Busy() const override;
    std::vector<LinkSample> Queues(const std::vector<uint32_t>& links) override;
    std::vector<RateSample> Rates() override;
    bool HasWork() override;

  protected:
    /// Runs the network through a time, or to where Lower made it stop; returns which.
    virtual int64_t RunThrough(int64_t limit);
    /// Flows start at a time that the network was run through.
    virtual void StartAt(int64_t time);
    virtual void Begin(uint64_t id, const FlowSpec& spec);
    /// A message arrived in the fabric.
    virtual void Arrived(uint64_t id);
    /// From within RunThrough: run no further than that; finish this instant, and stop.
    virtual void Lower(int64_t limit);
    virtual void StopSoon();
    /// Tells of a message that arrived at `time`, and stops where somebody may react.
    void Done(uint64_t id, int64_t time);

    Clock& GetClock()
    {
        return clock_;
    }
    Fabric& GetFabric()
    {
        return *fabric_;
    }
    Coflow* CoflowAt(uint32_t number)
    {
        return coflows_[number].get();
    }

    int64_t Run(int64_t horizon, Wall::time_point deadline, const std::atomic<bool>* cancel) override;
    bool Interrupted() const override;
    void ChangeLink(int64_t time, uint32_t link, double rate_bps) override;
    void ChangeRoutes(int64_t time, std::vector<uint32_t> dead) override;

  private:
    void StartAll();

    Clock clock_;
    std::unique_ptr<Fabric> fabric_;
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> coflow_numbers_;
    std::vector<std::unique_ptr<Coflow>> coflows_;
    std::vector<Start> starting_;
};

} // namespace cosim
