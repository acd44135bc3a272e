#include "clock.h"

#include <ns3/make-event.h>
#include <ns3/simulator.h>

#include <algorithm>
#include <stdexcept>

namespace cosim {

NS_OBJECT_ENSURE_REGISTERED(GatedScheduler);

Clock* Clock::current_ = nullptr;

ns3::TypeId
GatedScheduler::GetTypeId()
{
    static ns3::TypeId tid = ns3::TypeId("cosim::GatedScheduler")
                                 .SetParent<ns3::HeapScheduler>()
                                 .AddConstructor<GatedScheduler>();
    return tid;
}

GatedScheduler::GatedScheduler()
{
    if (Clock::current_ != nullptr)
    {
        Clock::current_->scheduler_ = this;
    }
}

std::vector<ns3::Scheduler::Event>
GatedScheduler::SetAside()
{
    std::vector<Event> all;
    while (!HeapScheduler::IsEmpty())
    {
        all.push_back(RemoveNext());
    }
    return all;
}

void
GatedScheduler::InsertMark(int64_t time)
{
    Insert({ns3::MakeEvent([] {}), {static_cast<uint64_t>(time), 0, ns3::Simulator::NO_CONTEXT}});
}

bool
GatedScheduler::IsEmpty() const
{
    if (HeapScheduler::IsEmpty())
    {
        return true;
    }
    Clock* clock = Clock::current_;
    return clock != nullptr && clock->Shut(static_cast<int64_t>(PeekNext().key.m_ts));
}

Clock::Clock()
{
    if (current_ != nullptr)
    {
        throw std::logic_error("ns-3 has one simulator in a process");
    }
    current_ = this;
    ns3::ObjectFactory factory;
    factory.SetTypeId(GatedScheduler::GetTypeId());
    ns3::Simulator::SetScheduler(factory);
}

Clock::~Clock()
{
    End();
}

void
Clock::End()
{
    if (current_ == this)
    {
        current_ = nullptr;
        ns3::Simulator::Destroy();
    }
}

void
Clock::Watch(const std::atomic<bool>* cancel, Wall::time_point deadline)
{
    cancel_ = cancel;
    deadline_ = deadline;
    interrupted_ = false;
    looks_ = 0;
}

bool
Clock::Shut(int64_t next)
{
    // The wall clock costs as much as an event: look at it now and then only.
    if ((++looks_ & 0x1ff) == 0 && !interrupted_)
    {
        if ((cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) ||
            (deadline_ != Wall::time_point::max() && Wall::now() >= deadline_))
        {
            interrupted_ = true;
            StopSoon();
        }
    }
    return next > gate_;
}

int64_t
Clock::RunThrough(int64_t limit)
{
    gate_ = limit;
    const auto begin = Wall::now();
    ns3::Simulator::Run();
    run_ns_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Wall::now() - begin).count();
    reached_ = std::max(reached_, gate_);
    return gate_;
}

void
Clock::Lower(int64_t limit)
{
    gate_ = std::min(gate_, limit);
}

void
Clock::StopSoon()
{
    Lower(std::max(reached_, ns3::Simulator::Now().GetTimeStep()));
}

void
Clock::MoveTo(int64_t time)
{
    const int64_t now = ns3::Simulator::Now().GetTimeStep();
    if (now < time)
    {
        ++moves_;
        ns3::Simulator::Schedule(ns3::TimeStep(time - now), [] {});
        RunThrough(time);
    }
}

void
Clock::GoBack(int64_t time)
{
    left_at_ = ns3::Simulator::Now().GetTimeStep();
    aside_ = scheduler_->SetAside();
    scheduler_->InsertMark(time);
    ++moves_;
    RunThrough(time);
}

void
Clock::Resume()
{
    for (const ns3::Scheduler::Event& event : aside_)
    {
        scheduler_->Insert(event);
    }
    aside_.clear();
    MoveTo(left_at_);
}

uint64_t
Clock::Events() const
{
    return ns3::Simulator::GetEventCount() - moves_;
}

} // namespace cosim
