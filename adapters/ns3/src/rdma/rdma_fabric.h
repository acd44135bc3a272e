// RDMA over a topology: ports, switches' memory, queue pairs between endpoints.
#pragma once

#include "busy_log.h"
#include "fabric.h"
#include "meter.h"
#include "packet.h"
#include "path_finder.h"
#include "paths.h"
#include "pause_watch.h"
#include "port.h"
#include "rdma_settings.h"
#include "receiver.h"
#include "router.h"
#include "sender.h"
#include "switches.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace cosim {

/// Every packet, at the level of devices: no IP stack and no ns3::Packet, but rows of a pool on ns-3's event loop.
///
/// A queue pair carries the messages of one (job, source, destination, channel), in order, with its control's state kept
/// between them. Not modelled: connection set-up, verbs, RETH, host memory and PCIe, receivers that stop.
class RdmaFabric : public Fabric
{
  public:
    RdmaFabric(RdmaSettings settings, Arrived arrived);

    void GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set) override;
    uint32_t Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel) override;
    void Send(uint64_t id, const FlowSpec& spec, Coflow* coflow) override;
    std::map<std::string, std::string> Told() const override;
    std::vector<int64_t> LinkBytes() override;
    std::vector<LinkMeasure> Measures() override;

    const BusyMeter& Busy() const override
    {
        return busy_.Meter();
    }

    std::vector<LinkSample> Queues(const std::vector<uint32_t>& links, int64_t now) const override;
    std::vector<RateSample> Rates() const override;

    /// Nothing is on its way, waits or is due in these queue pairs and links.
    bool Quiet(const std::vector<uint32_t>& pairs, const std::vector<uint32_t>& links) const;
    /// No failure is still to come.
    bool Settled() const
    {
        return events_left_ == 0;
    }
    /// Since when.
    int64_t QuietSince(const std::vector<uint32_t>& pairs, const std::vector<uint32_t>& links) const;
    /// Whether two links are the same but for their names, and the memories at their ends.
    bool Alike(uint32_t link, uint32_t other) const;
    /// The links that a queue pair's packets go over.
    const std::vector<uint32_t>& PathOf(uint32_t pair) const
    {
        return pairs_[pair].way->path;
    }
    /// Those, and all that anything goes over because of it: acknowledgements, pause frames.
    std::vector<uint32_t> LinksOf(uint32_t pair) const;
    /// Classes of priority in use, which take room in switches.
    uint32_t NumClasses() const
    {
        return switches_.NumClasses();
    }
    Port& PortOf(uint32_t link) const
    {
        return *ports_[link];
    }
    LinkMeter& MeterOf(uint32_t link)
    {
        return meters_[link];
    }
    Sender& SenderOf(uint32_t pair)
    {
        return *pairs_[pair].sender;
    }
    Receiver& ReceiverOf(uint32_t pair)
    {
        return *pairs_[pair].receiver;
    }
    /// `tell` hears of each number that is drawn, with the link for whose marks it is.
    void TellDraws(const std::function<void(uint32_t link)>& tell);
    BusyLog& BusyOf()
    {
        return busy_;
    }
    int64_t BaseRtt(uint32_t pair) const
    {
        return Facts(pairs_[pair]).base_rtt_ps;
    }
    uint32_t Payload() const
    {
        return settings_.Payload();
    }
    /// Makes the message that a queue pair sends so much shorter: it was carried in a time that is leapt over. Its bytes are
    /// counted on its links.
    void Skip(uint32_t pair, uint64_t bytes, int64_t from, int64_t until);

  private:
    /// Links there, and those that acknowledgements take.
    struct Way
    {
        std::vector<uint32_t> path;
        std::vector<uint32_t> back;
    };

    struct QueuePair
    {
        uint32_t job = 0;
        uint32_t src = 0;
        uint32_t dst = 0;
        uint32_t channel = 0;
        Way own;
        const Way* way = nullptr;
        std::unique_ptr<Sender> sender;
        std::unique_ptr<Receiver> receiver;
        uint64_t given = 0;
    };

    void MakePorts();
    void ScheduleLinkEvents();
    void Change(const LinkEvent& event);
    void SetUp(uint32_t link, bool up);
    void Hear(const RouteChange& change);
    /// The way of a queue pair round the links that are known to be dead; packets on their way keep pointing to it.
    const Way& WayOf(uint32_t number);
    PathFacts Facts(const QueuePair& pair) const;
    void Arrive(uint32_t link, Packet* packet);
    void Deliver(Packet* packet);
    void Forward(uint32_t link, Packet* packet);
    void Pause(uint32_t link, uint32_t priority, bool stop);
    void FailDeadlock(const std::vector<uint32_t>& links);

    const RdmaSettings settings_;
    Arrived arrived_;
    PathFinder finder_;
    Router router_;
    GivenPaths given_;
    BusyLog busy_;
    PacketPool pool_;
    std::vector<LinkMeter> meters_;
    std::vector<std::unique_ptr<Port>> ports_;
    Switches switches_;
    std::deque<QueuePair> pairs_;
    /// Detours, by queue pair and set of dead links.
    std::map<std::pair<uint32_t, uint32_t>, Way> detours_;
    uint32_t dead_set_ = 0;
    std::map<std::pair<uint32_t, GivenPaths::Triple>, uint32_t> numbers_;
    PauseWatch watch_;
    size_t events_left_ = 0;
};

} // namespace cosim
