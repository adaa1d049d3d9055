import pytest
import torch

from vit_demo.model import Trace, ViT, ViTConfig


@pytest.mark.parametrize("rows", [3, 4])
@pytest.mark.parametrize("prefix", [True, False], ids=["with positions", "without"])
def test_dropped_patches_are_as_if_hidden_from_every_token(prefix, rows):
    """Independent: the whole sequence, and attention whose mask hides the dropped patches."""
    torch.manual_seed(0)
    config = ViTConfig(
        image_size=24, patch_size=8, num_classes=5, embed_dim=16, depth=2, num_heads=2, num_registers=2,
        pos_embed_prefix=prefix,
    )  # fmt: skip
    model = ViT(config).eval()
    images = torch.randn(2, 3, 8 * rows, 24)
    kept_patches = torch.tensor([[0, 4, 3 * rows - 1], [8, 1, 2]])
    with torch.no_grad():
        found = model(images, kept_patches=kept_patches)
        for sample in range(2):
            hidden = [i for i in range(3 * rows) if i not in kept_patches[sample].tolist()]
            mask = torch.ones(1, 1, 3 + 3 * rows, 3 + 3 * rows, dtype=torch.bool)
            mask[..., [3 + i for i in hidden]] = False
            x = model.embed(images[sample : sample + 1], (rows, 3), 8)
            for block in model.blocks:
                x = x + block.attn(block.norm1(x), mask=mask)
                x = x + block.mlp(block.norm2(x))
            expected = model.forward_head(model.norm(x))
            torch.testing.assert_close(found[sample : sample + 1], expected, atol=1e-5, rtol=1e-5)


def test_keeping_all_changes_nothing_and_the_trace_holds_what_was_kept():
    torch.manual_seed(0)
    model = ViT(ViTConfig(image_size=24, patch_size=8, num_classes=5, embed_dim=16, depth=2, num_heads=2)).eval()
    images, trace = torch.randn(2, 3, 24, 24), Trace()
    with torch.no_grad():
        torch.testing.assert_close(model(images, kept_patches=torch.arange(9).expand(2, -1)), model(images))
        model(images, trace, kept_patches=torch.tensor([[3], [5]]))
    assert trace.q[0].shape == (2, 2, 2, 8)
