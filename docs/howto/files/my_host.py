"""A host by one decode step: how long it took, and the operators in it."""

from pydantic import Field

from cosim.plugins import Host, HostSpec, TimePs


class Timed(HostSpec):
    """What issues operators as fast as in a step that was timed, when the GPU waited for it"""

    step: TimePs = Field(ge=0, description="what the step took")
    operators: int = Field(ge=1, description="how many it issued: `cosim profile` counts them")

    def build(self, context):
        return Host(name="timed", operator_time=f"{self.step // self.operators}ps", source="our own step")
