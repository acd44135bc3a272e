#include "network.h"

#include <congestion_aware/Chunk.h>

#include <algorithm>
#include <tuple>

namespace cosim {
namespace {

constexpr int64_t kPsPerNs = 1000;
/// Upstream takes no event at its time 0 before it has run: ours is one later there.
constexpr int64_t kEpochNs = 1;
constexpr int64_t kNeverNs = kNever / kPsPerNs;
/// What upstream does at an instant without telling (a link becomes free) may have one thing more happen there, which it tells.
constexpr int kQuietPasses = 2;
constexpr uint32_t kLookEvery = 64;
/// Upstream's chunks on their way are freed by running them; a session that was broken off is not worth more than this.
constexpr auto kDrain = std::chrono::milliseconds(100);

} // namespace

Network::Network(TopologySettings topology)
    : Seam(topology.num_endpoints),
      topology_(std::move(topology)),
      queue_(std::make_shared<NetworkAnalytical::EventQueue>()),
      graph_(topology_),
      given_(topology_),
      busy_(topology_.link_src.size()),
      link_bytes_(topology_.link_src.size()),
      fiber_([this] { Loop(); })
{
    aware::Topology::set_event_queue(queue_);
}

Network::~Network()
{
    closing_ = true;
    fiber_.Resume();
    const auto until = Wall::now() + kDrain;
    while (!queue_->finished() && Wall::now() < until)
    {
        queue_->proceed();
    }
}

void
Network::GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set)
{
    given_.Give({src, dst, channel}, std::move(links), dead_set);
}

uint32_t
Network::Connect(uint32_t, uint32_t src, uint32_t dst, uint32_t channel)
{
    const auto known = numbers_.find({src, dst, channel});
    if (known != numbers_.end())
    {
        return known->second;
    }
    paths_.push_back({src, given_.Find({src, dst, channel})});
    const auto number = static_cast<uint32_t>(paths_.size() - 1);
    numbers_[{src, dst, channel}] = number;
    return number;
}

std::map<std::string, std::string>
Network::Told() const
{
    return {{"model", "congestion_aware"}, {"clock", "1 ns"}};
}

uint64_t
Network::Events() const
{
    return 2 * hops_; // an arrival, and a link that is free again
}

int64_t
Network::RunNs() const
{
    return run_ns_;
}

std::vector<int64_t>
Network::LinkBytes()
{
    return link_bytes_;
}

std::vector<LinkMeasure>
Network::Measures()
{
    return {};
}

const BusyMeter&
Network::Busy() const
{
    return busy_;
}

bool
Network::Interrupted() const
{
    return interrupted_;
}

int64_t
Network::Run(int64_t horizon, Wall::time_point deadline, const std::atomic<bool>* cancel)
{
    horizon_ = horizon;
    deadline_ = deadline;
    cancel_ = cancel;
    interrupted_ = false;
    looks_ = 0;
    const auto begin = Wall::now();
    fiber_.Resume();
    run_ns_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Wall::now() - begin).count();
    return reached_;
}

void
Network::PauseAt(int64_t reached)
{
    reached_ = reached;
    fiber_.Pause();
}

int64_t
Network::NextStartNs() const
{
    const int64_t start = const_cast<Network*>(this)->GetFlows().NextStart();
    return start == kNever ? kNeverNs : (start + kPsPerNs - 1) / kPsPerNs;
}

void
Network::Loop()
{
    while (!closing_)
    {
        // Between two instants: all of now_ has happened, nothing later.
        const int64_t limit = Limit(horizon_);
        const int64_t limit_ns = limit / kPsPerNs;
        if (limit_ns <= now_)
        {
            PauseAt(limit);
            continue;
        }
        const int64_t stop = std::min(limit_ns, NextStartNs());
        if (stop < kNeverNs)
        {
            WakeAt(stop);
        }
        if (queue_->finished())
        {
            PauseAt(limit);
            continue;
        }
        queue_->proceed();
    }
}

void
Network::WakeAt(int64_t ns)
{
    if (wakes_.empty() || ns < wakes_.back())
    {
        wakes_.push_back(ns);
        queue_->schedule_event(static_cast<uint64_t>(ns + kEpochNs), &Network::OnWake, this);
    }
}

void
Network::OnWake(void* network)
{
    auto& self = *static_cast<Network*>(network);
    self.wakes_.pop_back();
    self.Stir();
}

void
Network::OnSettle(void* network)
{
    static_cast<Network*>(network)->Settle();
}

void
Network::OnArrival(void* moving)
{
    auto& one = *static_cast<Moving*>(moving);
    one.network->Arrived(one);
}

void
Network::Stir()
{
    now_ = static_cast<int64_t>(queue_->get_current_time()) - kEpochNs;
    stirred_ = true;
    if (!settling_ && !closing_)
    {
        settling_ = true;
        quiet_ = 0;
        queue_->schedule_event(queue_->get_current_time(), &Network::OnSettle, this);
    }
}

void
Network::Settle()
{
    // To the end of upstream's list for this instant, again and again until it has nothing more there.
    quiet_ = stirred_ ? 0 : quiet_ + 1;
    stirred_ = false;
    if (quiet_ < kQuietPasses)
    {
        queue_->schedule_event(queue_->get_current_time(), &Network::OnSettle, this);
        return;
    }
    settling_ = false;
    Round();
}

bool
Network::MustStop()
{
    if (++looks_ % kLookEvery == 0)
    {
        interrupted_ = interrupted_ || cancel_->load(std::memory_order_relaxed) ||
                       (deadline_ != Wall::time_point::max() && Wall::now() >= deadline_);
    }
    return interrupted_ || Full() || Limit(horizon_) <= now_ * kPsPerNs;
}

void
Network::Round()
{
    while (!closing_ && MustStop())
    {
        PauseAt(now_ * kPsPerNs);
    }
    if (closing_)
    {
        return;
    }
    TakeStarts();
    if (ready_.size() > 1)
    {
        std::sort(ready_.begin(), ready_.end(), [](const Ready& a, const Ready& b) {
            return std::tie(a.time, a.cause, a.src, a.key_high, a.key_low, a.id) <
                   std::tie(b.time, b.cause, b.src, b.key_high, b.key_low, b.id);
        });
    }
    std::vector<Ready> round;
    round.swap(ready_);
    for (const Ready& one : round)
    {
        if (one.moving == nullptr)
        {
            Complete(one.id, now_ * kPsPerNs, one.cause);
        }
        else
        {
            Send(*one.moving);
        }
    }
    // The client may start more here because of a mark, or a flow waited for one.
    if (NextStartNs() == now_ || Limit(horizon_) <= now_ * kPsPerNs)
    {
        Stir();
    }
}

void
Network::TakeStarts()
{
    starting_.clear();
    while (NextStartNs() == now_)
    {
        GetFlows().TakeStarts(starting_);
    }
    for (const Start& start : starting_)
    {
        const FlowSpec& spec = GetFlows().Spec(start.id);
        Ready one{start.time, start.cause, 0, start.key_high, start.key_low, start.id, nullptr};
        if (spec.connection != kMark)
        {
            if (unused_.empty())
            {
                pool_.emplace_back();
                unused_.push_back(&pool_.back());
            }
            one.src = paths_[spec.connection].src;
            one.moving = unused_.back();
            unused_.pop_back();
            // Upstream has no message without bytes.
            *one.moving = {this, start.id, spec.connection, 0, std::max<uint64_t>(1, static_cast<uint64_t>(spec.size_bytes))};
        }
        ready_.push_back(one);
    }
}

void
Network::Send(Moving& moving)
{
    const uint32_t link = paths_[moving.path].links[moving.hop];
    graph_.send(std::make_unique<aware::Chunk>(moving.bytes, graph_.Over(link), &Network::OnArrival, &moving));
}

void
Network::Arrived(Moving& moving)
{
    Stir();
    if (closing_)
    {
        return;
    }
    ++hops_;
    const Path& path = paths_[moving.path];
    const uint32_t link = path.links[moving.hop];
    const int64_t time = now_ * kPsPerNs;
    const int64_t sent = time - static_cast<int64_t>(graph_.HopNs(link, moving.bytes)) * kPsPerNs;
    link_bytes_[link] += GetFlows().Spec(moving.id).size_bytes;
    busy_.Add(link, sent, static_cast<int64_t>(graph_.BusyNs(link, moving.bytes)) * kPsPerNs);
    if (++moving.hop == path.links.size())
    {
        const uint64_t id = moving.id;
        unused_.push_back(&moving);
        Complete(id, time, sent);
        return;
    }
    const FlowSpec& spec = GetFlows().Spec(moving.id);
    ready_.push_back({time, sent, path.src, spec.key_high, spec.key_low, moving.id, &moving});
}

} // namespace cosim
