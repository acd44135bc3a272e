"""The queue: jobs that wait until enough endpoints are free."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cosim.spec import Spec


class Queue(Spec):
    """Jobs wait until their placement finds enough free endpoints, and give them back at their end

    Not modelled: jobs that are taken off their endpoints again, and reservations: with ``backfill`` a large
    job may wait for as long as smaller ones come.
    """

    order: Literal["fifo"] = Field("fifo", description="who is first: fifo, whoever came first")
    backfill: bool = Field(
        False, description="a job that fits starts before one that waits, though it came later"
    )
