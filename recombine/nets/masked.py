"""The shared transformer over the tokens of a latent, some of them hidden: tokens in, a hidden
vector per token out. What the hidden vectors say about the tokens is the head's business (MaskGIT,
GIVT and MAR differ in nothing else)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from recombine.nets.conditioning import ConditionEmbedding, Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.net_config import Shape
from recombine.nets.patches import to_grid, to_tokens
from recombine.nets.transformer import Transformer
from recombine.worlds.factors import Condition, FactorSpace


class MaskedNet(nn.Module):
    """`head` holds the weights behind the head. `predicted` layers get a small predictor each,
    from a block's tokens to what the same block would say if it saw everything (see
    objectives/jepa.py)."""

    def __init__(
        self,
        config: DiTConfig,
        conditioning: Conditioning,
        shape: Shape,
        space: FactorSpace,
        head: nn.Module,
        predicted: tuple[int, ...] = (),
    ):
        super().__init__()
        self.patch, self.grid = config.patch, config.grid(shape)
        d = config.transformer.width
        self.condition = ConditionEmbedding(space, conditioning, d)
        self.enter = nn.Linear(shape[0] * config.patch**2, d)
        self.hidden = nn.Parameter(0.02 * torch.randn(d))
        by_tokens = conditioning.enters == "tokens"
        self.prefix = len(space.factors) if by_tokens else 0
        self.trunk = Transformer(config.transformer, self.grid, self.prefix, not by_tokens)
        self.head = head
        self.predictors = nn.ModuleDict({str(i): predictor(d) for i in predicted})

    def tokens(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b l p"]:
        return to_tokens(x, self.patch)

    def latent(self, tokens: Float[Tensor, "b l p"]) -> Float[Tensor, "b c h w"]:
        return to_grid(tokens, self.patch, self.grid[0])

    def forward(
        self, tokens: Float[Tensor, "b l p"], mask: Bool[Tensor, "b l"], condition: Condition
    ) -> Float[Tensor, "b l d"]:
        """`mask` is True where a token is hidden."""
        return self.trace(tokens, mask, condition)[0]

    def trace(
        self, tokens: Float[Tensor, "b l p"], mask: Bool[Tensor, "b l"], condition: Condition
    ) -> tuple[Float[Tensor, "b l d"], list[Float[Tensor, "b l d"]]]:
        """The hidden vectors, and the tokens as each block left them."""
        entered = self.enter(tokens)
        entered = torch.where(mask[..., None], self.hidden.to(entered.dtype), entered)
        if self.prefix:
            return self.trunk.trace(entered, prefix=self.condition.tokens(condition))
        return self.trunk.trace(entered, self.condition(condition))


def predictor(width: int) -> nn.Module:
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)
    )
