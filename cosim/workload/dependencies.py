"""Order and cycles in the dependencies of one program's operations."""

from __future__ import annotations

from collections.abc import Sequence


def topological_order(deps: Sequence[Sequence[int]]) -> list[int]:
    """Numbers, each after those in its ``deps``; numbers on or behind a cycle are left out.

    ``deps[i]`` are numbers in ``range(len(deps))``, without repetition. O(operations + dependencies).
    """
    missing = [len(before) for before in deps]
    after: list[list[int]] = [[] for _ in deps]
    for number, before in enumerate(deps):
        for other in before:
            after[other].append(number)
    order = [number for number, count in enumerate(missing) if count == 0]
    for number in order:  # grows while it is read
        for other in after[number]:
            missing[other] -= 1
            if missing[other] == 0:
                order.append(other)
    return order


def find_cycle(deps: Sequence[Sequence[int]]) -> list[int]:
    """One cycle, each number waiting for the next and the last for the first; empty where there is none."""
    placed = set(topological_order(deps))
    start = next((number for number in range(len(deps)) if number not in placed), None)
    if start is None:
        return []
    # What isn't placed waits for something that isn't placed either: follow that until a number repeats.
    seen: dict[int, int] = {}
    path: list[int] = []
    number = start
    while number not in seen:
        seen[number] = len(path)
        path.append(number)
        number = next(other for other in deps[number] if other not in placed)
    return path[seen[number] :]
