"""DiT: the house's transformer over the patches of a noisy picture, told the time and the condition."""

from dataclasses import dataclass, field

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import UsageError
from recombine.nets.conditioning import ConditionEmbedding, Conditioning
from recombine.nets.transformer import Transformer, TransformerConfig, waves
from recombine.worlds.factors import Condition, FactorSpace

TIME_WAVES = 256


@dataclass(frozen=True)
class DiTConfig:
    transformer: TransformerConfig = field(default_factory=TransformerConfig)
    patch: int = 4

    def __post_init__(self) -> None:
        if self.patch <= 0:
            raise ValueError(f"patch must be positive, not {self.patch}")

    def check(self, shape: tuple[int, int, int]) -> None:
        if shape[1] % self.patch or shape[2] % self.patch:
            raise UsageError(f"patch {self.patch} does not divide a picture of {shape[1]}x{shape[2]}")


class DiT(nn.Module):
    """(noisy picture, time, condition) -> something of the picture's shape. Starts at exactly zero."""

    def __init__(self, config: DiTConfig, conditioning: Conditioning, shape: tuple[int, int, int], space: FactorSpace):
        super().__init__()
        channels, height, width = shape
        config.check(shape)
        self.patch, self.grid = config.patch, (height // config.patch, width // config.patch)
        dim, d = channels * config.patch**2, config.transformer.width
        self.time = nn.Sequential(nn.Linear(TIME_WAVES, d), nn.SiLU(), nn.Linear(d, d))
        self.condition = ConditionEmbedding(space, conditioning, d)
        self.enter = nn.Linear(dim, d)
        self.trunk = Transformer(config.transformer, self.grid)
        self.leave = nn.Linear(d, dim)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: Condition
    ) -> Float[Tensor, "b c h w"]:
        p, (rows, cols) = self.patch, self.grid
        c = self.time(waves(1000 * t, TIME_WAVES)) + self.condition(condition)
        tokens = rearrange(x, "b c (h p) (w q) -> b (h w) (c p q)", p=p, q=p)
        tokens = self.leave(self.trunk(self.enter(tokens), c))
        return rearrange(tokens, "b (h w) (c p q) -> b c (h p) (w q)", h=rows, w=cols, p=p, q=p)
