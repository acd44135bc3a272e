"""A Mamba-2 layer's mixer on one rank: the kernels of ``mamba_ssm``, forward and backward.

As Megatron-Core's ``MambaMixer`` trains (``use_mamba_mem_eff_path``): ``mamba_split_conv1d_scan_combined`` of
``mamba_ssm`` (Dao and Gu, arXiv 2405.21060; github.com/state-spaces/mamba, Apache-2.0), then a grouped RMS
norm. The causal convolution is one kernel; the scan are those of ``ssd_combined.py``: time steps summed
within chunks, each chunk's state from its inputs (kept in fp32), states passed from chunk to chunk, C times
B, and what both make of the inputs, with the gate. Backward runs convolution and states again, nothing of
them having been kept, and goes back in twelve kernels and torch's sums of what they leave. Of more than one
sequence what goes in and comes out is copied, Megatron-Core's order being the other one.

Heads and groups are shared among tensor-parallel ranks, as Megatron-Core shares them: product in by columns,
product out by rows, everything between on a rank's own heads.

A kernel moves each operand and result once; C times B, which is causal, is read half. Several heads of a
group read it one after the other, from the cache. Not modelled: partial sums of the gradients of B and C
where there are fewer programs than multiprocessors, exponentials.

Serving: reading a prompt runs forward's kernels (Megatron-Core copies more there). A token reads and writes
the states of its sequence in one kernel after the convolution's (``selective_state_update``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cosim.gpu.kernels import Kernel, memory, scan
from cosim.models.catalogue.cut import Cut
from cosim.models.catalogue.mamba import STATE_BYTES, Mamba

_FP32 = 4


@dataclass(frozen=True, slots=True)
class MambaLayer:
    """The mixer between its products, on a rank of a cut."""

    mamba: Mamba
    cut: Cut

    # -- numbers on this rank --------------------------------------------------------------------------

    @property
    def inner(self) -> int:
        """Channels of this rank's heads: what goes into the product out."""
        return self.mamba.inner // self.cut.parallel.tp

    @property
    def projected(self) -> int:
        """Columns of this rank's part of the product in."""
        return self.mamba.projected // self.cut.parallel.tp

    @property
    def _numbers(self) -> int:
        return self.cut.tokens * self.inner

    @property
    def _convolved(self) -> int:
        return self.cut.tokens * self.mamba.convolved // self.cut.parallel.tp

    @property
    def _steps(self) -> int:
        """Time steps: one for each token and head."""
        return self.cut.tokens * self.mamba.heads // self.cut.parallel.tp

    @property
    def _shared(self) -> int:
        """Numbers of B, or of C: what the heads of a group have in common."""
        return self.cut.tokens * self.mamba.groups * self.mamba.state // self.cut.parallel.tp

    @property
    def _products(self) -> int:
        """Numbers of C times B within chunks."""
        return self.cut.tokens * self.mamba.chunk * self.mamba.groups // self.cut.parallel.tp

    @property
    def _states(self) -> int:
        """States of all chunks."""
        chunks = self.cut.batch * -(-self.cut.sequence // self.mamba.chunk)
        return chunks * self.inner * self.mamba.state

    @property
    def _through_states(self) -> int:
        """FLOPs of making states of inputs, or of reading them."""
        return 2 * self._numbers * self.mamba.state

    @property
    def _within_chunks(self) -> int:
        """FLOPs between a chunk's tokens and those before them: half of all pairs."""
        return self._numbers * self.mamba.chunk

    # -- kernels ---------------------------------------------------------------------------------------

    def kernels(self) -> tuple[Kernel, ...]:
        """Between the products; the first ones bring back what all before the norm return."""
        if self.cut.decode:
            return self._token()
        width = self.cut.width
        norm = memory(
            2 * self._numbers * width, returned=(memory(3 * self._numbers * width, launches=2),)
        )  # of the weights' gradient, the sum
        first, *rest = self._forward()
        silent = (replace(one, returned=()) for one in rest)
        return (replace(first, returned=tuple(self._backward())), *silent, norm)

    def _forward(self) -> list[Kernel]:
        width = self.cut.width
        signs = memory(0, launches=4)  # decays and time steps' bias in fp32
        return [
            signs,
            *self._copied(self.projected),
            self._convolution(),
            *self._chunk_states(),
            memory(self._states * (_FP32 + width)),
            self._c_times_b(),
            scan(
                self._within_chunks + self._through_states,
                (4 * self._numbers + self._shared + self._states) * width
                + self._products * _FP32 // 2
                + 2 * self._steps * _FP32,
            ),
            *self._copied(self.inner),
        ]

    def _copied(self, columns: int) -> tuple[Kernel, ...]:
        """Sequence by sequence, or back; a single one lies right."""
        size = 2 * self.cut.tokens * columns * self.cut.width
        return (memory(size),) if self.cut.batch > 1 else ()

    def _convolution(self) -> Kernel:
        return memory(2 * self._convolved * self.cut.width)

    def _chunk_states(self) -> tuple[Kernel, Kernel]:
        """Time steps summed within chunks, and each chunk's state."""
        width = self.cut.width
        moved = (self._numbers + self._shared) * width + (2 * self._steps + self._states) * _FP32
        return memory(self._steps * (width + 2 * _FP32)), scan(self._through_states, moved)

    def _c_times_b(self) -> Kernel:
        moved = 2 * self._shared * self.cut.width + self._products * _FP32
        return scan(2 * self._shared * self.mamba.chunk, moved)

    def _backward(self) -> list[Kernel]:
        """In the order of ``_mamba_chunk_scan_combined_bwd``."""
        width, numbers, shared, steps = self.cut.width, self._numbers, self._shared, self._steps
        states, products = self._states, self._products
        through, within = self._through_states, self._within_chunks
        of_shared = scan(
            2 * shared * self.mamba.chunk, shared * (2 * width + _FP32) + products * _FP32
        )  # gradients of B and of C
        return [
            *self._copied(self.inner),
            self._convolution(),
            memory(2 * steps * width),
            *self._chunk_states(),
            self._c_times_b(),
            memory(2 * states * _FP32),
            memory(6 * numbers * width, launches=3),  # the gate, and D's gradient
            scan(through, (numbers + shared) * width + (steps + states) * _FP32),
            memory(2 * states * (_FP32 + width), launches=3),
            scan(
                through + within,
                (3 * numbers + shared + states) * width + (products // 2 + 3 * steps) * _FP32,
            ),
            memory(0, launches=5),
            scan(through, (numbers + shared + states) * width + (shared + 3 * steps) * _FP32),
            memory((2 * shared + 3 * steps) * _FP32, launches=3),
            scan(through, (numbers + shared + states) * width + (shared + 2 * steps) * _FP32),
            memory((2 * shared + steps) * _FP32, launches=2),
            scan(within, 2 * numbers * width + (products + 2 * steps) * _FP32),
            memory(2 * products * _FP32),
            of_shared,
            of_shared,
            memory(8 * steps * _FP32, launches=4),
            scan(within, 2 * numbers * width + (products // 2 + 6 * steps) * _FP32),
            memory(11 * steps * _FP32, launches=3),
            memory(4 * steps * _FP32, launches=3),
            memory(3 * self._convolved * width, launches=3),
            *self._copied(self.projected),
            memory(0, launches=6),
        ]

    def _token(self) -> tuple[Kernel, ...]:
        """A token of each sequence: its convolution, states read and written, the norm."""
        width = self.cut.width
        kept = self._convolved * self.mamba.conv * width
        states = 2 * self._numbers * self.mamba.state * STATE_BYTES
        return (
            memory(2 * kept),
            memory(states + (3 * self._numbers + 2 * self._shared) * width, launches=4),
            memory(2 * self._numbers * width),
        )

    # -- memory ----------------------------------------------------------------------------------------

    def activation_bytes(self) -> int:
        """Kept until backward: the product in, what the scan made, the norm's input and output."""
        return (self.cut.tokens * self.projected + 3 * self._numbers) * self.cut.width
