"""The training loop: random patch sizes, a moving average, a log, and a state to resume from after every epoch."""

from __future__ import annotations

import csv
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torchvision.transforms import v2
from tqdm import tqdm

from vit_demo.train.augment import augment_digits, augment_photos
from vit_demo.train.data import Labelled
from vit_demo.train.recipes import RECIPES
from vit_demo.vit import ViT
from vit_demo.zoo.presets import Preset


@dataclass(frozen=True)
class Score:
    """What one look at a labelled set found.

    Attributes:
        accuracy: Share of right answers, in [0, 1].
        loss: Mean cross-entropy, in nats.
    """

    accuracy: float
    loss: float


def prepare(images: Tensor, preset: Preset, *, augment: bool = False) -> Tensor:
    """uint8 ``[B, C, side, side]`` to what the network sees: float32, changed at random if wanted, normalised."""
    x = images.float() / 255
    if augment:
        x = augment_digits(x) if preset.task == "digits" else augment_photos(x)
    mean, std = (torch.tensor(v, device=x.device).view(1, -1, 1, 1) for v in (preset.mean, preset.std))
    return (x - mean) / std


@torch.inference_mode()
def score(model: nn.Module, data: Labelled, preset: Preset, patch_size: int, *, batch_size: int = 250) -> Score:
    """Accuracy and loss of a model at one patch size.

    Args:
        model: Answers ``model(images, patch_size=...)`` with logits.
        data: Images and labels.
        preset: Decides the normalisation.
        patch_size: In pixels.
        batch_size: Images a step.
    """
    model.eval()
    device = next(model.parameters()).device
    right, loss = 0, 0.0
    for start in range(0, len(data), batch_size):
        part = slice(start, start + batch_size)
        labels = data.labels[part].to(device)
        logits = model(prepare(data.images[part].to(device), preset), patch_size=patch_size)
        right += int((logits.argmax(1) == labels).sum())
        loss += float(F.cross_entropy(logits, labels, reduction="sum"))
    return Score(right / len(data), loss / len(data))


class Trainer:
    """One run of a recipe.

    Every random choice of an epoch follows from the seed and the epoch's number, so a run that was stopped and resumed
    makes the same weights as an unbroken one.

    Args:
        preset: What to train.
        name: Stem of the weights, as in ``RECIPES``, and of the files written to ``out``.
        data: The training set.
        out: Folder for the state and the log.
        device: Where to train.
        seed: Of everything random.
        epochs: Instead of the recipe's.
        learning_rate: Instead of the recipe's.
        start: A trained network to start from, instead of random weights.

    Attributes:
        epoch: Epochs done.
        seconds: Training time so far, resumed parts included.
    """

    def __init__(
        self,
        preset: Preset,
        name: str,
        data: Labelled,
        out: Path,
        *,
        device: torch.device,
        seed: int = 0,
        epochs: int | None = None,
        learning_rate: float | None = None,
        start: ViT | None = None,
    ) -> None:
        torch.manual_seed(seed)
        self.preset, self.recipe = preset, RECIPES[name]
        self.data, self.device, self.seed = data, device, seed
        recipe = self.recipe
        self.epochs = epochs or recipe.epochs
        self.learning_rate = learning_rate or recipe.learning_rate
        self.steps = len(data) // recipe.batch_size
        self.patch_sizes = tuple(recipe.patch_weights)
        config = replace(preset.config_at(self.patch_sizes[0]), drop_path=recipe.drop_path)
        self.model = ViT(config).to(device)
        if start is not None:
            self.model.load_state_dict(start.state_dict())
        self.average: AveragedModel | None = None
        if recipe.ema:
            self.average = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(recipe.ema))
        self.optimiser = self._optimiser()
        self.mix = v2.RandomApply(
            [v2.RandomChoice([v2.MixUp(alpha=0.8, num_classes=config.num_classes),
                              v2.CutMix(alpha=1.0, num_classes=config.num_classes)])],
            p=recipe.mix,
        )  # fmt: skip
        self.epoch, self.seconds = 0, 0.0
        self.state_path, self.log_path = out / f"{name}.state.pt", out / f"{name}.csv"
        out.mkdir(parents=True, exist_ok=True)

    @property
    def shipped(self) -> ViT:
        """The network whose weights are shipped: the moving average where the recipe keeps one."""
        return cast(ViT, self.average.module) if self.average is not None else self.model

    def resume(self) -> bool:
        """Goes on from the last whole epoch; False where there is nothing to go on from."""
        if not self.state_path.exists():
            return False
        state = torch.load(self.state_path, map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.epoch, self.seconds = state["epoch"], state["seconds"]
        return True

    def run(self, validation: Labelled | None = None) -> None:
        """Trains to the last epoch, with a bar for the run and one for the epoch; writes state and log after each.

        Args:
            validation: Scored after every epoch at every patch size, where given.
        """
        if self.epoch == 0:
            self.log_path.unlink(missing_ok=True)
        with tqdm(total=self.epochs, initial=self.epoch, desc=self.preset.name, unit="epoch", position=0) as bar:
            while self.epoch < self.epochs:
                started = time.perf_counter()
                loss, accuracy, rate = self._epoch()
                self.seconds += time.perf_counter() - started
                row = {"epoch": self.epoch, "rate": rate, "loss": loss, "accuracy": accuracy}
                if validation is not None:
                    for p in self.patch_sizes:
                        row[f"validation_{p}"] = score(self.shipped, validation, self.preset, p).accuracy
                self._save(row | {"seconds": self.seconds})
                bar.update()
                bar.set_postfix({k: f"{v:.4f}" for k, v in row.items() if k not in ("epoch", "rate")})

    def _epoch(self) -> tuple[float, float, float]:
        """One pass; the mean loss, the share of right answers on the (changed) training images, and the last rate."""
        recipe, generator = self.recipe, torch.Generator().manual_seed(self.seed * 100_003 + self.epoch)
        torch.manual_seed(self.seed * 100_003 + self.epoch)
        order = torch.randperm(len(self.data), generator=generator)[: self.steps * recipe.batch_size]
        weights = torch.tensor(list(recipe.patch_weights.values()))
        sizes = torch.multinomial(weights, self.steps, replacement=True, generator=generator)
        self.model.train()
        total_loss, right, rate = torch.zeros(()), torch.zeros(()), 0.0
        bar = tqdm(order.split(recipe.batch_size), desc=f"epoch {self.epoch + 1}", leave=False, position=1)
        for step, batch in enumerate(bar):
            rate = self._rate(self.epoch * self.steps + step)
            labels = self.data.labels[batch].to(self.device)
            loss, logits = self._step(batch, labels, self.patch_sizes[int(sizes[step])], rate)
            total_loss += loss.cpu()
            right += (logits.argmax(1) == labels).sum().cpu()
            if step % 20 == 0:
                seen = (step + 1) * recipe.batch_size
                bar.set_postfix(loss=f"{total_loss / (step + 1):.3f}", accuracy=f"{right / seen:.3f}")
        self.epoch += 1
        return float(total_loss) / self.steps, float(right) / len(order), rate

    def _step(self, batch: Tensor, labels: Tensor, patch_size: int, rate: float) -> tuple[Tensor, Tensor]:
        recipe = self.recipe
        x = prepare(self.data.images[batch].to(self.device), self.preset, augment=recipe.augment)
        targets: Tensor = labels
        if recipe.mix:
            x, targets = self.mix(x, labels)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type != "mps"):
            logits = self.model(x, patch_size=patch_size).float()
        loss = F.cross_entropy(logits, targets, label_smoothing=recipe.label_smoothing)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if recipe.optimiser == "adamw":
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        if self.average is not None:
            self.average.update_parameters(self.model)
        return loss.detach(), logits.detach()

    def _rate(self, step: int) -> float:
        """Linear warm-up, then a cosine to zero; the notebook's rate is constant."""
        peak, total = self.learning_rate, self.epochs * self.steps
        if self.recipe.optimiser == "adam":
            return peak
        warmup = max(1, round(self.recipe.warmup * total))
        if step < warmup:
            return peak * (step + 1) / warmup
        return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))

    def _optimiser(self) -> torch.optim.Optimizer:
        recipe = self.recipe
        if recipe.optimiser == "adam":
            return torch.optim.Adam(self.model.parameters(), lr=self.learning_rate)
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        vectors = [p for p in self.model.parameters() if p.ndim <= 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices, "weight_decay": recipe.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.learning_rate, betas=(0.9, 0.98))

    def _save(self, row: dict[str, Any]) -> None:
        """The state first, whole or not at all, then the line of the log."""
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "average": self.average.state_dict() if self.average is not None else {},
            "epoch": self.epoch,
            "seconds": self.seconds,
        }
        partial = self.state_path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(self.state_path)
        is_new = not self.log_path.exists()
        with self.log_path.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if is_new:
                writer.writeheader()
            writer.writerow(row)
