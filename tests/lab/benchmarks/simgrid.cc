// Flows on links in SimGrid's fluid model CM02, for tests/lab/benchmarks/simgrid.py.
//
// Standard input: the numbers of links, hosts, flows and pairs of hosts; of each link its bytes/s and seconds; of
// each pair source, destination, how many links and which; of each flow source, destination, bytes and the second
// at which it starts, ascending. Standard output: the CPU seconds of reading the flows and of the run, then when
// each flow arrived.

#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg = simgrid::s4u;

struct Flow {
  int source, destination;
  double bytes, start;
};

static double cpu() {
  timespec now;
  // Of this thread, which does all: the process's clock only ticks where its CPU time is limited, as it is here.
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  std::ios::sync_with_stdio(false);
  int num_links, num_hosts, num_flows, num_pairs;
  std::cin >> num_links >> num_hosts >> num_flows >> num_pairs;

  auto* zone = sg::create_full_zone("fabric");
  std::vector<const sg::Link*> links;
  for (int k = 0; k < num_links; k++) {
    double rate, latency;
    std::cin >> rate >> latency;
    links.push_back(zone->create_link("l" + std::to_string(k), rate)->set_latency(latency)->seal());
  }
  std::vector<sg::Host*> hosts;
  for (int k = 0; k < num_hosts; k++)
    hosts.push_back(zone->create_host("h" + std::to_string(k), 1e9)->seal());
  for (int k = 0; k < num_pairs; k++) {
    int source, destination, count, link;
    std::cin >> source >> destination >> count;
    std::vector<sg::LinkInRoute> path;
    for (int i = 0; i < count; i++) {
      std::cin >> link;
      path.emplace_back(links[link]);
    }
    zone->add_route(hosts[source]->get_netpoint(), hosts[destination]->get_netpoint(), nullptr, nullptr, path, false);
  }
  zone->seal();
  double reading = cpu();
  std::vector<Flow> flows(num_flows);
  for (auto& flow : flows)
    std::cin >> flow.source >> flow.destination >> flow.bytes >> flow.start;
  reading = cpu() - reading;

  std::vector<double> arrived(num_flows);
  std::vector<sg::CommPtr> comms(num_flows);
  sg::Actor::create("sender", hosts[0], [&] {
    for (int k = 0; k < num_flows; k++) {
      if (flows[k].start > sg::Engine::get_clock())
        sg::this_actor::sleep_until(flows[k].start);
      comms[k] = sg::Comm::sendto_init(hosts[flows[k].source], hosts[flows[k].destination]);
      comms[k]->set_payload_size(static_cast<uint64_t>(flows[k].bytes))->start();
    }
    for (int k = 0; k < num_flows; k++) {
      comms[k]->wait();
      arrived[k] = comms[k]->get_finish_time();
    }
  });
  double began = cpu();
  engine.run();
  std::printf("%.6f %.6f\n", reading, cpu() - began);
  for (double time : arrived)
    std::printf("%.17g\n", time);
}
