"""DiT: the shared transformer over the patches of a noisy picture, conditioned on time and
condition."""

from dataclasses import field

from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import UsageError, config
from recombine.nets.conditioning import ConditionEmbedding, Conditioning
from recombine.nets.net_config import NetConfig, Shape
from recombine.nets.patches import to_grid, to_tokens
from recombine.nets.transformer import Transformer, TransformerConfig, waves
from recombine.worlds.factors import Condition, FactorSpace

TIME_WAVES = 256


@config("net/dit")
class DiTConfig(NetConfig):
    transformer: TransformerConfig = field(default_factory=TransformerConfig)
    patch: int = 4

    def __post_init__(self) -> None:
        if self.patch <= 0:
            raise ValueError(f"patch must be positive, not {self.patch}")

    def check(self, shape: Shape) -> None:
        if shape[1] % self.patch or shape[2] % self.patch:
            raise UsageError(f"patch {self.patch} does not divide a grid of {shape[1]}x{shape[2]}")

    def grid(self, shape: Shape) -> tuple[int, int]:
        """Rows and columns of tokens."""
        self.check(shape)
        return shape[1] // self.patch, shape[2] // self.patch

    def build(self, conditioning: Conditioning, shape: Shape, space: FactorSpace) -> "DiT":
        return DiT(self, conditioning, shape, space)


class DiT(nn.Module):
    """(noisy picture, time, condition) -> something of the picture's shape. Starts at exactly
    zero."""

    def __init__(
        self, config: DiTConfig, conditioning: Conditioning, shape: Shape, space: FactorSpace
    ):
        super().__init__()
        self.patch, self.grid = config.patch, config.grid(shape)
        dim, d = shape[0] * config.patch**2, config.transformer.width
        self.time = nn.Sequential(nn.Linear(TIME_WAVES, d), nn.SiLU(), nn.Linear(d, d))
        self.condition = ConditionEmbedding(space, conditioning, d)
        self.enter = nn.Linear(dim, d)
        self.prefix = len(space.factors) if conditioning.enters == "tokens" else 0
        self.trunk = Transformer(config.transformer, self.grid, self.prefix)
        self.leave = nn.Linear(d, dim)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: Condition
    ) -> Float[Tensor, "b c h w"]:
        time = self.time(waves(1000 * t, TIME_WAVES))
        entered = self.enter(to_tokens(x, self.patch))
        if self.prefix:  # the time modulates all the same
            tokens = self.trunk(entered, time, self.condition.tokens(condition))
        else:
            tokens = self.trunk(entered, time + self.condition(condition))
        return to_grid(self.leave(tokens), self.patch, self.grid[0])
