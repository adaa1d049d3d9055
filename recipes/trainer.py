"""The training loop: augmented batches, loss, optimiser, average of the weights, log, and a state to resume from."""

import csv
import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, cast

import torch
import torch.nn.functional as F
from timm.layers import PatchDropout
from timm.optim import create_optimizer_v2
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torchvision.transforms import v2
from tqdm import tqdm

from recipes.augment import Batches, change_colours, change_digits, load_batches
from recipes.distillation import ConvNet, Student, label_rows, student_loss
from recipes.image_dataset import ImageDataset
from recipes.predictions import normalise, predict
from recipes.recipes import Recipe
from vit_demo.errors import InputError
from vit_demo.model import ViT
from vit_demo.training.loop import updates
from vit_demo.weights.preset import Preset

FULL_SEQUENCE_FRACTION = 0.2
"""Fraction of the epochs, at the end of a run, in which no patches are dropped."""

NOT_BY_MUON = ("*_token", "*pos_embed", "*patch_embed*", "*head.*")
"""Parameters outside the blocks, which Muon (https://kellerjordan.github.io/posts/muon/) leaves to AdamW."""


class Trainer:
    """One run of a recipe: its ``rows`` are the log, one per finished epoch, and ``seconds`` the time so far.

    All random choices of an epoch follow from the seed and the number of the epoch, so a run that was interrupted and
    resumed gives bit-identical weights. The state is in ``path``, the log beside it with the suffix ``.csv``.

    Network and teacher are called as ``network(images, patch_size=...)``; the teacher's first classes are the preset's.
    """

    def __init__(
        self,
        preset: Preset,
        recipe: Recipe,
        network: nn.Module,
        data: ImageDataset,
        path: Path,
        *,
        device: torch.device,
        teacher: ViT | ConvNet | None = None,
        seed: int = 0,
    ) -> None:
        self.preset, self.recipe, self.data, self.path = preset, recipe, data, path
        self.device, self.seed = device, seed
        self.steps_per_epoch = data.epoch_size // recipe.batch_size
        if self.steps_per_epoch == 0:
            raise InputError(f"{data.epoch_size} training images are fewer than a batch of {recipe.batch_size}.")
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)  # of the CPU, too: no detour over float32
        torch.manual_seed(seed)
        self.teacher = teacher.to(device).eval().requires_grad_(False) if teacher is not None else None
        self.num_classes = preset.config.num_classes
        other_classes = cast(nn.Linear, teacher.head).out_features - self.num_classes if teacher is not None else 0
        self.model = Student(network, other_classes).to(device)
        self.ema: AveragedModel | None = None
        if recipe.ema_decay:
            averaging = get_ema_multi_avg_fn(recipe.ema_decay)
            self.ema = AveragedModel(self.model, multi_avg_fn=averaging, use_buffers=True)
        muon = {"fallback_list": NOT_BY_MUON, "betas": (0.9, 0.98)} if recipe.optimiser == "nmuon" else {}
        self.optimiser = create_optimizer_v2(
            self.model, recipe.optimiser, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, **muon
        )
        crop_side = (recipe.teacher_image_size or preset.image_size) if preset.task == "photos" else None
        self.keys: list[tuple[int, Tensor]] = []
        self.batches = load_batches(Batches(data, crop_side if recipe.augment else None), self.keys, device)
        # https://arxiv.org/abs/1710.09412 and https://arxiv.org/abs/1905.04899
        mix = v2.RandomChoice([v2.MixUp(alpha=0.8), v2.CutMix(alpha=1.0)])
        self.mix = v2.RandomApply([mix], p=recipe.mix_probability)
        self.seconds = 0.0
        self.rows: list[dict[str, float]] = []
        path.parent.mkdir(parents=True, exist_ok=True)

    @property
    def epoch(self) -> int:
        """Number of finished epochs."""
        return len(self.rows)

    @property
    def trained_network(self) -> nn.Module:
        """The network to evaluate and export: the moving average if there is one."""
        return (self.model if self.ema is None else self.ema.module).get_submodule("network")

    def run(self, validation: ImageDataset | None = None) -> None:
        """Trains to the last epoch; after each it writes state and log, with the accuracy on ``validation``, if any."""
        while self.epoch < self.recipe.epochs:
            started = time.perf_counter()
            row = {"epoch": self.epoch + 1} | self.train_epoch()
            self.seconds += time.perf_counter() - started
            if validation is not None:
                for p in self.recipe.patch_sizes:
                    row[f"validation_{p}"] = predict(self.trained_network, validation, self.preset, p).accuracy
            self.rows.append(row | {"seconds": self.seconds})
            self.save()

    def train_epoch(self) -> dict[str, float]:
        """Trains for one epoch. Returns the mean loss and accuracy on the augmented images."""
        seed = self.seed * 100_003 + self.epoch
        torch.manual_seed(seed)
        size, steps = self.recipe.batch_size, self.steps_per_epoch
        parts = self.data.sample_epoch()[: steps * size].split(size)
        self.keys[:] = [(seed * steps + step, indices) for step, indices in enumerate(parts)]
        weights = torch.tensor(list(self.recipe.patch_size_weights.values()))
        choices = torch.multinomial(weights, steps, replacement=True).tolist()
        totals = torch.zeros(2, device=self.device)
        progress = tqdm(self.batches, f"{self.path.name.split('.')[0]}, epoch {self.epoch + 1} of {self.recipe.epochs}")
        batches = (
            (images, labels, self.recipe.patch_sizes[choice])
            for (images, labels), choice in zip(progress, choices, strict=True)
        )
        clip = not self.recipe.constant_rate  # the notebook does not clip
        done = updates(
            self.model, self.optimiser, batches, self.loss, self.share, first_step=self.epoch * steps, clip=clip
        )
        for step, seen in enumerate(done, 1):
            if self.ema is not None:
                self.ema.update_parameters(self.model)
            totals += seen
            if step % 20 == 0:
                loss, accuracy = (totals / step).tolist()
                progress.set_postfix(loss=f"{loss:.3f}", accuracy=f"{accuracy:.3f}")
        loss, accuracy = (totals / steps).tolist()
        return {"loss": loss, "accuracy": accuracy}

    def share(self, step: int) -> float:
        """The share of the peak of the learning rate, in [0, 1], by the number of a step."""
        total = self.recipe.epochs * self.steps_per_epoch
        warmup = max(1, round(total / 20))
        if self.recipe.constant_rate:
            return 1.0
        return min((step + 1) / warmup, (1 + math.cos(math.pi * step / total)) / 2)

    def loss(self, images: Tensor, labels: Tensor, patch_size: int) -> tuple[Tensor, Tensor]:
        """The loss of images uint8 ``[B, C, side, side]``, and loss and accuracy as numbers, ``[2]``."""
        images, labels = (x.to(self.device, non_blocking=True) for x in (images, labels))
        images, rows = self.mix(self.augment(images), label_rows(labels, self.num_classes))
        images = normalise(images, self.preset)
        bf16 = self.recipe.bf16 and self.device.type != "mps"
        # On the CPU the backward pass of the fused kernel is several times slower.
        attention = sdpa_kernel(SDPBackend.MATH) if self.device.type == "cpu" else nullcontext()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            with torch.no_grad():
                teacher_logits = self.teacher(images).float() if self.teacher is not None else None
            if images.shape[-1] != self.preset.image_size:
                images = F.interpolate(images, size=self.preset.image_size, mode="bilinear", antialias=True)
            with self.patch_dropout(patch_size), attention:
                logits = self.model(images, patch_size).float()
        loss = student_loss(logits, teacher_logits, rows, self.recipe.teacher_weight)
        found = logits[:, : self.num_classes].argmax(1)
        return loss, torch.stack([loss.detach(), (found == labels).float().mean()])

    def augment(self, images: Tensor) -> Tensor:
        """A batch uint8 ``[B, C, side, side]`` changed at random, but for the crop; the same shape, in [0, 1]."""
        if not self.recipe.augment:
            return images.float() / 255
        return change_digits(images) if self.preset.task == "digits" else change_colours(images)

    def patch_dropout(self, patch_size: int) -> AbstractContextManager[Any]:
        """While active, the network drops the recipe's share of patches before its first block."""
        rate, network = self.recipe.patch_drop_rates.get(patch_size, 0.0), self.model.network
        if rate == 0 or self.epoch >= (1 - FULL_SEQUENCE_FRACTION) * self.recipe.epochs or not isinstance(network, ViT):
            return nullcontext()
        dropout = PatchDropout(rate, network.config.num_prefix_tokens)
        return network.blocks[0].register_forward_pre_hook(lambda block, args: (dropout(args[0]), *args[1:]))

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the weights of a run, as plain values."""
        return {
            "seed": self.seed,
            "size of the data": self.data.epoch_size,
            "network": {name: list(tensor.shape) for name, tensor in self.model.state_dict().items()},
            **{name.replace("_", " "): value for name, value in asdict(self.recipe).items()},
        }

    def save(self) -> None:
        """Writes the state from which ``resume`` continues, and the log."""
        state = {name: part.state_dict() for name, part in self._parts.items()}
        state |= {"settings": self.settings, "rows": self.rows, "seconds": self.seconds}
        partial = self.path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(self.path)  # a crash leaves the previous state intact
        with self.path.with_name(self.path.name.replace(".state.pt", ".csv")).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(self.rows[0]))
            writer.writeheader()
            writer.writerows(self.rows)

    def resume(self) -> None:
        """Continues from the last saved state, if there is one.

        A damaged one, or that of a run with another seed, length, recipe, network or data, raises ``InputError``.
        """
        if not self.path.exists():
            return
        try:
            state = torch.load(self.path, map_location=self.device, weights_only=True)
            changed = [name for name, value in self.settings.items() if state["settings"].get(name) != value]
        except (RuntimeError, UnpicklingError, EOFError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{self.path} is damaged: train without --resume.") from error
        if changed:
            raise InputError(
                f"{self.path} belongs to a run with another {' and '.join(changed)}: resume it with the same settings, "
                "or train without --resume."
            )
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        self.rows, self.seconds = state["rows"], state["seconds"]

    @property
    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"model": self.model, "optimiser": self.optimiser}
        return parts | ({"average": self.ema} if self.ema is not None else {})
