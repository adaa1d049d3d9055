"""The projection of the MNIST-from-scratch notebook, in which each head sees only its own slice of the token."""

import torch
from torch import Tensor, nn

from vit_demo.model.config import ViTConfig


class PerHeadQKV(nn.Module):
    """Maps to q, k and v, one per head, each from and to that head's slice of the token."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        heads, d = config.num_heads, config.head_dim
        bound = d**-0.5  # as torch.nn.Linear starts
        self.weight = nn.Parameter(torch.empty(3, heads, d, d).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(3, heads, d).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Tokens ``[B, N, D]`` to ``[B, N, 3 * D]``, in the layout of a fused q, k, v map."""
        heads, d = self.bias.shape[1:]
        x = x.unflatten(2, (heads, d))  # [B, N, H, d]
        x = torch.einsum("bnhi,chji->bnchj", x, self.weight) + self.bias  # [B, N, 3, H, d]
        return x.flatten(2)  # [B, N, 3 * D]
