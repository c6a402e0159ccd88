"""The same network and step as the house's, written the plain way: one modulation layer per block,
eager execution under autocast, default AdamW, a Python loop for the moving average. What `step.py`
compares with."""

import torch
import torch.nn.functional as F
from torch import nn


class PlainBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))
        nn.init.zeros_(self.ada[1].weight)
        nn.init.zeros_(self.ada[1].bias)

    def attention(self, x):
        b, l, d = x.shape
        q, k, v = self.qkv(x).reshape(b, l, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, l, d))

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.ada(c)[:, None].chunk(6, dim=-1)
        x = x + gate1 * self.attention(self.norm1(x) * (1 + scale1) + shift1)
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class PlainDiT(nn.Module):
    def __init__(self, depth, width, heads, length, dim):
        super().__init__()
        self.enter = nn.Linear(dim, width)
        self.position = nn.Parameter(0.02 * torch.randn(1, length, width))
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.label = nn.Linear(3, width)
        self.blocks = nn.ModuleList(PlainBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))
        self.leave = nn.Linear(width, dim)

    def forward(self, x, t, label):
        frequency = torch.exp(-9.21 * torch.arange(128, device=x.device) / 128)
        angle = 1000 * t[:, None] * frequency
        c = self.time(torch.cat([angle.sin(), angle.cos()], -1)) + self.label(label)
        x = self.enter(x) + self.position
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.ada(c)[:, None].chunk(2, dim=-1)
        return self.leave(self.norm(x) * (1 + scale) + shift)


class PlainStep:
    """Forward, backward, clipping, AdamW, moving average."""

    def __init__(self, net, device):
        self.net, self.device = net.to(device), device
        self.ema = [p.detach().clone() for p in net.parameters()]
        self.optimizer = torch.optim.AdamW(
            net.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=0.0
        )

    def __call__(self, x, label):
        t, noise = torch.rand(len(x), device=x.device), torch.randn_like(x)
        time = t[:, None, None]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            answer = self.net((1 - time) * x + time * noise, t, label)
            loss = F.mse_loss(answer.float(), noise - x)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        with torch.no_grad():
            for average, p in zip(self.ema, self.net.parameters(), strict=True):
                average.mul_(0.999).add_(p, alpha=0.001)
        return loss
