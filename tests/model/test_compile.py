import copy

import torch

from vit_demo.model import ViT, ViTConfig, compile_blocks


def test_a_compiled_network_learns_the_same_at_every_patch_size():
    """What training on CUDA compiles, traced here without its code generator."""
    torch.manual_seed(0)
    config = ViTConfig(
        image_size=28,
        patch_size=14,
        pos_embed_grid=14,
        in_channels=1,
        num_classes=10,
        embed_dim=16,
        depth=1,
        num_heads=2,
    )
    plain = ViT(config).train()
    compiled = copy.deepcopy(plain)
    compile_blocks(compiled, backend="aot_eager")
    images, kept_patches = torch.randn(4, 1, 28, 28), torch.rand(4, 49).argsort(1)[:, :20]
    for options in (
        {"patch_size": 14},
        {"patch_size": 7},
        {"patch_size": 4},
        {"patch_size": 4, "kept_patches": kept_patches},
    ):
        gradients = []
        for network in (plain, compiled):
            network.zero_grad()
            network(images, **options).logsumexp(1).sum().backward()
            gradients.append([p.grad for p in network.parameters()])
        for expected, found in zip(*gradients, strict=True):
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
        with torch.no_grad():
            for p, q in zip(plain.parameters(), compiled.parameters(), strict=True):
                p.add_(0.01 * torch.randn_like(p))  # as an optimiser would: nothing stale may be used
                q.copy_(p)
    assert compiled.state_dict().keys() == plain.state_dict().keys()
