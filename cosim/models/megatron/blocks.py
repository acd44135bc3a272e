"""A GPT's layers as Megatron-LM's local specification has them, on one tensor-parallel rank."""

from __future__ import annotations

from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.catalogue.cut import Cut
from cosim.models.frameworks import PyTorch
from cosim.models.megatron.operators import LocalOperators
from cosim.models.parts import Layer
from cosim.models.pytorch.blocks import EagerBlocks, Writer
from cosim.models.pytorch.operators import FP32
from cosim.models.pytorch.tape import Tensor


class LocalBlocks(EagerBlocks):
    """Layers of a model on a rank of a cut."""

    def __init__(self, model: TransformerModel, cut: Cut) -> None:
        super().__init__(model, cut, PyTorch(), autocast=False)

    @property
    def mlp_tensors(self) -> int:
        """What GeLU reads and makes."""
        return 2

    @property
    def logits_bytes(self) -> int:
        """As the product makes them, converted, and their log-softmax."""
        return self.cut.tokens * self.vocabulary // self.tp * (self.cut.width + 2 * FP32)

    def layer(self, number: int) -> Layer:
        """Attention and MLP, each with its norm before and its residual after."""
        made = LocalWriter(self, f"layer {number}")
        x = made.input()
        chosen = made.attended(made.norm(x, "attention norm"), given=not self._between(number))
        x = made.closed("projection", chosen, x)
        x = made.closed("mlp", made.widened(made.norm(x, "mlp norm")), x)
        return made.layer(x)

    def _between(self, number: int) -> bool:
        """Whether a layer is on a stage that has no batch: neither the first nor the last."""
        counts = self.cut.parallel.layers_of_parts(self.model.layers)
        return len(counts) > 2 and counts[0] <= number < self.model.layers - counts[-1]

    def embedding(self) -> Layer:
        """Tokens and learned positions; put tokens first; dropout."""
        made, m, cut = LocalWriter(self, "embedding"), self.model, self.cut
        table = made.weight("tokens", self.vocabulary // self.tp, m.hidden)
        tokens = (cut.batch, cut.sequence)
        shared = m.tied and cut.parallel.pp == 1
        words = made.split.closed(made.local.words(tokens, table, also=table.size_bytes if shared else 0))
        positions = made.local.embedding(tokens, made.weight("positions", m.positions, m.hidden))
        out = made.local.add(words, positions)
        if cut.batch > 1:
            out = made.local.copy(out, back=False)
        return made.layer(made.local.dropout(out) if m.dropout else out)

    def head(self, *, copy: bool) -> Layer:
        """Last norm, logits, loss; ``copy``: a tied embedding that is on another stage."""
        made, m = LocalWriter(self, "head"), self.model
        own = copy or not m.tied
        matrix = made.weight("output", self.vocabulary // self.tp, m.hidden, own=own, copied=copy)
        logits = made.local.added(made.norm(made.input(), "norm"), matrix)
        return made.layer(made.local.loss(logits, self.cut.batch))


class LocalWriter(Writer):
    """A layer being written."""

    def __init__(self, blocks: LocalBlocks, name: str) -> None:
        super().__init__(blocks, name)
        self.local = LocalOperators(self.tape, self.cut.width, tp=self.tp)

    def attended(self, x: Tensor, *, given: bool) -> Tensor:
        """Queries, keys and values by one product, and what they choose; ``given``: the batch's masks."""
        m, cut = self.model, self.cut
        heads, columns = m.heads // self.tp, 3 * m.heads * m.head // self.tp
        weight = self.weight("query, key, value", columns, m.hidden)
        joined = self.local.added(x, weight, self.weight("query, key, value bias", columns))
        q, masks = (cut.batch * heads, cut.sequence, m.head), cut.batch if given else 0
        chosen = self.local.chosen(joined, q, masks=masks, dropout=m.dropout)
        return self.view(chosen, (cut.batch, cut.sequence, heads * m.head))

    def widened(self, x: Tensor) -> Tensor:
        """Up, and GeLU."""
        own = self.model.ffn // self.tp
        wide = self.local.added(x, self.weight("mlp up", own, self.model.hidden))
        return self.local.gelu(wide, self.weight("mlp up bias", own))

    def closed(self, name: str, x: Tensor, residual: Tensor) -> Tensor:
        """A product by rows, its parts summed over the ranks, and the residual."""
        hidden = self.model.hidden
        weight = self.weight(f"{name} down", hidden, x.shape[-1])
        out = self.split.closed(self.local.added(x, weight, summed=False))
        bias = self.weight(f"{name} bias", hidden)
        return self.local.residual(out, bias, residual, dropout=self.model.dropout)
