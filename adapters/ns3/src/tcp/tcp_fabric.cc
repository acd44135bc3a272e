#include "tcp_fabric.h"

#include "error.h"
#include "mix.h"

#include <ns3/boolean.h>
#include <ns3/config.h>
#include <ns3/double.h>
#include <ns3/drop-tail-queue.h>
#include <ns3/enum.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/mac48-address.h>
#include <ns3/net-device-queue-interface.h>
#include <ns3/node.h>
#include <ns3/red-queue-disc.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/tcp-l4-protocol.h>
#include <ns3/traffic-control-layer.h>
#include <ns3/uinteger.h>

#include <algorithm>
#include <cmath>

namespace cosim {
namespace {

constexpr uint32_t kIpAndTcpHeaders = 40;
// ns-3's streams of random numbers are numbered for the life of the process. Streams given by number make a second
// session in it draw the same numbers as the first.
constexpr int64_t kFirstStream = 1000;
constexpr uint32_t kPortsOnASide = 30000;
constexpr uint32_t kSprayReordering = 1000;

// TCP ports of a connection at its source and its destination; no two have both.
uint16_t
PortHere(uint32_t number)
{
    return static_cast<uint16_t>(1024 + number / kPortsOnASide);
}

uint16_t
PortThere(uint32_t number)
{
    return static_cast<uint16_t>(32768 + number % kPortsOnASide);
}

// ns-3 takes whole bits per second.
ns3::DataRate
RateOf(double rate_bps)
{
    return ns3::DataRate(static_cast<uint64_t>(std::llround(rate_bps)));
}

} // namespace

TcpFabric::TcpFabric(TcpSettings settings, Arrived arrived)
    : settings_(std::move(settings)),
      arrived_(std::move(arrived)),
      finder_(settings_),
      busy_(settings_.topology.link_src.size()),
      meters_(settings_.topology.link_src.size()),
      given_(settings_.topology, settings_.NumDeadSets())
{
    const size_t links = settings_.topology.link_src.size();
    ports_.resize(links);
    cables_.resize(links);
    discs_.resize(links);
    gates_.resize(links);
    SetDefaults();
    MakeNodes();
    for (uint32_t link = 0; link < links; ++link)
    {
        if (!ports_[link])
        {
            MakeCable(link, finder_.Opposite(link));
        }
    }
    ScheduleLinkEvents();
}

void
TcpFabric::SetDefaults() const
{
    using ns3::Config::SetDefault;
    // ns-3's defaults are those of the Internet: an MSS of 536 costs 17 times the events; a least timeout of 1 s is
    // a million packets at 100 Gb/s.
    SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(settings_.mtu_bytes - kIpAndTcpHeaders));
    SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(1u << 30));
    SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(settings_.receive_buffer_bytes));
    SetDefault("ns3::TcpSocket::InitialCwnd", ns3::UintegerValue(settings_.initial_window));
    SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(settings_.delayed_ack_count));
    SetDefault("ns3::TcpSocket::DelAckTimeout", ns3::TimeValue(ns3::TimeStep(settings_.delayed_ack_ps)));
    SetDefault("ns3::TcpSocket::DataRetries", ns3::UintegerValue(1u << 30));
    SetDefault("ns3::TcpSocket::PersistTimeout", ns3::TimeValue(ns3::TimeStep(settings_.min_rto_ps)));
    SetDefault("ns3::TcpSocketBase::MinRto", ns3::TimeValue(ns3::TimeStep(settings_.min_rto_ps)));
    SetDefault("ns3::TcpSocketBase::ClockGranularity", ns3::TimeValue(ns3::MicroSeconds(1)));
    SetDefault("ns3::TcpSocketBase::Timestamp", ns3::BooleanValue(false));
    SetDefault("ns3::TcpSocketBase::UseEcn",
               ns3::StringValue(settings_.ecn ? "On" : "Off"));
    SetDefault("ns3::TcpSocketBase::ReTxThreshold",
               ns3::UintegerValue(settings_.routing == RoutingKind::kSpray ? kSprayReordering : 3));
    SetDefault("ns3::RttEstimator::InitialEstimation", ns3::TimeValue(ns3::TimeStep(settings_.min_rto_ps)));
    ns3::RngSeedManager::SetSeed(static_cast<uint32_t>(Mix(settings_.seed + kGolden) % 4294944442u) + 1);
    ns3::RngSeedManager::SetRun(1);
}

void
TcpFabric::MakeNodes()
{
    for (uint32_t n = 0; n < settings_.topology.num_nodes; ++n)
    {
        auto node = ns3::CreateObject<ns3::Node>();
        auto control = ns3::CreateObject<ns3::TrafficControlLayer>();
        auto ipv4 = ns3::CreateObject<ns3::Ipv4L3Protocol>();
        node->AggregateObject(control);
        node->AggregateObject(ipv4);
        ipv4->SetAttribute("IpForward", ns3::BooleanValue(true));
        if (n < settings_.topology.num_endpoints)
        {
            node->AggregateObject(ns3::CreateObject<ns3::TcpL4Protocol>());
        }
        auto routing = ns3::CreateObject<NodeRouting>();
        routing->SetAddress(n < settings_.topology.num_endpoints ? AddressOf(n) : ns3::Ipv4Address::GetAny());
        routing->SetSeed(Mix(Mix(settings_.routing_seed + kGolden) + settings_.seed + n * kGolden));
        ipv4->SetRoutingProtocol(routing);
        nodes_.push_back(node);
        routings_.push_back(routing);
    }
}

ns3::Ptr<ns3::PointToPointNetDevice>
TcpFabric::MakePort(uint32_t node, ns3::DataRate rate, uint32_t link)
{
    auto port = ns3::CreateObject<ns3::PointToPointNetDevice>();
    port->SetAddress(ns3::Mac48Address::Allocate());
    port->SetDataRate(rate);
    port->SetMtu(static_cast<uint16_t>(settings_.mtu_bytes));
    auto queue = ns3::CreateObject<ns3::DropTailQueue<ns3::Packet>>();
    // Under a queue discipline the device holds one packet beside the one it sends; without one it is the queue, and
    // without flow control, which would drop above the device where nobody counts.
    const bool red = settings_.queue == "red";
    queue->SetMaxSize(red ? ns3::QueueSize(ns3::PACKETS, 1)
                          : ns3::QueueSize(ns3::BYTES, static_cast<uint32_t>(settings_.queue_bytes)));
    port->SetQueue(queue);
    nodes_[node]->AddDevice(port);
    if (red)
    {
        auto flow_control = ns3::CreateObject<ns3::NetDeviceQueueInterface>();
        flow_control->GetTxQueue(0)->ConnectQueueTraces(queue);
        port->AggregateObject(flow_control);
    }
    else if (link != kNoLink)
    {
        LinkMeter* meter = &meters_[link];
        queue->TraceConnectWithoutContext(
            "Drop",
            ns3::Callback<void, ns3::Ptr<const ns3::Packet>>([meter](ns3::Ptr<const ns3::Packet>) { ++meter->drops; }));
    }
    return port;
}

ns3::Ptr<ns3::QueueDisc>
TcpFabric::MakeRed(ns3::Ptr<ns3::PointToPointNetDevice> port, uint32_t node)
{
    // DCTCP's marking is RED without averaging, with marks where RED would drop (RFC 8257, section 4.2).
    const auto max_th = static_cast<double>(std::max(settings_.mark_max_bytes, settings_.mark_min_bytes + 1));
    auto red = ns3::CreateObjectWithAttributes<ns3::RedQueueDisc>(
        "MaxSize", ns3::QueueSizeValue(ns3::QueueSize(ns3::BYTES, static_cast<uint32_t>(settings_.queue_bytes))),
        "MinTh", ns3::DoubleValue(static_cast<double>(settings_.mark_min_bytes)),
        "MaxTh", ns3::DoubleValue(max_th),
        "QW", ns3::DoubleValue(1.0),
        "LInterm", ns3::DoubleValue(1.0));
    red->SetAttribute("Gentle", ns3::BooleanValue(false));
    red->SetAttribute("UseEcn", ns3::BooleanValue(true));
    red->SetAttribute("UseHardDrop", ns3::BooleanValue(false));
    red->SetAttribute("MeanPktSize", ns3::UintegerValue(settings_.mtu_bytes));
    nodes_[node]->GetObject<ns3::TrafficControlLayer>()->SetRootQueueDiscOnDevice(port, red);
    return red;
}

void
TcpFabric::MakeCable(uint32_t link, uint32_t opposite)
{
    const TopologySettings& t = settings_.topology;
    const uint32_t ends[2] = {t.link_src[link], t.link_dst[link]};
    const uint32_t links[2] = {link, opposite};
    auto channel = ns3::CreateObject<DirectedChannel>();
    ns3::Ptr<ns3::PointToPointNetDevice> made[2];
    for (uint32_t side = 0; side < 2; ++side)
    {
        const uint32_t mine = links[side];
        made[side] = MakePort(ends[side], RateOf(t.link_rate_bps[mine == kNoLink ? link : mine]), mine);
        made[side]->Attach(channel);
    }
    for (uint32_t side = 0; side < 2; ++side)
    {
        auto ipv4 = nodes_[ends[side]]->GetObject<ns3::Ipv4L3Protocol>();
        const uint32_t interface = ipv4->AddInterface(made[side]);
        if (ends[side] < t.num_endpoints && interface == 1)
        {
            ipv4->AddAddress(interface,
                             ns3::Ipv4InterfaceAddress(AddressOf(ends[side]), ns3::Ipv4Mask::GetOnes()));
        }
        ipv4->SetUp(interface);
        const uint32_t mine = links[side];
        if (mine == kNoLink)
        {
            continue;
        }
        DirectedChannel::Direction direction;
        direction.link = mine;
        direction.latency_ps = t.link_latency_ps[mine];
        direction.meter = &meters_[mine];
        if (settings_.queue == "red")
        {
            auto red = MakeRed(made[side], ends[side]);
            ns3::DynamicCast<ns3::RedQueueDisc>(red)->AssignStreams(kFirstStream + mine);
            direction.queue_disc = red;
            discs_[mine] = red;
        }
        if (ends[side] < t.num_endpoints && settings_.send_gate_packets > 0)
        {
            auto queue = made[side]->GetQueue();
            auto disc = direction.queue_disc;
            gates_[mine] = std::make_unique<SendGate>(
                [queue, disc] { return queue->GetNBytes() + (disc ? disc->GetNBytes() : 0); },
                (settings_.send_gate_packets - 1) * uint64_t{settings_.mtu_bytes} + 1);
            direction.gate = gates_[mine].get();
        }
        channel->Set(side, direction, &busy_);
        ports_[mine] = made[side];
        cables_[mine] = {channel, side};
    }
}

void
TcpFabric::ScheduleLinkEvents()
{
    for (const LinkEvent& event : settings_.link_events)
    {
        ns3::Simulator::Schedule(ns3::TimeStep(event.time_ps), &TcpFabric::Change, this, event);
    }
    for (const RouteChange& change : settings_.RouteChanges())
    {
        ns3::Simulator::Schedule(ns3::TimeStep(change.time_ps), &TcpFabric::Hear, this, change);
        if (change.set != 0)
        {
            dead_sets_.emplace(change.dead, change.set);
        }
    }
}

void
TcpFabric::CheckLink(uint32_t link) const
{
    if (link >= ports_.size())
    {
        throw SessionError("INVALID_FLOWS",
                           "a change of link " + std::to_string(link) + " of " + std::to_string(ports_.size()),
                           {{"field", "changes"}});
    }
}

void
TcpFabric::ChangeLink(const LinkEvent& event)
{
    CheckLink(event.link);
    const double own = settings_.topology.link_rate_bps[event.link];
    if (!(event.rate_bps >= 0 && event.rate_bps <= own))
    {
        throw SessionError("INVALID_FLOWS", "a link's rate is from 0 to its own", {{"field", "changes.rate_bps"}});
    }
    ns3::Simulator::Schedule(ns3::TimeStep(event.time_ps) - ns3::Simulator::Now(), &TcpFabric::Change, this, event);
}

void
TcpFabric::ChangeRoutes(int64_t time, std::vector<uint32_t> dead)
{
    for (const uint32_t link : dead)
    {
        CheckLink(link);
    }
    const auto next = static_cast<uint32_t>(dead_sets_.size()) + 1;
    const uint32_t set = dead.empty() ? 0 : dead_sets_.try_emplace(dead, next).first->second;
    given_.KnowSets(static_cast<uint32_t>(dead_sets_.size()));
    ns3::Simulator::Schedule(ns3::TimeStep(time) - ns3::Simulator::Now(),
                             &TcpFabric::Hear,
                             this,
                             RouteChange{time, set, std::move(dead)});
}

void
TcpFabric::Change(const LinkEvent& event)
{
    const auto& [channel, direction] = cables_[event.link];
    channel->SetUp(direction, event.up);
    if (event.up)
    {
        ports_[event.link]->SetDataRate(RateOf(event.rate_bps));
    }
}

void
TcpFabric::GivePath(uint32_t src, uint32_t dst, uint32_t channel, std::vector<uint32_t> links, uint32_t dead_set)
{
    given_.Give({src, dst, channel}, std::move(links), dead_set);
}

void
TcpFabric::AddPath(const std::vector<uint32_t>& path, uint32_t ports)
{
    for (const uint32_t link : path)
    {
        routings_[settings_.topology.link_src[link]]->AddConnection(ports, ports_[link]);
    }
}

void
TcpFabric::SetSpray(uint32_t dst)
{
    for (uint32_t node = 0; node < settings_.topology.num_nodes; ++node)
    {
        std::vector<ns3::Ptr<ns3::NetDevice>> outs;
        for (const uint32_t link : finder_.Choices(node, dst))
        {
            outs.push_back(ports_[link]);
        }
        if (!outs.empty() || node == dst)
        {
            routings_[node]->SetChoices(dst, outs);
        }
    }
}

void
TcpFabric::Hear(const RouteChange& change)
{
    finder_.Avoid(change.dead);
    dead_set_ = change.set;
    for (const uint32_t dst : sprayed_)
    {
        SetSpray(dst);
    }
    for (const auto& [ends, number] : numbers_)
    {
        const auto& [src, dst, channel] = ends.second;
        const std::vector<uint32_t> path = TakeWay(number, src, dst, channel);
        connections_[number]->SetGate(gates_[path.front()].get());
    }
}

std::vector<uint32_t>
TcpFabric::TakeWay(uint32_t number, uint32_t src, uint32_t dst, uint32_t channel)
{
    const bool given = settings_.routing == RoutingKind::kGiven;
    std::vector<uint32_t> path =
        given ? given_.Around({src, dst, channel}, dead_set_) : finder_.Find(src, dst, channel);
    if (!given && finder_.IsCut(path))
    {
        path = finder_.Around(src, dst, channel);
    }
    // Where ns-3's side picks, acknowledgements take a path of their own, as a switch would hash them.
    std::vector<uint32_t> back =
        given ? finder_.Back(path, src, dst, channel) : finder_.Find(dst, src, channel);
    if (finder_.IsCut(back))
    {
        back = finder_.Around(dst, src, channel);
    }
    if (settings_.routing != RoutingKind::kSpray)
    {
        const uint32_t here = PortHere(number);
        const uint32_t there = PortThere(number);
        AddPath(path, here << 16 | there);
        AddPath(back, there << 16 | here);
    }
    return path;
}

uint32_t
TcpFabric::Connect(uint32_t job, uint32_t src, uint32_t dst, uint32_t channel)
{
    const auto [known, fresh] = numbers_.try_emplace({job, {src, dst, channel}}, connections_.size());
    if (!fresh)
    {
        return known->second;
    }
    const uint32_t number = known->second;
    const std::vector<uint32_t> path = TakeWay(number, src, dst, channel);
    if (settings_.routing == RoutingKind::kSpray)
    {
        for (const uint32_t end : {dst, src})
        {
            if (sprayed_.insert(end).second)
            {
                SetSpray(end);
            }
        }
    }
    connections_.push_back(std::make_unique<Connection>(
        settings_,
        WiredSocket::End{nodes_[src], AddressOf(src), PortHere(number)},
        WiredSocket::End{nodes_[dst], AddressOf(dst), PortThere(number)},
        gates_[path.front()].get(),
        arrived_));
    return number;
}

void
TcpFabric::Send(uint64_t id, const FlowSpec& spec, Coflow* coflow)
{
    connections_[spec.connection]->Send(id, spec.size_bytes, coflow);
}

std::map<std::string, std::string>
TcpFabric::Told() const
{
    return settings_.Told();
}

void
TcpFabric::ReadDiscs()
{
    for (size_t link = 0; link < discs_.size(); ++link)
    {
        if (discs_[link])
        {
            const auto& stats = discs_[link]->GetStats();
            meters_[link].marks = stats.nTotalMarkedPackets;
            meters_[link].drops = stats.nTotalDroppedPackets;
        }
    }
}

std::vector<int64_t>
TcpFabric::LinkBytes()
{
    return BytesOf(meters_);
}

std::vector<LinkMeasure>
TcpFabric::Measures()
{
    ReadDiscs();
    return MeasuresOf(meters_);
}

} // namespace cosim
