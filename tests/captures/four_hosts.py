"""Four processes of PyTorch's gloo, each on a host of its own in the kernel's eyes, captured.

``python -m tests.captures.four_hosts OUT.pcap SCRIPT.py`` runs the script four times. Each has a network
namespace and an address, 10.0.0.1 to 10.0.0.4, on a bridge in a namespace that is this process's own. On the
loopback all senders would have one address. It takes root, and iproute2.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

RANKS = 4
_NEW_NETWORK = 0x40000000
_OUTGOING = 4
_SNAP = 128
_RECEIVE_BUFFER_FORCED = 33


def can_run() -> bool:
    """Whether this is root, with what it takes."""
    return os.geteuid() == 0 and all(map(shutil.which, ("ip", "unshare", "nsenter")))


def capture(out: Path, done: threading.Event) -> None:
    """Write what comes from the hosts, each packet once, until ``done``."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as raw, out.open("wb") as file:
        raw.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCED, 1 << 28)
        raw.settimeout(0.2)
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _SNAP, 1))
        while True:
            try:
                packet, (interface, _, kind, *_) = raw.recvfrom(1 << 17)
            except TimeoutError:
                if done.is_set():
                    return
                continue
            if interface.startswith("host") and kind != _OUTGOING:
                now = time.time_ns() // 1000
                size = min(len(packet), _SNAP)
                file.write(struct.pack("<IIII", now // 10**6, now % 10**6, size, len(packet)) + packet[:size])


def host(rank: int, script: Path) -> subprocess.Popen[str]:
    """A process on a host of its own, which waits for a line before it begins."""
    world = {"WORLD_SIZE": str(RANKS), "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "RANK": str(rank)}
    process = subprocess.Popen(
        ["unshare", "-n", "sh", "-c", f"echo; read go; exec {sys.executable} {script}"],
        env={**os.environ, **world, "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    there = f"nsenter -t {process.pid} -n ip"
    for command in (
        f"ip link add host{rank} type veth peer name eth0 netns {process.pid}",
        f"ip link set host{rank} master bridge up",
        f"{there} address add 10.0.0.{rank + 1}/24 dev eth0",
        f"{there} link set eth0 up",
        f"{there} link set lo up",
    ):
        subprocess.run(command.split(), check=True)
    return process


def main(out: Path, script: Path) -> int:
    """Capture the script's ranks; the worst of their exit codes."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "no network namespace")
    for command in ("ip link add bridge type bridge", "ip link set bridge up", "ip link set lo up"):
        subprocess.run(command.split(), check=True)
    done = threading.Event()
    watch = threading.Thread(target=capture, args=(out, done))
    watch.start()
    try:
        hosts = [host(rank, script) for rank in range(RANKS)]
        for one in hosts:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.close()
        return max(abs(one.wait()) for one in hosts)
    finally:
        time.sleep(0.5)
        done.set()
        watch.join()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
