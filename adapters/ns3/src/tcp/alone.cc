// The simulator without a server: reads a session from standard input, runs it in one go, says what came of it.
//
//   set KEY VALUE                     transport, mltcp (0, 1), mtu_bytes, queue, queue_bytes, mark_bytes, seed, or an option
//   nodes ENDPOINTS NODES
//   link SRC DST RATE_BPS LATENCY_PS
//   pcap PREFIX                       ns-3 captures each port's packets, the first 96 bytes of each, into PREFIX-NODE-PORT.pcap
//   open
//   path SRC DST CHANNEL LINKS...
//   flow KEY_HIGH KEY_LOW SRC DST BYTES CHANNEL START_PS DELAY_PS [c|s]ID...     START_PS -1: by its dependencies
//
// Prints one line: events, completions, the last completion's time, the digest, and time on the wall in ns-3's event
// loop and in all. Built for comparisons: what a server costs is what it takes more than this.

#include "error.h"
#include "network.h"
#include "tcp_fabric.h"

#include <ns3/config.h>
#include <ns3/nstime.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/uinteger.h>

#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

namespace {

using cosim::Network;
using cosim::TcpSettings;

void
Set(TcpSettings& settings, const std::string& key, const std::string& value)
{
    if (key == "transport")
    {
        settings.transport = value;
    }
    else if (key == "mltcp")
    {
        settings.mltcp = value == "1";
    }
    else if (key == "queue")
    {
        settings.queue = value;
    }
    else if (key == "mtu_bytes")
    {
        settings.mtu_bytes = static_cast<uint32_t>(std::stoul(value));
    }
    else if (key == "queue_bytes")
    {
        settings.queue_bytes = std::stoull(value);
    }
    else if (key == "mark_bytes")
    {
        settings.ecn = true;
        settings.mark_min_bytes = settings.mark_max_bytes = std::stoull(value);
    }
    else if (key == "seed")
    {
        settings.seed = std::stoull(value);
    }
    else
    {
        settings.SetOption(key, value);
    }
}

void
GiveFlow(Network& network, std::istringstream& line)
{
    cosim::FlowSpec spec;
    uint32_t src = 0;
    uint32_t dst = 0;
    uint32_t channel = 0;
    int64_t start = 0;
    line >> spec.key_high >> spec.key_low >> src >> dst >> spec.size_bytes >> channel >> start >> spec.delay_ps;
    spec.reaction_ps = cosim::kNever;
    spec.coflow = network.CoflowOf(0, 0, 0);
    spec.connection = src == dst ? cosim::kMark : network.Connect(0, src, dst, channel);
    std::vector<std::pair<uint64_t, cosim::Wait>> waits;
    std::string wait;
    while (line >> wait)
    {
        const auto what = wait[0] == 's' ? cosim::Wait::kStart : cosim::Wait::kCompletion;
        waits.emplace_back(std::stoull(wait.substr(1)), what);
    }
    network.Give(spec, waits, start, start);
}

std::unique_ptr<Network>
Read(std::istream& input)
{
    TcpSettings settings;
    settings.queue.clear();
    settings.routing = cosim::RoutingKind::kGiven;
    std::unique_ptr<Network> network;
    std::string captured;
    std::string text;
    while (std::getline(input, text))
    {
        std::istringstream line(text);
        std::string word;
        line >> word;
        if (word == "set")
        {
            std::string key;
            std::string value;
            line >> key >> value;
            Set(settings, key, value);
        }
        else if (word == "nodes")
        {
            line >> settings.topology.num_endpoints >> settings.topology.num_nodes;
        }
        else if (word == "link")
        {
            uint32_t src = 0;
            uint32_t dst = 0;
            uint64_t rate = 0;
            int64_t latency = 0;
            line >> src >> dst >> rate >> latency;
            settings.topology.link_src.push_back(src);
            settings.topology.link_dst.push_back(dst);
            settings.topology.link_rate_bps.push_back(rate);
            settings.topology.link_latency_ps.push_back(latency);
        }
        else if (word == "pcap")
        {
            line >> captured;
        }
        else if (word == "open")
        {
            settings.Finish();
            network = std::make_unique<Network>(settings.topology.num_endpoints, [&](cosim::Fabric::Arrived arrived) {
                return std::make_unique<cosim::TcpFabric>(settings, std::move(arrived));
            });
            if (!captured.empty())
            {
                ns3::Config::SetDefault("ns3::PcapFileWrapper::CaptureSize", ns3::UintegerValue(96));
                ns3::PointToPointHelper().EnablePcapAll(captured, false);
            }
        }
        else if (word == "path" && network)
        {
            uint32_t src = 0;
            uint32_t dst = 0;
            uint32_t channel = 0;
            line >> src >> dst >> channel;
            std::vector<uint32_t> links;
            for (uint32_t link = 0; line >> link;)
            {
                links.push_back(link);
            }
            network->GivePath(src, dst, channel, links, 0);
        }
        else if (word == "flow" && network)
        {
            GiveFlow(*network, line);
        }
        else if (!word.empty())
        {
            throw std::runtime_error("what is this line: " + text);
        }
    }
    if (!network)
    {
        throw std::runtime_error("no line says open");
    }
    return network;
}

} // namespace

int
main()
{
    ns3::Time::SetResolution(ns3::Time::PS);
    try
    {
        const auto network = Read(std::cin);
        const auto begin = cosim::Wall::now();
        const auto done = network->Advance(cosim::kNever, cosim::Wall::time_point::max(), nullptr);
        const auto wall = cosim::Wall::now() - begin;
        int64_t last = 0;
        for (const auto& completion : done.completions)
        {
            last = std::max(last, completion.time);
        }
        std::cout << "events " << network->Events() << " completions " << done.completions.size()
                  << " last_ps " << last << " digest " << std::hex << std::setfill('0') << std::setw(16) << network->GetDigest().a
                  << std::setw(16) << network->GetDigest().b << std::dec << " run_ns " << network->RunNs()
                  << " wall_ns " << std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count() << std::endl;
    }
    catch (const std::exception& error)
    {
        std::cerr << "cosim-ns3-alone: " << error.what() << std::endl;
        return 1;
    }
    return 0;
}
