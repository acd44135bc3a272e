"""Topology files of other programs, one of each format: what tests read, and a fuzzer damages."""

from __future__ import annotations

import json
from typing import Any

HPCC = """5 1 4
4
0 4 100Gbps 0.001ms 0
1 4 100Gbps 0.001ms 0
2 4 100Gbps 0.001ms 0
3 4 400Gbps 0.002ms 0.1

First line: total node #, switch node #, link #
src0 dst0 rate delay error_rate
"""
SIMAI = (
    """11 4 1 2 16 A100
8 9 10
0 8 2400Gbps 0.000025ms 0
1 8 2400Gbps 0.000025ms 0
2 8 2400Gbps 0.000025ms 0
3 8 2400Gbps 0.000025ms 0
"""
    + "".join(f"{gpu} {9 + gpu % 2} 200Gbps 0.0005ms 0\n" for gpu in range(8))
    + "9 10 400Gbps 0.0005ms 0\n" * 4
)
HTSIM = """# a leaf-spine
Nodes 32
Tiers 2
Podsize 32

Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 5
Oversubscribed 4

Tier 1
Downlink_speed_Gbps 200
Radix_Down 4
Downlink_Latency_ns 700
Switch_Latency_ns 0
"""
CSV = """# rack 7
device_a,port_a,device_b,port_b,rate,status
gpu1,eth0,leaf1,swp1,400G,connected
gpu2,eth0,leaf1,swp2,400GbE,connected
gpu10,eth0,leaf2,swp1,400Gbps,connected
gpu10,eth1,leaf1,swp9,400Gbps,planned
leaf1,swp31,spine1,swp1,0.8Tbps,connected
leaf2,swp31,spine1,swp2,800G,connected
"""
IB = """#
# Topology file: generated on Tue Jun  5 14:15:10 2007
#
Non-Chassis Nodes

vendid=0x2c9
devid=0xd2f0
sysimgguid=0xb0
switchguid=0xb0(b0)
Switch\t40 "S-00000000000000b0"\t\t# "MF0;leaf:MQM8700/U1" enhanced port 0 lid 5 lmc 0
[1]\t"H-00000000000000a1"[1](a1) \t\t# "host2 HCA-1" lid 10 4xHDR
[2]\t"H-00000000000000a0"[1](a0) \t\t# "host10 HCA-1" lid 11 4xEDR

vendid=0x2c9
caguid=0xa1
Ca\t1 "H-00000000000000a1"\t\t# "host2 HCA-1"
[1](a1) \t"S-00000000000000b0"[1]\t\t# lid 10 lmc 0 "MF0;leaf:MQM8700/U1" lid 5 4xHDR

caguid=0xa0
Ca\t1 "H-00000000000000a0"\t\t# "host10 HCA-1"
[1](a0) \t"S-00000000000000b0"[2]\t\t# lid 11 lmc 0 "MF0;leaf:MQM8700/U1" lid 5 4xEDR
"""


def lldp_json(pairs: list[tuple[str, str, str]]) -> str:
    found = [
        {
            own: {
                "via": "LLDP",
                "chassis": {peer: {"id": {"type": "mac", "value": "0"}}},
                "port": {
                    "id": {"type": "ifname", "value": port},
                    "auto-negotiation": {"supported": True, "current": "100GbaseSR4 - ..."},
                },
            }
        }
        for own, peer, port in pairs
    ]
    return json.dumps({"lldp": {"interface": found}})


def netbox(speed: int | None, kind: str | None) -> str:
    def end(device: str, role: str) -> list[dict[str, Any]]:
        port = {"device": {"name": device, "role": {"slug": role}}, "name": "p", "speed": speed}
        return [{"object_type": "dcim.interface", "object": port | {"type": {"value": kind}}}]

    cables = [
        {
            "id": k,
            "status": {"value": status},
            "a_terminations": end(f"gpu{k}", "server"),
            "b_terminations": end("leaf", "leaf"),
        }
        for k, status in enumerate(("connected", "connected", "planned"))
    ]
    return json.dumps({"count": 3, "next": None, "results": cables})


GRAPHML = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d1" for="edge" attr.name="rate" attr.type="string" />
  <key id="d0" for="node" attr.name="role" attr.type="string" />
  <graph edgedefault="undirected">
    <node id="a"><data key="d0">gpu</data></node>
    <node id="b"><data key="d0">gpu</data></node>
    <node id="s"><data key="d0">switch</data></node>
    <edge source="a" target="s"><data key="d1">200Gbps</data></edge>
    <edge source="b" target="s"><data key="d1">400Gbps</data></edge>
  </graph>
</graphml>
"""
EACH = {
    "hpcc": HPCC,
    "simai": SIMAI,
    "htsim-topo": HTSIM,
    "csv": CSV,
    "ibnetdiscover": IB,
    "lldp": lldp_json([("e", "l", "p")]),
    "netbox": netbox(None, "100gbase-x"),
    "graphml": GRAPHML,
}
