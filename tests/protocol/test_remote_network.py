"""Over gRPC the same comes out as in this process."""

from collections.abc import Callable

import numpy as np
import pytest

from cosim.errors import CausalityError, CosimError, FeatureError, NetworkError, OverloadError, ProtocolError
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import ON_COMPLETION, ON_START, FlowBatch, FlowGroup, FlowTable, flat_table
from cosim.network.simulator import NetworkSimulator
from cosim.protocol import injector
from cosim.protocol.client import connect
from cosim.protocol.connection import Connection
from cosim.protocol.remote import Remote
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig, Session
from cosim.protocol.topology_messages import decode_topology, encode_topology
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.cases import star
from cosim.units import NEVER
from tests.lab.fuzz.loop import looped
from tests.network.balancing.test_fair_share import SIZE, Bad
from tests.network.balancing.worlds import leaf_spine, send
from tests.protocol.small_run import run

Serve = Callable[..., Server]


@pytest.mark.parametrize("make", [CongestionAwareNetwork, FairShareNetwork])
@pytest.mark.parametrize("release", ["network", "engine"])
def test_a_run_has_the_same_digest_served_as_in_process(
    serve: Serve, make: Callable[[], NetworkSimulator], release: str
) -> None:
    assert run(connect(serve(make).address), release).digest == run(make(), release).digest


def test_a_served_balancer_has_all_paths_to_choose_from() -> None:
    """The other side gives one path of each pair; the shortest ones are seen in the topology."""
    topology = leaf_spine(leaves=2, below=2, spines=3)
    message = pb.Topology()
    encode_topology(topology, message)
    there = decode_topology(message, pb.Routing(kind=pb.ROUTING_KIND_GIVEN))
    src, dst = np.array([0, 0], np.int32), np.array([1, 3], np.int32)
    found = there.routing.alternatives(there, src, dst, 64)
    assert found[0].tolist() == [1, 3]
    wanted = topology.routing.alternatives(topology, src, dst, 64)
    assert found[1].tolist() == wanted[1].tolist()
    assert found[2].tolist() == wanted[2].tolist()


def test_messages_of_64_kib_are_enough(serve: Serve) -> None:
    address = serve(max_message_bytes=1 << 16).address
    assert run(connect(address), "network").digest == run().digest


def test_statistics_fit_a_message_too(serve: Serve) -> None:
    """80 links and 512 bins of 8 bytes are 327,680."""
    seen = []
    for network in (CongestionAwareNetwork(), connect(serve(max_message_bytes=1 << 16).address)):
        network.open(star(40), 1)
        group = FlowGroup(0, flat_table([0], [1], [10**6]), np.arange(2, dtype=np.int32), (0, 0))
        zero = np.zeros(1, np.int64)
        network.advance(FlowBatch([group], zero.astype(np.int32), zero, zero, zero), NEVER)
        seen.append(network.statistics())
        network.close()
    whole, joined = seen
    assert 512 == len(whole.busy_ps) > len(joined.busy_ps) > 16
    assert len(whole.busy_ps) * whole.bin_ps == len(joined.busy_ps) * joined.bin_ps
    assert np.array_equal(whole.link_busy_ps, joined.link_busy_ps)


def random_table(seed: int, rows: int, repeats: int) -> FlowTable:
    """Rows wait for some of the last ``rows`` flows, with delays; the first block is given."""
    rng = np.random.default_rng(seed)
    src = rng.integers(0, 6, 2 * rows)
    degree = np.concatenate([np.zeros(rows, np.int64), rng.integers(1, 4, rows)])
    total = int(degree.sum())
    kinds = np.where(rng.random(total) < 0.4, ON_START, ON_COMPLETION).astype(np.int8)
    # Each waits for its neighbour: chains of starts, and rows that run ahead, can't be held back.
    kinds[np.cumsum(degree)[rows:] - 1] = ON_COMPLETION
    back = np.repeat(np.arange(2 * rows) - rows, degree)
    distance = 1 + rng.integers(0, rows, total) % (back + rows)
    distance[np.cumsum(degree)[rows:] - 1] = rows - 1
    return FlowTable(
        num_participants=6,
        src=src.astype(np.int32),
        dst=((src + rng.integers(1, 6, 2 * rows)) % 6).astype(np.int32),
        size_bytes=rng.integers(100_000, 200_000, 2 * rows),
        channel=rng.integers(0, 2, 2 * rows).astype(np.int32),
        delay_ps=rng.integers(0, 3, 2 * rows) * 100_000,
        reaction_ps=np.full(2 * rows, NEVER),
        dep_ptr=np.concatenate([[0], np.cumsum(degree)]),
        dep_distance=distance,
        dep_kind=kinds,
        block_row=np.array([0, rows, 2 * rows]),
        block_repeat=np.array([1, repeats]),
    )


def completions(network: NetworkSimulator, table: FlowTable) -> dict[tuple[int, int], tuple[int, int]]:
    network.open(star(6), 1)
    given = int(table.block_row[1])
    groups = [
        FlowGroup(h, table, np.arange(6, dtype=np.int32), (0, h << 44), channel=2 * h, job=h)
        for h in range(2)
    ]
    done: dict[tuple[int, int], tuple[int, int]] = {}
    granted = 0
    starts = [(h, k, 50_000 * k + 7_000_000 * h) for h in range(2) for k in range(given)]
    for late in (False, True):  # some are started only later
        some = [s for k, s in enumerate(starts) if (k % 3 == 2) == late]
        columns = np.array(some, np.int64)
        when = np.maximum(columns[:, 2], granted)
        batch = FlowBatch([] if late else groups, columns[:, 0].astype(np.int32), columns[:, 1], when, when)
        horizon = NEVER if late else 30_000
        while granted < horizon:
            granted, some_done = network.advance(batch, horizon)
            batch = FlowBatch()
            for h, k, s, t in zip(
                *(
                    c.tolist()
                    for c in (some_done.handle, some_done.index, some_done.start_ps, some_done.time_ps)
                ),
                strict=True,
            ):
                done[h, k] = s, t
    network.close()
    return done


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
@pytest.mark.parametrize("credit", [1 << 18, 100])
def test_groups_larger_than_the_credit_come_in_windows_and_give_the_same(
    serve: Serve, seed: int, credit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = random_table(seed, 12, 30)
    monkeypatch.setattr(injector, "MOST_AHEAD", 48)
    right = completions(CongestionAwareNetwork(), table)
    assert len(right) == 2 * table.num_flows
    assert completions(connect(serve(max_open_flows=credit).address), table) == right


def test_more_than_the_credit_at_once_is_an_overload(serve: Serve) -> None:
    network = connect(serve(max_open_flows=10).address)
    network.open(star(4))
    group = FlowGroup(0, flat_table([0] * 11, [1] * 11, [5] * 11), np.arange(2, dtype=np.int32), (0, 0))
    zeros = np.zeros(11, np.int64)
    with pytest.raises(OverloadError, match="takes 10 flows at once"):
        network.advance(FlowBatch([group], zeros.astype(np.int32), np.arange(11), zeros, zeros), 1000)
    network.close()


def test_a_start_in_the_past_is_named_as_in_process(serve: Serve) -> None:
    network = connect(serve().address)
    network.open(star(4))
    network.advance(FlowBatch(), 1000)
    group = FlowGroup(0, flat_table([0], [1], [5]), np.arange(2, dtype=np.int32), (0, 0))
    zero = np.zeros(1, np.int64)
    with pytest.raises(CausalityError, match="1000 ps had been granted"):
        network.advance(FlowBatch([group], zero.astype(np.int32), zero, zero, zero), 2000)
    network.close()


@pytest.mark.parametrize(
    "wanted",
    [
        {"mark_min_bytes": 1000},
        {"transport": "cubic"},
        {"mltcp": True},
        {"routing": "spray"},
        {"queue_discipline": "red"},
        {"options": {"no": "1"}},
    ],
)
def test_what_a_simulator_lacks_is_an_error_and_never_left_out(
    serve: Serve, wanted: dict[str, object]
) -> None:
    network = connect(serve().address, **wanted)
    with pytest.raises(NetworkError) as caught:
        network.open(star(4))
    network.close()
    assert isinstance(caught.value, FeatureError) or "INVALID_OPEN" in str(caught.value)


def test_an_interrupt_cancels_the_advance_and_leaves_the_session_in_order(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run says of links after Ctrl-C comes from the session that was interrupted."""
    receive, cancelled, count = Connection.receive, Session.cancel, 0
    seen: list[int] = []

    def interrupted(self: Connection, deadline_s: float | None = None) -> bytes:
        nonlocal count
        count += 1
        if count == 30:
            raise KeyboardInterrupt
        return receive(self, deadline_s)

    def noted(self: Session, sequence: int) -> None:
        seen.append(sequence)
        cancelled(self, sequence)

    monkeypatch.setattr(Connection, "receive", interrupted)
    monkeypatch.setattr(Session, "cancel", noted)
    records = run(connect(serve().address)).records
    assert records.interrupted
    assert records.links.link_bytes.sum() > 0
    assert seen[0] == 29  # the answer to Open came first


def test_one_session_too_many_is_refused(serve: Serve) -> None:
    address = serve(max_sessions=1).address
    first, second = connect(address), connect(address)
    first.open(star(2))
    with pytest.raises(OverloadError, match="all of 1 sessions are open"):
        second.open(star(2))
    first.close()
    second.close()


@pytest.mark.parametrize("which", [1, 2, 9])
def test_an_answer_that_is_no_message_is_a_protocol_error(which: int) -> None:
    count = 0

    def spoil(answer: bytes) -> bytes:
        nonlocal count
        count += 1
        return b"\xff" * 9 if count == which else answer

    with pytest.raises(ProtocolError, match="it sent 9 bytes that are no SessionResponse"):
        run(looped(ServerConfig(CongestionAwareNetwork), spoil))


@pytest.mark.parametrize("release", ["engine", "network"])
def test_a_start_before_the_run_is_named(release: str) -> None:
    """Of a message that the server starts nothing here says when: one at -2^63 ps took -2^63 ps, which was a
    place in memory.
    """

    def spoil(answer: bytes) -> bytes:
        said = pb.SessionResponse.FromString(answer)
        for k in range(len(said.advanced.start_ps)):
            said.advanced.start_ps[k] = -(2**63)
        return said.SerializeToString()

    with pytest.raises(ProtocolError, match="it started a flow"):
        run(looped(ServerConfig(CongestionAwareNetwork), spoil), release=release)


def test_options_that_yaml_takes_for_truth_values_reach_the_simulator_as_words() -> None:
    remote = Remote.model_validate({"simulator": "ns3", "options": {"pfc": False, "ecn": True, "k": 2}})
    assert remote.settings().options == {"pfc": "off", "ecn": "on", "k": "2"}


def test_a_balancers_mistake_is_told_over_the_wire_in_the_same_words(serve: Serve) -> None:
    there = connect(serve(lambda: FairShareNetwork(Bad(answer=float("nan")))).address)
    with pytest.raises(CosimError, match="Bad: column 'path' is nan for the connection of job 0 from gpu0"):
        send(there, leaf_spine(), [(0, 5, SIZE)])
    there.close()
