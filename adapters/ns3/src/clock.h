// The clock: ns-3's event loop, run exactly as far as asked.
#pragma once

#include "times.h"

#include <ns3/heap-scheduler.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace cosim {

/// An event list that shows nothing later than a gate.
///
/// `Simulator::Run` ends when its event list is empty, so a gate at t makes it run every event up to and at t and no
/// other: no stop event is needed, none is left behind, and ns-3's own events keep their numbers and their order
/// wherever a run is cut. The gate may be lowered (not below now) while an event runs.
class GatedScheduler : public ns3::HeapScheduler
{
  public:
    static ns3::TypeId GetTypeId();
    GatedScheduler();
    bool IsEmpty() const override;

    /// Takes out all events.
    std::vector<Event> SetAside();
    /// Adds one that does nothing, but for bringing ns-3's time, forth or back, to `time`.
    void InsertMark(int64_t time);
};

/// Runs ns-3 up to and including a time. One at a time in a process, as ns-3 has one simulator in a process.
class Clock
{
  public:
    /// Makes a new simulator for the calling thread, which is the one that must use it.
    Clock();
    /// Ends the simulator and all that hangs on it.
    ~Clock();
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;

    /// Ends the simulator now, while what its objects call back still exists.
    void End();

    /// Where the next run may end early: `cancel` set, or the wall clock past `deadline`.
    void Watch(const std::atomic<bool>* cancel, Wall::time_point deadline);

    /// Runs every event up to and at `limit`, or up to what `Lower` made of it; returns which.
    int64_t RunThrough(int64_t limit);

    /// From within an event: run no further than `limit`.
    void Lower(int64_t limit);

    /// From within an event: finish this instant, and stop.
    void StopSoon();

    /// Brings ns-3's time to `time`, where no event is left before or at it.
    void MoveTo(int64_t time);

    /// Goes back to an earlier time at which nothing of what is to come has begun: what is scheduled from now on is run by itself, up to
    /// `Resume`.
    void GoBack(int64_t time);
    /// Goes on where it was before GoBack, with what is left of both.
    void Resume();

    /// Through which time it was run.
    int64_t Reached() const
    {
        return reached_;
    }

    /// Events that ns-3 has run, those of MoveTo not counted.
    uint64_t Events() const;
    /// Time on the wall spent in `Simulator::Run`.
    int64_t RunNs() const
    {
        return run_ns_;
    }
    bool Interrupted() const
    {
        return interrupted_;
    }

  private:
    friend class GatedScheduler;
    bool Shut(int64_t next);

    static Clock* current_;
    GatedScheduler* scheduler_ = nullptr;
    std::vector<ns3::Scheduler::Event> aside_;
    int64_t left_at_ = 0;
    int64_t gate_ = -1;
    int64_t reached_ = 0;
    int64_t run_ns_ = 0;
    uint64_t moves_ = 0;
    uint32_t looks_ = 0;
    bool interrupted_ = false;
    const std::atomic<bool>* cancel_ = nullptr;
    Wall::time_point deadline_ = Wall::time_point::max();
};

} // namespace cosim
