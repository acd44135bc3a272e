"""Groups and their plans as columns: written when a group's first rank comes, once for all that follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from cosim.engine.columns import NONE, EngineColumns
from cosim.engine.flow_log import FlowLog
from cosim.engine.plans import Plans, flow_table_of
from cosim.engine.programs import Group, Naming
from cosim.engine.tables import ProgramTable, Tables
from cosim.errors import SimulationError
from cosim.kernel import kernel, record
from cosim.network.flows import I32, FlowTable
from cosim.pattern.plan import FIRST, Phase, Plan, Turn
from cosim.pattern.template import Template


@dataclass(frozen=True, eq=False, slots=True)
class Comm:
    """A group of a job as its members name it: row ``number`` of the columns' groups so named."""

    number: int
    job: int
    group: Group
    naming: Naming


@dataclass(frozen=True, eq=False, slots=True)
class Planned:
    """A plan on a group: of the whole of it, and of the ranks that are simulated."""

    plan: Plan
    simulated: Plan
    carried: list[int] = field(default_factory=list)
    """Messages of each time that code carried it."""

    @property
    def num_messages(self) -> int:
        """Messages that it sends each time; where code carries it, on average."""
        return self.plan.num_messages if not self.carried else round(sum(self.carried) / len(self.carried))


class BoundTable(NamedTuple):
    """A flow table on endpoints, for a job; what is added to its channels, and who releases its flows."""

    table: FlowTable
    endpoints: I32
    job: int
    channel: int = 0
    release: Literal["network", "caller"] = "network"


class Groups:
    """Looks up groups and plans that the loop has not met, and binds their templates to endpoints."""

    def __init__(self, columns: EngineColumns, flow_log: FlowLog, tables: Tables, plans: Plans) -> None:
        self._columns = columns
        self._flow_log = flow_log
        self._tables = tables
        self._plans = plans
        self.comms: list[Comm] = []
        self.planned: list[Planned] = []
        self.bindings: dict[int, BoundTable] = {}
        self.carries = False
        """Whether somebody is told of what code carries, and of ends."""
        self.on_bind: Callable[[int, BoundTable], None] | None = None
        """Told of each new binding."""
        self._comms: dict[tuple[int, tuple[int, ...], Naming], Comm] = {}
        self._groups: dict[tuple[int, tuple[int, ...]], int] = {}
        self._numbers: dict[tuple[int, Naming], tuple[int, int]] = {}
        self._accesses: dict[tuple[str, int], FlowTable] = {}
        self._flow_tables: dict[int, tuple[Template, FlowTable]] = {}
        self._bound: dict[tuple[int, int, bytes], int] = {}
        self._places: dict[int, tuple[I32, int, int]] = {}
        self._turns: dict[Turn, int] = {FIRST: 0}
        self._turn_of: list[Turn] = [FIRST]

    # -- groups --------------------------------------------------------------------------------------

    def look_up(self, rank: int, op: int) -> None:
        """Find the group of a rank's collective, for all its members.

        Raises
        ------
        WorkloadError
            The rank is not in the group it names, or a rank is beyond the world.
        """
        row = self._columns.ranks[rank]
        job, number = int(row["job"]), int(row["number"])
        program = self._tables.program(job, number).program
        ready = self._tables.jobs[job]
        op %= len(program.operations)  # in whichever slot
        group = ready.group(number, program.operations[op])
        naming = program.naming[op]
        comm = self._comms.get((job, group.ranks, naming))
        if comm is None:
            lowest = self._tables.program(job, min(group.ranks))
            comm = self._add(job, group, naming, *self._operations(lowest, naming))
        members = self._columns.members
        ranks = np.array(group.ranks)
        ref0 = self._columns.ranks["ref0"][self._tables.rank0[job] + ranks]
        program_of = ready.info.workload.program_of[ranks]
        # For all members at once: the compiled loop stops for a group that it does not know, and would do so
        # for each of them.
        for of in np.unique(program_of).tolist():
            position = np.flatnonzero(program_of == of)
            table = self._tables.program_of_job(job, of)
            for ref, (one, said) in enumerate(table.groups):
                if said == naming and (one.ranks is None or one.ranks == group.ranks):
                    members["comm"][ref0[position] + ref] = comm.number
                    members["position"][ref0[position] + ref] = position

    def driven(self, job: int, ranks: tuple[int, ...]) -> int:
        """The number of a group of a driven job.

        Raises
        ------
        WorkloadError
            Ranks that are beyond the job's, or come twice.
        """
        known = self._comms.get((job, ranks, ranks))
        if known is None:
            known = self._add(job, self._tables.jobs[job].group_of(ranks), ranks, 0, 0)
        return known.number

    def _add(self, job: int, group: Group, naming: Naming, op0: int, ops: int) -> Comm:
        columns = self._columns
        made = np.zeros(1, record("comm"))
        first = self._tables.rank0[job]
        made["rank0"] = columns.append("comm_ranks", np.array(group.ranks, np.int32) + np.int32(first))
        made["size"], made["open"] = len(group.ranks), NONE
        made["op0"], made["ops"] = op0, ops
        key = job, group.ranks
        if key not in self._groups:
            self._groups[key] = columns.append("groups", np.array([(0, NONE)], record("comm_group")))
        made["group"] = self._groups[key]
        comm = Comm(columns.append("comms", made), job, group, naming)
        self._comms[job, group.ranks, naming] = comm
        self.comms.append(comm)
        return comm

    def _operations(self, table: ProgramTable, naming: Naming) -> tuple[int, int]:
        """Where the numbers of a program's collectives on a group are, and how many."""
        known = self._numbers.get((table.number, naming))
        if known is None:
            mine = [op for (name, _), op in table.program.collective.items() if name == naming]
            first = self._columns.append("numbers", np.array(mine, np.int32))
            known = self._numbers[table.number, naming] = first, len(mine)
        return known

    # -- plans ---------------------------------------------------------------------------------------

    def turn(self, rank: int, op: int) -> int:
        """At which turn the group of a rank's collective is."""
        columns = self._columns
        row = columns.ranks[rank]
        one = columns.ops[columns.programs["op0"][row["program"]] + op]
        comm = int(columns.members["comm"][row["ref0"] + one["ref"]])
        group = columns.groups[int(columns.comms["group"][comm])]
        iteration = int(columns.slots["iteration"][row["slot0"] + one["slot"]])
        return int(group["turn"]) if group["iteration"] == iteration else 0

    def plan(self, rank: int, op: int, turn: int) -> None:
        """Make the plan of a rank's collective, at its group's turn.

        Raises
        ------
        WorkloadError
            There is no such collective.
        AlgorithmError
            As the planner says.
        """
        columns = self._columns
        row = columns.ranks[rank]
        job, number = int(row["job"]), int(row["number"])
        one = columns.ops[columns.programs["op0"][row["program"]] + op]
        comm = self.comms[int(columns.members["comm"][row["ref0"] + one["ref"]])]
        operation = self._tables.jobs[job].program(number).operations[int(one["number"])]
        algorithm = self._tables.algorithms.get(int(one["what"]), "")
        plan = self._plans.whole(operation, comm.group, self._turn_of[turn], algorithm)
        made = self._bind(comm, Planned(plan, self._plans.simulated(plan, comm.group)))
        what = int(one["what"])
        if max(comm.number >> kernel.COMM_BITS, what >> kernel.WHAT_BITS, turn >> kernel.TURN_BITS):
            raise SimulationError(
                f"{comm.number} groups, {what} kinds of collectives, {turn} turns: too many"
            )
        kernel.add_plan(self._columns, comm.number, what, turn, made)

    def count_carried(self, met: int, messages: int) -> None:
        """A collective that code carried sent so many messages."""
        self.planned[int(self._columns.rendezvous["plan"][met])].carried.append(messages)

    def _bind(self, comm: Comm, planned: Planned) -> int:
        """Write a plan on a group into the columns; its number."""
        columns, plan = self._columns, planned.simulated
        phases = len(plan.chunks[0]) if plan.chunks else 0
        made = np.zeros(1, record("plan"))
        parts = np.zeros(len(plan.chunks) * phases, record("part"))
        instances = 0
        for number, phase in enumerate(phase for chunk in plan.chunks for phase in chunk):
            part = parts[number]
            part["where0"], position0 = self._place(phase, plan.num_ranks)
            part["queue"], part["instance0"] = phase.queue, instances
            part["sub0"] = self._subs(comm, phase, position0)
            instances += len(phase.groups)
        count, ranks, queues = len(parts), plan.num_ranks, plan.num_queues
        # As `engine_chunks.c` lays a rendezvous out; a plan of one part has no queues, and most have one.
        words = 2 * ranks + instances
        if count > 1:
            words += queues + queues * count + count + 2 * ranks * queues + ranks * count
        made["ranks"], made["chunks"], made["phases"] = ranks, len(plan.chunks), phases
        made["active"], made["queues"], made["instances"] = plan.active, queues, instances
        made["part0"] = columns.append("parts", parts)
        made["free"], made["words"] = NONE, words
        made["carried"] = plan.carrier is not None
        if self.carries:  # who else asks looks at the records
            made["messages"] = planned.plan.num_messages
        if plan.carrier is not None and not self.carries:
            raise SimulationError(f"{plan.algorithm} is carried by a process, which this replay has none of")
        turn = planned.plan.turn
        if turn not in self._turns:
            self._turns[turn] = len(self._turn_of)
            self._turn_of.append(turn)
        made["turn"] = self._turns[turn]
        self.planned.append(planned)
        return columns.append("plans", made)

    def _place(self, phase: Phase, num_ranks: int) -> tuple[int, int]:
        """Where a phase's places by position are, and its positions by sub-group and place."""
        known = self._places.get(id(phase.groups))
        if known is None:
            where = np.zeros(num_ranks, record("where"))
            for number, members in enumerate(phase.groups):
                where["sub"][members], where["place"][members] = number, np.arange(len(members))
            known = (
                phase.groups,  # kept, and so its id
                self._columns.append("where", where),
                self._columns.append("positions", phase.groups.ravel().astype(np.int32)),
            )
            self._places[id(phase.groups)] = known
        return known[1:]

    def _subs(self, comm: Comm, phase: Phase, position0: int) -> int:
        """A phase's sub-groups on a group: the number of the first."""
        subs = np.zeros(len(phase.groups), record("sub_group"))
        ranks = np.array(comm.group.ranks)
        for number, (members, all_of) in enumerate(zip(phase.groups, phase.participants, strict=True)):
            sub = subs[number]
            sub["position0"], sub["size"] = position0 + number * len(members), len(members)
            sub["lowest"] = int(ranks[members].min())
            sub["binding"] = self._bound_to(phase.template, comm.group.endpoints[all_of], comm.job)
        return self._columns.append("subs", subs)

    def _bound_to(self, template: Template, endpoints: I32, job: int) -> int:
        """A template's flows on endpoints; there once."""
        key = id(template), job, endpoints.tobytes()
        known = self._bound.get(key)
        if known is not None:
            return known
        number = self._bound[key] = self._bind_table(
            self._table(template), endpoints, job, template.exit_base
        )
        return number

    def bind_access(self, rank: int, op: int) -> None:
        """Find the flows of a rank's access to its memory node, or of its computation."""
        columns = self._columns
        row = columns.ranks[rank]
        job, number = int(row["job"]), int(row["number"])
        one = columns.ops[columns.programs["op0"][row["program"]] + op]
        operation = self._tables.program(job, number).program.operations[int(one["number"])]
        info = self._tables.jobs[job].info
        what = operation.access, int(one["size"])
        table = self._accesses.get(what)
        if table is None:
            from cosim.engine.accesses import access_table, computation_table

            nodes = info.memory_nodes if operation.access else None
            table = access_table(*what, nodes) if nodes is not None else computation_table(what[1])
            self._accesses[what] = table
        ends = [int(info.endpoints[number])]
        if operation.access and info.memory_nodes is not None:
            ends.append(int(info.memory_nodes.node[ends[0]]))
        bound = self._bind_table(table, np.array(ends, np.int32), job, len(ends) - 1)
        self._columns.ports["binding"][row["port0"] + one["ref"]] = bound

    def _bind_table(self, table: FlowTable, endpoints: I32, job: int, react_from: int) -> int:
        """A flow table on endpoints; the engine waits for its flows from ``react_from`` on."""
        made = np.zeros(1, record("binding"))
        made["flows"], made["react_from"] = table.num_flows, react_from
        made["info"] = self._flow_log.bind(table, endpoints)
        made["block"], made["blocks"] = self._flow_log.blocks(table), len(table.block_repeat)
        made["table"] = NONE
        number = self._columns.append("bindings", made)
        self.bindings[number] = bound = BoundTable(table, endpoints, job)
        if self.on_bind is not None:
            self.on_bind(number, bound)
        return number

    def _table(self, template: Template) -> FlowTable:
        known = self._flow_tables.get(id(template))
        if known is not None:
            return known[1]
        table = flow_table_of(template)
        self._flow_tables[id(template)] = (template, table)
        return table
