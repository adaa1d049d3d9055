"""Finds what must be known of a network: a few passes on noise, and no assumption about its class."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from vit_demo.errors import InputError, PresetError
from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import Pool
from vit_demo.model.resample import without_autocast
from vit_demo.trace import outputs
from vit_demo.trace.changes import Changes
from vit_demo.trace.classifier_head import (
    can_leave_out,
    find_pool,
    head_gradient,
    is_flexible,
    reaches,
    reads_evenly,
    reads_patches_alike,
)
from vit_demo.trace.output_projection import proved_projections
from vit_demo.trace.outputs import EMBEDDINGS, Output, Path, already_probabilities, find_logits, logits_of, tensors_in
from vit_demo.trace.own_vit import OwnViT
from vit_demo.trace.pixels import find_pixels, scale_of
from vit_demo.trace.probe import Probe, find_blocks, find_patch_size, why_others
from vit_demo.trace.proof import prove
from vit_demo.trace.reasons import NOT_FOLLOWED, NOT_OF_TOKENS, NOT_SEEN, OTHER_COUNT
from vit_demo.trace.running import in_eval, keep_order
from vit_demo.trace.structure import Structure, first_of
from vit_demo.trace.traced_vit import TracedViT

MAX_PREFIX = 17  # tokens before the patches: a class token and 16 registers, more than any published network has
OFFLOADED = "Weights of this network are not in memory (on the meta device): load all of it, without offloading."
NO_PICTURES = (
    "This network gives {}, not logits [B, K] of a picture: pass output= with a function that makes them of what it "
    "returns, or the network inside it."
)
NOT_FINITE = "The outputs of this network are {} for plain noise: look for broken weights, or a division by 0."
WHOLE_CLIP = (
    "This is a network of pictures and words: pass its part for pictures, .visual, for an embedding; for classes that "
    "are words, CLIPModel or SiglipModel of transformers."
)
INFERENCE = "This network runs under torch.inference_mode, so it has no gradients: use torch.no_grad in it instead."
COMPILED = "This network is compiled: pass the one that torch.compile was given."

MOST_FOUND = 8  # states and sizes of one network of which is kept what was found

_found: WeakKeyDictionary[nn.Module, tuple[Changes, dict[Hashable, tuple[ViTConfig, Structure]]]] = WeakKeyDictionary()


def adapt(
    module: nn.Module,
    image_size: int | tuple[int, int],
    *,
    patch_size: int | None = None,
    in_channels: int = 3,
    output: Output | None = None,
) -> TracedViT:
    """Makes a ``TracedViT`` of a network, once it is proved that all of its attention is seen; see ``proof``.

    What was found is kept for as long as nothing but the values of the network's weights changes; see ``changes``.

    Args:
        module: Takes images ``[B, C, height, width]``; gives logits ``[B, K]``, or an output of transformers.
        image_size: Side of its input, or height and width, in pixels.
        patch_size: In pixels; found for None.
        in_channels: Of the images.
        output: Where the logits are in what it returns; found for None.

    Raises:
        InputError: If it returns no such output.
        PresetError: If it cannot be run on such images, its patches or tokens are not found, or its attention is not
            seen whole.
    """
    if isinstance(module, ViT):
        return OwnViT(module)
    if output is None and all(hasattr(module, name) for name in ("visual", "encode_image", "encode_text")):
        raise PresetError(WHOLE_CLIP)  # of open_clip or OpenAI
    size = (image_size, image_size) if isinstance(image_size, int) else image_size
    changes, found = _found.setdefault(module, (Changes(), {}))
    before = changes.state_of(module)
    key = (size, patch_size, in_channels, output, hash(tuple(before.items())))
    known = found.get(key)
    if known is None:
        try:
            device = next((p.device for p in module.parameters()), torch.device("cpu"))
            with in_eval(module), torch.inference_mode(False), without_autocast(device):
                network = _adapt(module, size, patch_size, in_channels, output)
        except Exception as error:  # of a network that is no ordinary module, or runs one picture alone
            if any(parameter.is_meta for parameter in module.parameters()):
                raise PresetError(OFFLOADED) from error
            if isinstance(error, InputError):
                raise
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:150]
            raise PresetError(
                f"This network cannot be traced ({reason}): choose a plain Vision Transformer."
            ) from error
        changes.ignore_changes(before, changes.state_of(module))
        key = (*key[:-1], hash(tuple(changes.state_of(module).items())))
        found[key] = known = network.config, network.structure
        if len(found) > MOST_FOUND:
            found.pop(next(iter(found)), None)
    return TracedViT(module, *known)


@torch.inference_mode(False)  # the caller's own
def outline(module: nn.Module, image_size: int) -> tuple[ViTConfig, bool]:
    """The shape of a network but for its ``pool``, and whether its attention has a mask; raises as ``adapt``.

    On the meta device this costs nothing.
    """
    found = _probe(module, (image_size, image_size), None, 3, None)
    return found.config, found.probe.adds_to_scores


def _run(module: nn.Module, images: Tensor) -> Any:
    """What the network returns; ``PresetError`` with its own words if it fails, whatever it raises."""
    kernels = (one.kernel_size[0] for one in module.modules() if isinstance(one, nn.Conv2d))
    try:
        return module(images, **keep_order(module, images, int(next(kernels, 1))))
    except InputError:
        raise
    except Exception as error:  # the network is another's
        size = " x ".join(map(str, images.shape[1:]))
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:150]
        raise PresetError(
            f"This network does not take images of {size} ({reason}): pass its part for images, give it an attribute "
            "image_size with the side of its photos, or pass the input that it takes as a tensor or by transform=."
        ) from error


@dataclass
class _Found:
    """What one pass on noise shows of a network.

    ``parts`` are those of ``find_blocks``; ``where`` the logits are, as of ``find_logits``, and ``raw`` what is there.
    """

    probe: Probe
    config: ViTConfig
    parts: tuple[list[str], str, str]
    noise: Tensor
    where: Path | Callable[[Any], Tensor]
    raw: Tensor
    logits: Tensor


def _probe(
    module: nn.Module, size: tuple[int, int], patch_size: int | None, in_channels: int, wanted: Output | None
) -> _Found:
    _check_module(module)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(1, in_channels, *size, generator=generator, device="cpu", dtype=torch.float32)
    noise = noise.to(next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(())))
    probe = Probe()
    with torch.no_grad(), probe.watching(module), probe:
        output = _run(module, noise)
    _check_attention(probe)
    where = find_logits(output, probe.sources, wanted)
    logits = logits_of(output, where)
    raw, logits = logits if callable(where) else tensors_in(output)[where], outputs.finite(logits)
    parts = find_blocks(probe)
    num_tokens, tokens = probe.shapes[0][2], first_of(probe.tokens[parts[2]][1])
    _check_numbers(logits, tokens)
    if num_tokens not in tokens.shape[:2]:
        raise PresetError(NOT_OF_TOKENS)
    if raw.dim() == 3 and probe.ends_in_head(raw, parts[2]):
        raise PresetError(NO_PICTURES.format(f"{raw.shape[2]} outputs for each of its tokens"))
    if len(logits) != 1:
        raise PresetError(NO_PICTURES.format(f"{list(logits.shape)} for one picture"))
    if probe.sources.is_sorted(raw):
        raise PresetError(NO_PICTURES.format("outputs that are sorted by their size"))
    patch = patch_size or find_patch_size(module, size, num_tokens)
    prefix = num_tokens - (size[0] // patch) * (size[1] // patch)
    if not 0 <= prefix <= MAX_PREFIX or size[0] % patch or size[1] % patch:
        raise PresetError(OTHER_COUNT.format(patch, num_tokens))
    _check_calls(probe, parts[0])
    # timm's networks without classes return the pooled vector.
    is_embedding = raw.dim() == 3 or (not callable(where) and where[-1:] in [(name,) for name in EMBEDDINGS])
    has_classes = getattr(module, "num_classes", 1) != 0 and not is_embedding
    heads, dim = probe.shapes[0][1], tokens.shape[2]
    config = ViTConfig(
        image_size=size[0],
        patch_size=patch,
        in_channels=in_channels,
        num_classes=logits.shape[1] if has_classes else 0,
        embed_dim=dim if dim % heads == 0 else heads * probe.shapes[0][3],
        depth=len(probe.paths),
        num_heads=heads,
        pool="mean",
        class_token=False,
        num_registers=prefix,
    )
    return _Found(probe, config, parts, noise, where, raw, logits)


def _check_module(module: nn.Module) -> None:
    """``PresetError`` for a network that cannot be watched while it runs, or has no gradients."""
    if any(isinstance(one, torch.jit.ScriptModule) for one in module.modules()):
        raise PresetError("This network is a script or trace of torch.jit: pass the network that it was made of.")
    if any(hasattr(one, "_orig_mod") or one._compiled_call_impl is not None for one in module.modules()):
        raise PresetError(COMPILED)
    if any(parameter.is_inference() for parameter in module.parameters()):
        raise PresetError("This network was made in torch.inference_mode, so it has no gradients: make it outside.")


def _check_attention(probe: Probe) -> None:
    """``PresetError`` unless there was attention between all tokens, of as many heads in all blocks."""
    if not probe.paths:
        raise PresetError(why_others(probe) if probe.others else NOT_FOLLOWED if probe.saw_softmax else NOT_SEEN)
    if probe.others or len({(shape[0], shape[2]) for shape in probe.shapes}) > 1:  # windows are a batch
        raise PresetError(why_others(probe))
    if len({shape[1] for shape in probe.shapes}) > 1:
        raise PresetError(
            "The blocks of this network differ in their numbers of heads: choose one where all have as many."
        )


def _check_numbers(logits: Tensor, tokens: Tensor) -> None:
    """``PresetError`` if the logits are not finite, or nothing of the tokens can have a gradient."""
    if tokens.is_inference():
        raise PresetError(INFERENCE)
    if not logits.is_meta and not logits.isfinite().all():
        raise PresetError(NOT_FINITE.format("not numbers (NaN)" if logits.isnan().any() else "infinite"))


def _check_calls(probe: Probe, blocks: list[str]) -> None:
    """``PresetError`` if a block runs twice, or blocks have different numbers of attentions."""
    counts = {sum(f"{path}.".startswith(f"{block}.") for path in probe.paths) for block in blocks} - {0}
    if len(counts) > 1 or any(probe.calls[block] > 1 for block in blocks) or probe.pools > 1:
        raise PresetError(
            "The blocks of this network run more than once, differ in their number of attentions, or several of these "
            "pool the tokens: choose a plain Vision Transformer."
        )


def _adapt(
    module: nn.Module, size: tuple[int, int], patch_size: int | None, in_channels: int, wanted: Output | None
) -> TracedViT:
    found = _probe(module, size, patch_size, in_channels, wanted)
    probe, noise, prefix = found.probe, found.noise, found.config.num_registers
    output = probe.tokens[found.parts[2]][1]
    network = TracedViT(module, found.config, _seen(found, size))

    def know(**parts: Any) -> None:
        network.structure = replace(network.structure, **parts)

    know(projections=proved_projections(network, probe))
    if probe.sets_gradients and not reaches(network, noise, lambda trace: trace.tokens[:1]):
        know(keeps_gradients=True)
    head_gradient(network, output)  # refuses a network without gradients
    error: PresetError | None = None
    try:
        before, overlaps, colours = find_pixels(network, noise)
        know(before=before, suffix=prefix - before, overlaps=overlaps, scale=scale_of(colours))
    except PresetError as wrong:  # what else is wrong says more
        error = wrong
    parallel, logits = prove(network, probe, noise, found.logits)
    if error:
        raise error
    rows, bounded = torch.cat([found.logits, logits]), probe.sources.of(found.raw)[1]
    already = already_probabilities(rows, bounded) if network.config.num_classes else ""
    # A head may be followed by what leaves another number of outputs.
    has_head = network.structure.has_head or already in ("softmax", "sigmoid") or logits.shape[1] == 1
    know(parallel=parallel, already=already, has_head=has_head)
    network = TracedViT(module, network.config, network.structure)  # of the logits, whatever it returns
    network.config = _with_pool(network, find_pool(head_gradient(network, output), prefix))
    drops, evenly = reads_patches_alike(network, output), reads_evenly(network, output)
    pools = probe.pools > 0 and reaches(network, noise, lambda trace: list(trace.pooled or ())[1:])
    know(drops=drops, pools=pools, reads_evenly=evenly and not pools)
    leaves_out = drops and can_leave_out(network, noise)
    know(leaves_out=leaves_out, takes_any_size=(drops or evenly) and is_flexible(network))
    return TracedViT(module, network.config, network.structure)


def _seen(found: _Found, size: tuple[int, int]) -> Structure:
    """What the first pass alone says of a network's parts."""
    probe, (blocks, entry, end) = found.probe, found.parts
    output = probe.tokens[end][1]
    is_named = callable(found.where) or found.where[-1:] == ("logits",)
    return Structure(
        blocks=tuple(blocks),
        entry=entry,
        exit=end,
        norm=probe.norm_after(end),
        projections=tuple(probe.projections.get(index, "") for index in range(found.config.depth)),
        container=type(output)() if isinstance(output, tuple | list) else None,
        sequence_first=first_of(output).shape[:2] == (probe.shapes[0][2], 1),
        size=None if size[0] == size[1] else size,
        leaves_out=False,
        takes_any_size=False,
        has_head=is_named or probe.ends_in_head(found.raw, end),
        output=found.where,
    )


def _with_pool(network: TracedViT, pool: Pool) -> ViTConfig:
    """The shape of a network whose head reads ``pool``, with a class token if that, or a name, says so."""
    prefix, names = network.config.num_registers, [name for name, _ in network.module.named_parameters()]
    is_named = any(word in name.rpartition(".")[2] for name in names for word in ("cls", "class_"))
    has_class_token = prefix > 0 and (pool.startswith("cls") or is_named)
    return replace(network.config, pool=pool, class_token=has_class_token, num_registers=prefix - has_class_token)
