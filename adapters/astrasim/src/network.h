// One session with ASTRA-sim's congestion-aware analytical network.
#pragma once

#include "fiber.h"
#include "graph.h"
#include "paths.h"
#include "seam.h"

#include <common/EventQueue.h>

#include <deque>
#include <memory>
#include <vector>

namespace cosim {

/// The seam of cosim over upstream's links and event queue.
///
/// Each hop of a message is sent over upstream's link, which queues it, sends it and says when it is at the other end; the next
/// hop is chosen here, from the client's path. Starts, delays and dependencies are kept in Flows: upstream's list of events
/// holds what is on its links, and at most a few times at which it must not run on (wakes).
///
/// An instant is rounds of (all that upstream has for t, then all that reaches a link at t, in the order of start, cause, source
/// and key) until neither is left. The order of what reaches a link at one instant so is the same wherever a run was cut and
/// whoever released it.
class Network : public Seam
{
  public:
    explicit Network(TopologySettings topology);
    ~Network() override;

    void GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set) override;
    uint32_t Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel) override;
    std::map<std::string, std::string> Told() const override;
    uint64_t Events() const override;
    int64_t RunNs() const override;
    std::vector<int64_t> LinkBytes() override;
    std::vector<LinkMeasure> Measures() override;
    const BusyMeter& Busy() const override;

  protected:
    int64_t Run(int64_t horizon, Wall::time_point deadline, const std::atomic<bool>* cancel) override;
    bool Interrupted() const override;

  private:
    /// A message on its way, and what upstream calls back with.
    struct Moving
    {
        Network* network = nullptr;
        uint64_t id = 0;
        uint32_t path = 0;
        uint32_t hop = 0;
        uint64_t bytes = 0;
    };

    /// Something that reaches a link (or, a mark, its end) at this instant.
    struct Ready
    {
        int64_t time;
        int64_t cause;
        uint32_t src;
        int64_t key_high;
        int64_t key_low;
        uint64_t id;
        Moving* moving;
    };

    struct Path
    {
        uint32_t src;
        std::vector<uint32_t> links;
    };

    static void OnWake(void* network);
    static void OnSettle(void* network);
    static void OnArrival(void* moving);

    void Loop();
    void WakeAt(int64_t ns);
    int64_t NextStartNs() const;
    void Stir();
    void Settle();
    void Round();
    void PauseAt(int64_t reached);
    bool MustStop();
    void TakeStarts();
    void Send(Moving& moving);
    void Arrived(Moving& moving);

    TopologySettings topology_;
    std::shared_ptr<NetworkAnalytical::EventQueue> queue_;
    Graph graph_;
    GivenPaths given_;
    std::map<GivenPaths::Triple, uint32_t> numbers_;
    std::vector<Path> paths_;
    std::deque<Moving> pool_;
    std::vector<Moving*> unused_;
    BusyMeter busy_;
    std::vector<int64_t> link_bytes_;
    uint64_t hops_ = 0;

    /// The instant that upstream is at, ns; -1 before the first.
    int64_t now_ = -1;
    /// Times at which upstream has a wake of ours, the earliest last.
    std::vector<int64_t> wakes_;
    bool settling_ = false;
    bool stirred_ = false;
    int quiet_ = 0;
    std::vector<Ready> ready_;
    std::vector<Start> starting_;

    int64_t horizon_ = 0;
    int64_t reached_ = 0;
    Wall::time_point deadline_;
    const std::atomic<bool>* cancel_ = nullptr;
    bool interrupted_ = false;
    uint32_t looks_ = 0;
    int64_t run_ns_ = 0;
    bool closing_ = false;
    Fiber fiber_;
};

} // namespace cosim
