"""A transformer written in PyTorch's operators: its layers on one rank, cut by every parallelism.

As torchtitan and Hugging Face's transformers write Llama (Touvron et al., arXiv 2302.13971): projections of
their own for queries, keys and values, and for both halves of a gated MLP; GPT's with biases and dropout.
Backward is autograd's, by ``tape``. Full recomputation is ``torch.utils.checkpoint`` of each block, which
stops as soon as everything that backward needs is there: without the block's last product (from PyTorch 2.1
on; ``early_stop: false``: before). Selective is torchtitan's checkpointing by operator
(``create_selective_checkpoint_contexts``): results of every second product, of attention and of what is
scattered are saved, all else runs again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cosim.gpu.kernels import memory
from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.catalogue.blocks import Blocks
from cosim.models.catalogue.cut import FUSED, TP, Cut, Recompute
from cosim.models.frameworks import PyTorch
from cosim.models.parts import Layer, Weight
from cosim.models.pytorch.experts import mixture
from cosim.models.pytorch.operators import FP32, Operators
from cosim.models.pytorch.sharding import Sharded
from cosim.models.pytorch.tape import Tape, Tensor, pieces
from cosim.models.schedule import PARTED, Part


class EagerBlocks(Blocks):
    """Layers of a model on a rank of a cut; ``autocast``: weights are kept in fp32, and cast where used."""

    def __init__(self, model: TransformerModel, cut: Cut, framework: PyTorch, *, autocast: bool) -> None:
        super().__init__(model, cut)
        self.framework, self.autocast = framework, autocast

    def layer(self, number: int) -> Layer:
        """One block."""
        made = self.written(f"layer {number}")
        x = made.input()
        between = made.attention(x, made.norm(x, "attention norm"))
        inner = made.norm(between, "mlp norm")
        if self.model.experts is not None and self.model.has_experts(number):
            out = mixture(made, self.model.experts, between, inner)
        else:
            out = made.mlp(between, inner, self.model.ffn)
        return made.layer(out, again=self.again(number))

    def again(self, number: int) -> Recompute:
        """What backward runs again of a block: all of it, what isn't saved by operator, or nothing."""
        last_of_some = (number + 1) % self.framework.checkpoint_every == 0
        return self.cut.recompute if last_of_some and isinstance(self.cut.recompute, str) else "none"

    def written(self, name: str) -> Writer:
        """A block that is to be written."""
        return Writer(self, name)

    def embedding(self) -> Layer:
        """Tokens, and learned positions where the model has them."""
        made, m = Writer(self, "embedding"), self.model
        vocabulary = self.vocabulary
        table = made.weight("tokens", vocabulary // self.tp, m.hidden, made=vocabulary * m.hidden)
        tokens = (self.cut.batch, self.cut.sequence)
        out = made.split.embedding(made.at, tokens, table, vocabulary)
        if m.positions:
            positions = made.weight("positions", m.positions, m.hidden)
            where = made.at.embedding((1, out.shape[1]), positions)
            out = made.at.add(out, made.at.spread(where, out.shape[0]))
        if not m.final_norm:
            out = made.norm(out, "norm")
        if m.dropout:
            out = made.at.dropout(out)
        return made.layer(out)

    def head(self, *, copy: bool) -> Layer:
        """Last norm, logits and loss; ``copy``: a tied embedding that is on another stage."""
        made, m, framework = Writer(self, "head"), self.model, self.framework
        x = made.input()
        if m.final_norm:
            x = made.norm(x, "norm")
        whole = made.split.opened(x)
        summed = m.tied and not copy
        matrix = made.weight("output", self.vocabulary // self.tp, m.hidden, own=not summed)
        logits = made.at.linear(made.view(whole, (self.cut.tokens, m.hidden)), matrix)
        if not framework.vocabulary_parallel_loss:
            logits = made.split.whole_columns(logits)
        for _ in range(framework.metrics):
            made.tape.forward.extend(made.at.metric(logits))
        if framework.fused_loss:
            return made.layer(made.at.fused_cross_entropy(logits))
        if framework.fp32_logits:
            logits = made.at.cast(logits, FP32)
        at_once = framework.vocabulary_parallel_loss
        loss = made.split.cross_entropy(made.at, logits) if at_once else made.at.cross_entropy(logits)
        return made.layer(loss)


class Writer:
    """A layer being written: its tape, its parameters."""

    def __init__(self, blocks: EagerBlocks, name: str) -> None:
        self.blocks, self.name = blocks, name
        self.model, self.cut, self.framework = blocks.model, blocks.cut, blocks.framework
        self.tp = blocks.tp
        self.tape = Tape()
        self.at = Operators(self.tape, self.cut.width, blocks.autocast, self.cut.narrow)
        self.split = Sharded(self.tape, self.tp, self.cut.parallel.sequence_parallel)
        self.kept = FP32 if blocks.autocast else self.cut.width
        self.weights: list[Weight] = []

    def input(self) -> Tensor:
        """The hidden state, in the type of the residual stream (autocast: fp32, the embedding's)."""
        own = self.cut.sequence // (self.tp if self.cut.parallel.sequence_parallel else 1)
        return Tensor((self.cut.batch, own, self.model.hidden), self.kept)

    def weight(
        self, name: str, *shape: int, summed: tuple[str, ...] = (), expert: bool = False, own: bool = True,
        made: int = 0, copied: bool = False,
    ) -> Tensor:  # fmt: skip
        """A parameter of that shape on this rank; not ``own``: another layer has it."""
        tensor = Tensor(shape, self.kept, parameter=True)
        weight = Weight(f"{self.name} {name}", shape[0], tensor.count, summed, expert, made, copied)
        if own:
            self.weights.append(weight)
            tensor.weight = weight
        return tensor

    def view(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The same numbers."""
        out = Tensor(shape, x.width, base=x.base or x)
        return self.tape.run((), out, (x,), lambda _: (), keeps=False)

    def norm(self, x: Tensor, name: str) -> Tensor:
        """RMS or layer norm."""
        shared = TP if self.cut.parallel.sequence_parallel and self.tp > 1 else ()
        weight = self.weight(name, self.model.hidden, summed=shared)
        if self.model.norm == "layer":
            return self.at.layer_norm(
                x, weight, self.weight(f"{name} bias", self.model.hidden, summed=shared)
            )
        if self.framework.norm == "written":
            return self.at.written_rms_norm(x, weight)
        return self.at.rms_norm(x, weight)

    def linear(self, name: str, x: Tensor, columns: int) -> Tensor:
        """A linear layer of that many columns on this rank."""
        weight = self.weight(name, columns, x.shape[-1])
        bias = self.weight(f"{name} bias", columns) if self.model.biases else None
        return self.at.linear(x, weight, bias, recipe=name != "router")

    def columns(self, x: Tensor, wanted: Iterable[tuple[str, int]]) -> Iterator[Tensor]:
        """Linear layers that all read ``x``, each of so many columns on this rank, as they are asked for."""
        whole = self.split.opened(x)
        for name, columns in wanted:
            yield self.linear(name, whole, columns)

    def rows(self, name: str, x: Tensor, columns: int) -> Tensor:
        """A linear layer whose rows are split, summed over the ranks."""
        return self.split.closed(self.linear(name, x, columns))

    def residual(self, x: Tensor, change: Tensor) -> Tensor:
        """Dropped out, and added."""
        return self.at.add(x, self.at.dropout(change) if self.model.dropout else change)

    def mlp(self, x: Tensor, inner: Tensor, ffn: int) -> Tensor:
        """An MLP, and the residual."""
        return self.residual(x, self.dense("mlp", inner, ffn))

    def dense(self, name: str, x: Tensor, ffn: int) -> Tensor:
        """An MLP, each rank with its columns."""
        parts = ("gate", "up") if self.model.gated else ("up",)
        made = self.columns(x, [(f"{name} {part}", ffn // self.tp) for part in parts])
        wide = self.at.activation(next(made))
        if self.model.gated:
            wide = self.at.multiply(wide, next(made))
        return self.rows(f"{name} down", wide, self.model.hidden)

    def attention(self, x: Tensor, inner: Tensor) -> Tensor:
        """Queries, keys, values, what they choose, projection, residual."""
        m, cut = self.model, self.cut
        heads, kv = m.heads // self.tp, max(m.kv // self.tp, 1)
        counts = {"queries": heads, "keys": kv, "values": kv}
        wanted = [(name, count * m.head) for name, count in counts.items()]
        fused = self.framework.fused_qkv
        made = self._by_one_matrix(inner, wanted) if fused else self.columns(inner, wanted)
        q, k, v = (
            self.view(each, (cut.batch, count, cut.sequence, m.head))
            for each, count in zip(made, counts.values(), strict=True)
        )
        if m.head_norms:
            q, k = (self._normed(each, name) for each, name in ((q, "queries"), (k, "keys")))
        if not m.positions and self.framework.rotary != "none":
            q, k = self._rotated(q), self._rotated(k)
        if heads > kv and (self.framework.repeat_kv or cut.attention == "unfused"):
            k, v = (self.at.repeated(each, heads // kv) for each in (k, v))
        if self.framework.unpadded:
            self.tape.forward.append(memory(cut.tokens))  # the mask
            q, k, v = (self._unpadded(each) for each in (q, k, v))
        chosen = (
            self.at.attention(q, k, v, causal=m.causal, version=FUSED[cut.attention])
            if cut.attention in FUSED
            else self._unfused(q, k, v)
        )
        out = self.view(chosen, (cut.batch, cut.sequence, heads * m.head))
        if self.framework.unpadded:
            out = self.at.padded(out)
        return self.residual(x, self.rows("projection", out, m.hidden))

    def _by_one_matrix(self, x: Tensor, wanted: Sequence[tuple[str, int]]) -> Iterable[Tensor]:
        """What linear layers would make, as parts of what one makes."""
        names, columns = zip(*wanted, strict=True)
        (whole,) = self.columns(x, [(", ".join(names), sum(columns))])
        return self.at.split(whole, *columns)

    def _unpadded(self, x: Tensor) -> Tensor:
        """Attention of [batch, heads, tokens, head]."""
        batch, heads, tokens, head = x.shape
        rows = self.at.unpadded(self.view(x, (batch, tokens, heads * head)))
        return self.view(rows, x.shape)

    def _normed(self, x: Tensor, name: str) -> Tensor:
        """Each head; its ranks have heads of their own and the same weight."""
        weight = self.weight(f"{name} norm", self.model.head, summed=TP if self.tp > 1 else ())
        written = self.framework.norm == "written"
        return self.at.written_rms_norm(x, weight) if written else self.at.rms_norm(x, weight)

    def _rotated(self, x: Tensor) -> Tensor:
        if self.framework.rotary == "complex":
            return self.at.rotated_complex(x)
        framework = self.framework
        narrow = framework.rotary_tables == "dtype"
        return self.at.rotated_halves(x, sliced=framework.rotary == "sliced", narrow=narrow)

    def _unfused(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Scores, scale, mask, softmax in fp32, product: each its own kernel."""
        at = self.at
        turned = self.view(k, (*k.shape[:-2], k.shape[-1], k.shape[-2]))
        scores = at.scale(at.product(q, turned))
        mask = Tensor((1, 1, *scores.shape[-2:]), scores.width, grad=False)
        weights = at.cast(at.softmax(at.masked(scores, mask), FP32), self.cut.width)
        if self.model.dropout:
            weights = at.dropout(weights)
        return at.copy(at.product(weights, v))

    def layer(self, out: Tensor, *, again: Recompute = "none") -> Layer:
        """What was written, both ways."""
        dense = sum(weight.count for weight in self.weights if not weight.expert)
        experts = sum(weight.count for weight in self.weights if weight.expert)
        whole, some = self.tape.kept if self.framework.early_stop else (None, None)
        events = {"none": [], "full": self.tape.forward[:whole], "selective": self.tape.again[:some]}[again]
        parted = self.cut.parallel.schedule in PARTED
        parts: tuple[Part, Part] = ("inputs", "weights")
        state = self.input().size_bytes
        keeps = {"none": self.tape.held_bytes, "full": state, "selective": state + self.tape.saved}
        inputs, weights = (
            pieces(self.name, self.tape.backward(out, part=part)) if parted else () for part in parts
        )
        return Layer(
            self.name,
            pieces(self.name, self.tape.forward),
            pieces(self.name, self.tape.backward(out)),
            pieces(self.name, events),
            self.blocks.sharded(dense, experts),
            self.blocks.own_experts(experts),
            tuple(self.weights),
            backward_inputs=inputs,
            backward_weights=weights,
            keeps=keeps[again],
            most=self.tape.most_bytes(out),
        )
