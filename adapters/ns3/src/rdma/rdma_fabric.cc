#include "rdma_fabric.h"

#include "error.h"
#include "mix.h"
#include "send_list.h"

#include <ns3/simulator.h>

#include <algorithm>
#include <cmath>

namespace cosim {

RdmaFabric::RdmaFabric(RdmaSettings settings, Arrived arrived)
    : settings_(std::move(settings)),
      arrived_(std::move(arrived)),
      finder_(settings_),
      router_(settings_, finder_, ports_),
      given_(settings_.topology, settings_.NumDeadSets()),
      busy_(settings_.topology.link_src.size()),
      meters_(settings_.topology.link_src.size()),
      switches_(settings_,
                finder_,
                [this](uint32_t link, uint32_t priority, bool stop) { Pause(link, priority, stop); }),
      watch_(ports_, switches_.All(), [this](const std::vector<uint32_t>& links) { FailDeadlock(links); })
{
    MakePorts();
    ScheduleLinkEvents();
}

void
RdmaFabric::MakePorts()
{
    const TopologySettings& t = settings_.topology;
    for (uint32_t link = 0; link < t.link_src.size(); ++link)
    {
        const double rate = t.link_rate_bps[link];
        const LinkFacts facts{link,
                              t.link_src[link],
                              t.link_dst[link],
                              rate,
                              t.link_latency_ps[link],
                              settings_.MarkingOf(rate),
                              &meters_[link]};
        ports_.push_back(std::make_unique<Port>(
            facts, &switches_.Of(facts.src), &pool_, &busy_, settings_.seed, [this, link](Packet* packet) {
                Arrive(link, packet);
            }));
        if (settings_.Kind().telemetry)
        {
            ports_.back()->WriteTelemetry();
        }
    }
}

void
RdmaFabric::TellDraws(const std::function<void(uint32_t link)>& tell)
{
    for (const auto& port : ports_)
    {
        port->TellDraws(tell);
    }
}

void
RdmaFabric::ScheduleLinkEvents()
{
    for (const LinkEvent& event : settings_.link_events)
    {
        ++events_left_;
        ns3::Simulator::Schedule(ns3::TimeStep(event.time_ps), [this, event] {
            --events_left_;
            Change(event);
        });
    }
    for (const RouteChange& change : settings_.RouteChanges())
    {
        ++events_left_;
        ns3::Simulator::Schedule(ns3::TimeStep(change.time_ps), [this, change] {
            --events_left_;
            Hear(change);
        });
    }
}

void
RdmaFabric::Hear(const RouteChange& change)
{
    finder_.Avoid(change.dead);
    router_.Forget();
    dead_set_ = change.set;
    const bool fixed = settings_.routing != RoutingKind::kSpray;
    for (uint32_t number = 0; number < pairs_.size(); ++number)
    {
        QueuePair& pair = pairs_[number];
        pair.way = &WayOf(number);
        const auto& [path, back] = *pair.way;
        pair.sender->TakeWay(fixed ? &path : nullptr, ports_[path.front()].get());
        pair.receiver->TakeWay(fixed ? &back : nullptr, ports_[back.front()].get());
    }
}

const RdmaFabric::Way&
RdmaFabric::WayOf(uint32_t number)
{
    const QueuePair& pair = pairs_[number];
    const bool given = settings_.routing == RoutingKind::kGiven;
    std::vector<uint32_t> path =
        given ? given_.Around({pair.src, pair.dst, pair.channel}, dead_set_) : pair.own.path;
    if (!given && finder_.IsCut(path))
    {
        path = finder_.Around(pair.src, pair.dst, pair.channel);
    }
    std::vector<uint32_t> back = given ? finder_.Back(path, pair.src, pair.dst, pair.channel) : pair.own.back;
    if (finder_.IsCut(back))
    {
        back = finder_.Around(pair.dst, pair.src, pair.channel);
    }
    if (path == pair.own.path && back == pair.own.back)
    {
        return pair.own;
    }
    return detours_.try_emplace({number, dead_set_}, Way{std::move(path), std::move(back)}).first->second;
}

void
RdmaFabric::Change(const LinkEvent& event)
{
    Port& port = *ports_[event.link];
    if (event.up)
    {
        port.SetRate(event.rate_bps);
    }
    if (port.Up() != event.up)
    {
        SetUp(event.link, event.up);
    }
}

void
RdmaFabric::SetUp(uint32_t link, bool up)
{
    ports_[link]->SetUp(up);
    const uint32_t back = finder_.Opposite(link);
    if (back == kNoLink || !settings_.Lossless())
    {
        return;
    }
    // Pauses of the other way come over this link: they run out with it, and are said again when it is back.
    if (!up)
    {
        ports_[back]->ForgetPauses();
        return;
    }
    for (uint32_t priority = 0; priority < switches_.NumClasses(); ++priority)
    {
        if (switches_.Of(settings_.topology.link_src[link]).Stopped(back, priority))
        {
            Pause(back, priority, true);
        }
    }
}

void
RdmaFabric::GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set)
{
    given_.Give({src, dst, channel}, std::move(links), dead_set);
}

PathFacts
RdmaFabric::Facts(const QueuePair& pair) const
{
    const TopologySettings& t = settings_.topology;
    PathFacts facts;
    facts.line_bps = t.link_rate_bps[pair.own.path.front()];
    facts.num_links = static_cast<uint32_t>(pair.own.path.size());
    facts.mss_bytes = settings_.Payload();
    const auto takes = [&](const std::vector<uint32_t>& path, uint32_t bytes) {
        for (const uint32_t link : path)
        {
            facts.base_rtt_ps += t.link_latency_ps[link] +
                                 static_cast<int64_t>(std::ceil(bytes * 8e12 / t.link_rate_bps[link]));
        }
    };
    takes(pair.own.path, settings_.WireBytes());
    takes(pair.own.back, kAckBytes + (settings_.Kind().telemetry ? kTelemetryBytes : 0));
    return facts;
}

uint32_t
RdmaFabric::Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel)
{
    const auto [known, fresh] = numbers_.try_emplace({job, {src, dst, channel}}, pairs_.size());
    if (!fresh)
    {
        return known->second;
    }
    const uint32_t number = known->second;
    QueuePair& pair = pairs_.emplace_back();
    pair.job = job;
    pair.src = src;
    pair.dst = dst;
    pair.channel = channel;
    const bool given = settings_.routing == RoutingKind::kGiven;
    pair.own.path = given ? given_.Find({src, dst, channel}) : finder_.Find(src, dst, channel);
    // Where switches hash, acknowledgements take a way of their own.
    pair.own.back = given ? finder_.Back(pair.own.path, src, dst, channel) : finder_.Find(dst, src, channel);
    pair.way = &WayOf(number);
    const auto& [path, back] = *pair.way;
    const bool fixed = settings_.routing != RoutingKind::kSpray;
    Port* there = ports_[path.front()].get();
    Port* here = ports_[back.front()].get();
    pair.sender = std::make_unique<Sender>(
        settings_, Sender::Way{number, dst, fixed ? &path : nullptr, there}, Facts(pair), &pool_);
    pair.receiver = std::make_unique<Receiver>(
        settings_, Receiver::Way{number, src, fixed ? &back : nullptr, here}, &pool_, arrived_);
    return number;
}

void
RdmaFabric::Send(uint64_t id, const FlowSpec& spec, Coflow* coflow)
{
    switches_.UseClass(spec.priority);
    QueuePair& pair = pairs_[spec.connection];
    // Something has to arrive.
    const auto bytes = static_cast<uint64_t>(std::max<int64_t>(spec.size_bytes, 1));
    pair.given += bytes;
    pair.receiver->Expect(id, pair.given);
    pair.sender->Give(bytes, spec.priority, spec.weight, coflow);
}

void
RdmaFabric::Arrive(uint32_t link, Packet* packet)
{
    if (packet->kind == PacketKind::kPause)
    {
        ports_[packet->sequence]->SetPaused(packet->priority, packet->stop);
        pool_.Release(packet);
    }
    else if (packet->destination == settings_.topology.link_dst[link])
    {
        Deliver(packet);
    }
    else
    {
        Forward(link, packet);
    }
}

void
RdmaFabric::Deliver(Packet* packet)
{
    QueuePair& pair = pairs_[packet->queue_pair];
    if (packet->kind == PacketKind::kData)
    {
        pair.receiver->Take(*packet);
    }
    else
    {
        pair.sender->Take(*packet);
    }
    pool_.Release(packet);
}

void
RdmaFabric::Forward(uint32_t link, Packet* packet)
{
    const uint32_t node = settings_.topology.link_dst[link];
    const uint32_t out = router_.Next(*packet, node);
    Port& port = *ports_[out];
    packet->in_link = link;
    if (packet->kind == PacketKind::kData && !packet->trimmed &&
        !switches_.Of(node).Admit(*packet, out, port.QueueBytes(packet->priority), port.QueueBytes()))
    {
        if (!settings_.Trims())
        {
            ++meters_[out].drops;
            pool_.Release(packet);
            return;
        }
        ++meters_[out].trims;
        packet->trimmed = true;
        packet->wire_bytes = kTrimmedBytes;
    }
    port.Enqueue(packet);
}

void
RdmaFabric::Pause(uint32_t link, uint32_t priority, bool stop)
{
    Packet* frame = pool_.Take();
    frame->kind = PacketKind::kPause;
    frame->priority = static_cast<uint8_t>(priority);
    frame->stop = stop;
    frame->wire_bytes = kPauseBytes;
    frame->sequence = link;
    ports_[finder_.Opposite(link)]->EnqueuePause(frame);
    watch_.Begin();
}

void
RdmaFabric::FailDeadlock(const std::vector<uint32_t>& links)
{
    std::string names;
    for (const uint32_t link : links)
    {
        names += (names.empty() ? "" : ", ") + settings_.topology.LinkName(link);
    }
    Fail("PFC deadlock at " + std::to_string(Sender::Now() + busy_.Offset()) + " ps: " + names +
         " pause each other in a circle; take a routing without circles, a larger buffer or pfc_threshold, or pfc: false");
}

bool
RdmaFabric::Quiet(const std::vector<uint32_t>& pairs, const std::vector<uint32_t>& links) const
{
    const int64_t now = Sender::Now();
    const auto idle = [&](uint32_t one) { return pairs_[one].sender->Quiet(now) && pairs_[one].receiver->Quiet(); };
    const auto empty = [&](uint32_t link) { return ports_[link]->Quiet(); };
    return std::all_of(pairs.begin(), pairs.end(), idle) && std::all_of(links.begin(), links.end(), empty);
}

int64_t
RdmaFabric::QuietSince(const std::vector<uint32_t>& pairs, const std::vector<uint32_t>& links) const
{
    int64_t since = kNeverYet;
    for (const uint32_t one : pairs)
    {
        since = std::max({since, pairs_[one].sender->NextTime(), pairs_[one].sender->StirredAt()});
    }
    for (const uint32_t link : links)
    {
        since = std::max(since, ports_[link]->StirredAt());
    }
    return since;
}

bool
RdmaFabric::Alike(uint32_t link, uint32_t other) const
{
    const LinkFacts& one = ports_[link]->Facts();
    const LinkFacts& two = ports_[other]->Facts();
    const auto same = [this](uint32_t a, uint32_t b) {
        return switches_.Of(a).Facts() == switches_.Of(b).Facts() && switches_.Of(a).Headroom() == switches_.Of(b).Headroom() &&
               switches_.Of(a).NumIn() == switches_.Of(b).NumIn() &&
               switches_.Of(a).LinksOut().size() == switches_.Of(b).LinksOut().size();
    };
    return one.rate_bps == two.rate_bps && one.latency_ps == two.latency_ps && ports_[link]->Up() == ports_[other]->Up() &&
           same(one.src, two.src) && same(one.dst, two.dst);
}

std::vector<uint32_t>
RdmaFabric::LinksOf(uint32_t pair) const
{
    const auto& [path, back] = *pairs_[pair].way;
    std::vector<uint32_t> links = path;
    links.insert(links.end(), back.begin(), back.end());
    for (const uint32_t link : path)
    {
        if (const uint32_t opposite = finder_.Opposite(link); settings_.Lossless() && opposite != kNoLink)
        {
            links.push_back(opposite);
        }
    }
    return links;
}

void
RdmaFabric::Skip(uint32_t pair, uint64_t bytes, int64_t from, int64_t until)
{
    QueuePair& one = pairs_[pair];
    one.given -= bytes;
    one.sender->Skip(bytes);
    one.receiver->Skip(bytes);
    const uint64_t packets = (bytes + settings_.Payload() - 1) / settings_.Payload();
    const auto count = [&](const std::vector<uint32_t>& path, uint64_t wire) {
        for (const uint32_t link : path)
        {
            meters_[link].bytes += wire;
            const auto takes = static_cast<int64_t>(static_cast<double>(wire) * 8e12 / ports_[link]->Facts().rate_bps);
            busy_.AddAt(link, from, std::min(takes, until - from));
        }
    };
    count(one.way->path, bytes + packets * (settings_.WireBytes() - settings_.Payload()));
    count(one.way->back, packets * (kAckBytes + (settings_.Kind().telemetry ? kTelemetryBytes : 0)));
}

std::map<std::string, std::string>
RdmaFabric::Told() const
{
    return settings_.Told();
}

std::vector<int64_t>
RdmaFabric::LinkBytes()
{
    return BytesOf(meters_);
}

std::vector<LinkSample>
RdmaFabric::Queues(const std::vector<uint32_t>& links, int64_t now) const
{
    std::vector<LinkSample> samples;
    for (const uint32_t link : links)
    {
        const LinkMeter& meter = meters_[link];
        samples.push_back({static_cast<double>(ports_[link]->QueueBytes()),
                           static_cast<double>(meter.bytes),
                           static_cast<double>(meter.marks),
                           static_cast<double>(meter.drops + meter.trims),
                           static_cast<double>(ports_[link]->PausedPs(now))});
    }
    return samples;
}

std::vector<RateSample>
RdmaFabric::Rates() const
{
    std::vector<RateSample> samples;
    for (const QueuePair& pair : pairs_)
    {
        if (!pair.sender->Idle())
        {
            const Sender& sender = *pair.sender;
            samples.push_back({pair.job, pair.src, pair.dst, sender.Pace(), sender.Window(), sender.Marked()});
        }
    }
    return samples;
}

std::vector<LinkMeasure>
RdmaFabric::Measures()
{
    std::vector<LinkMeasure> measures = MeasuresOf(meters_);
    LinkMeasure pauses{"pause_ps", {}};
    for (const auto& port : ports_)
    {
        pauses.values.push_back(static_cast<double>(port->PausedPs(Sender::Now())));
    }
    LinkMeasure again{"retransmissions", std::vector<double>(ports_.size())};
    for (const QueuePair& pair : pairs_)
    {
        again.values[pair.own.path.front()] += static_cast<double>(pair.sender->RetransmittedPackets());
    }
    if (settings_.Trims())
    {
        LinkMeasure trims{"trims", {}};
        for (const LinkMeter& meter : meters_)
        {
            trims.values.push_back(static_cast<double>(meter.trims));
        }
        measures.push_back(std::move(trims));
    }
    measures.push_back(std::move(pauses));
    measures.push_back(std::move(again));
    return measures;
}

} // namespace cosim
