"""The training loop: random patch sizes, a teacher, a moving average, a log, and a state to resume from."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from vit_demo.errors import InputError
from vit_demo.model import ViT, compile_blocks
from vit_demo.training.answers import Answers
from vit_demo.training.augment import Mix
from vit_demo.training.data import Labelled
from vit_demo.training.log import Log
from vit_demo.training.optimisers import make_optimisers
from vit_demo.training.parallel import Interrupt, rank, world_size
from vit_demo.training.recipes import RECIPES
from vit_demo.training.scoring import prepare, score
from vit_demo.training.settings import differences, run_settings
from vit_demo.training.student import Student, at_patches
from vit_demo.weights.preset import Preset


class Trainer:
    """One run of a recipe.

    Every random choice of an epoch follows from the seed and the epoch's number, so a run that was stopped and resumed
    makes the same weights as an unbroken one. Processes started together by ``torchrun`` share each batch; they make
    the weights that one process makes, but for rounding.

    Args:
        preset: What to train.
        name: Stem of the weights, as in ``RECIPES``, and of the files written to ``out``.
        data: The training set.
        out: Folder for the state and the log.
        device: Where to train.
        seed: Of everything random.
        epochs: Instead of the recipe's.
        learning_rate: Instead of the recipe's.
        network: What to train instead of the preset's ViT: answers ``network(images, patch_size=...)`` with logits.
        teacher: A trained network with the same answers, whose opinion of each changed image is learned as well.
        answers: A teacher's answers asked for beforehand, and the crops that they are about.
        start: A trained network whose weights to begin with, instead of random ones.

    Attributes:
        epoch: Whole epochs done.
        step: Steps done of the epoch after them.
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
        network: nn.Module | None = None,
        teacher: nn.Module | None = None,
        answers: Answers | None = None,
        start: ViT | None = None,
    ) -> None:
        torch.manual_seed(seed)
        self.preset, self.recipe, self.name = preset, RECIPES[name], name
        self.data, self.device, self.seed = data, device, seed
        recipe = self.recipe
        if recipe.batch_size % world_size():
            raise InputError(f"A batch of {recipe.batch_size} cannot be shared by {world_size()} processes equally.")
        self.epochs = recipe.epochs if epochs is None else epochs
        self.learning_rate = recipe.learning_rate if learning_rate is None else learning_rate
        self.steps = data.epoch_length // recipe.batch_size
        self.patch_sizes = tuple(recipe.patch_weights)
        config = replace(preset.config_at(self.patch_sizes[0]), drop_path=recipe.drop_path)
        self.classes = config.num_classes
        self.settings = run_settings(
            recipe, config, data, seed=seed, epochs=self.epochs, learning_rate=self.learning_rate
        )
        self.model = network if network is not None else ViT(config)
        if start is not None:
            self.model.load_state_dict(start.state_dict())
        if answers is not None and (recipe.hint or recipe.patch_hint):
            self.model = Student(cast(ViT, self.model), answers.features.shape[2], answers.patches.shape[2])
        self.model.to(device)
        self.teacher = teacher.to(device).eval() if teacher is not None else None
        self.answers = answers
        self.average: AveragedModel | None = None
        if recipe.ema:
            self.average = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(recipe.ema), use_buffers=True)
        self.optimisers = make_optimisers(self.model, recipe, self.learning_rate)
        self.mix = Mix(recipe.mix)
        self.bf16 = recipe.precision == "bf16" and device.type != "mps"
        if device.type == "cuda":
            compile_blocks(self.model)
        self.forward = DistributedDataParallel(self.model) if world_size() > 1 else self.model
        self.epoch, self.step, self.seconds = 0, 0, 0.0
        self.sums = torch.zeros(2)  # of this epoch's losses and of its right answers
        self.state_path = out / f"{name}.state.pt"
        self.log = Log(out / f"{name}.csv")
        out.mkdir(parents=True, exist_ok=True)

    @property
    def shipped(self) -> nn.Module:
        """The network whose weights are shipped: the moving average where the recipe keeps one."""
        network = self.average.module if self.average is not None else self.model
        return network.vit if isinstance(network, Student) else network

    def resume(self) -> bool:
        """Goes on from the last state saved; False where there is nothing to go on from.

        Raises:
            InputError: If that state is of a run with another seed, length, learning rate, recipe, network or data.
        """
        if not self.state_path.exists():
            return False
        state = torch.load(self.state_path, map_location=self.device, weights_only=True)
        other = differences(state["settings"], self.settings)
        if other:
            raise InputError(
                f"{self.state_path} is of a run with {other}: resume it as it began, or train without --resume."
            )
        self.model.load_state_dict(state["model"])
        for optimiser, kept in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(kept)
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.epoch, self.step, self.seconds = state["epoch"], state["step"], state["seconds"]
        self.sums = state["sums"].cpu()
        self._set_random_state(state["random"])
        return True

    def run(self, validation: Labelled | None = None) -> None:
        """Trains to the last epoch, with a bar for the run and one for the epoch; writes state and log after each.

        Ctrl-C saves the state after the step under way, from which ``resume`` goes on.

        Args:
            validation: Scored after every epoch at every patch size, where given.

        Raises:
            KeyboardInterrupt: After Ctrl-C, once the state is saved.
        """
        if self.epoch == 0:
            self.log.clear()
        is_first = rank() == 0
        with (
            Interrupt() as interrupt,
            tqdm(total=self.epochs, initial=self.epoch, desc=self.name, unit="epoch", disable=not is_first) as bar,
        ):
            while self.epoch < self.epochs:
                row = self._epoch(interrupt)
                if is_first and validation is not None:
                    network = self.shipped
                    for p in self.patch_sizes:
                        row[f"validation_{p}"] = score(network, validation, self.preset, p).accuracy
                if is_first:
                    self._save()
                    self.log.add(row | {"seconds": self.seconds})
                bar.update()
                bar.set_postfix({key: f"{value:.4f}" for key, value in row.items() if key not in ("epoch", "rate")})

    def _epoch(self, interrupt: Interrupt) -> dict[str, float]:
        """One pass, or the rest of one; its mean loss, accuracy on the (changed) training images, and last rate."""
        recipe, generator = self.recipe, torch.Generator().manual_seed(self.seed * 100_003 + self.epoch)
        order = self.data.epoch_rows(generator)[: self.steps * recipe.batch_size]
        weights = torch.tensor(list(recipe.patch_weights.values()))
        sizes = torch.multinomial(weights, self.steps, replacement=True, generator=generator)
        if self.step == 0:
            torch.manual_seed(self.seed * 100_003 + self.epoch)
            self.sums.zero_()
        self.model.train()
        rate, batches = 0.0, order.split(recipe.batch_size)
        with tqdm(
            total=self.steps, initial=self.step, desc=f"epoch {self.epoch + 1}", leave=False, position=1,
            disable=rank() > 0,
        ) as bar:  # fmt: skip
            while self.step < self.steps:
                started = time.perf_counter()
                rate = self._rate(self.epoch * self.steps + self.step)
                self.sums += self._step(batches[self.step], self.patch_sizes[int(sizes[self.step])], rate).cpu()
                self.step += 1
                self.seconds += time.perf_counter() - started
                bar.update()
                if self.step % 20 == 0:
                    loss, right = (self.sums / self.step).tolist()
                    bar.set_postfix(loss=f"{loss:.3f}", accuracy=f"{right:.3f}")
                if interrupt.wanted():
                    if rank() == 0:
                        self._save()
                    raise KeyboardInterrupt
        self.epoch, self.step = self.epoch + 1, 0
        loss, right = (self.sums / self.steps).tolist()
        return {"epoch": self.epoch, "rate": rate, "loss": loss, "accuracy": right}

    def _step(self, batch: Tensor, patch_size: int, rate: float) -> Tensor:
        """One update; loss and share of right answers, ``[2]``."""
        recipe = self.recipe
        labels = self.data.labels[batch].to(self.device)
        targets, crops, patches = F.one_hot(labels.clamp(min=0), self.classes).float(), None, None
        if self.answers is not None:
            crops, opinion, features, patches = (t.to(self.device) for t in self.answers.of(self.epoch, batch))
            targets = torch.where((labels < 0)[:, None], opinion, targets)
            # [B, classes + features], to be mixed alike
            targets = torch.cat([targets + recipe.distil * (opinion - targets), features], dim=1)
        images = self.data.images[batch].to(self.device)
        x = prepare(images, self.preset, augment=recipe.augment, least=recipe.least_change, crops=crops)
        share = torch.zeros_like(x[0, :1])
        if recipe.mix:
            x, targets, share = self.mix(x, targets)
        keep = self._kept(patch_size, x)
        if patches is not None:
            patches = at_patches(patches, share, patch_size, keep)
        # Every process changes the whole batch alike, and then learns from its own part.
        part = slice(rank(), None, world_size())
        x, targets, labels = x[part], targets[part], labels[part]
        options = {"patch_size": patch_size} | ({"keep": keep[part]} if keep is not None else {})
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            answer = self.forward(x, **options)
            logits, *guesses = answer if isinstance(answer, tuple) else (answer,)
            logits = logits.float()
            if self.teacher is not None:
                with torch.no_grad():
                    opinion = self.teacher(x, patch_size=patch_size).float().softmax(1)
                targets = targets + recipe.distil * (opinion - targets)
        targets, features = targets.split([self.classes, targets.shape[1] - self.classes], dim=1)
        if self.answers is None:
            targets[labels < 0] = 1 / self.classes  # what has no label should leave the network undecided
        loss = F.cross_entropy(logits, targets, label_smoothing=recipe.label_smoothing)
        if guesses and patches is not None:
            loss = loss + recipe.hint * F.mse_loss(guesses[0].float(), features)
            loss = loss + recipe.patch_hint * F.mse_loss(guesses[1].float(), patches[part])
        self.model.zero_grad(set_to_none=True)
        loss.backward()
        if recipe.optimiser != "adam":
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = rate
            optimiser.step()
        if self.average is not None:
            self.average.update_parameters(self.model)
        return torch.stack([loss.detach(), (logits.detach().argmax(1) == labels).float().mean()])

    def _kept(self, patch_size: int, x: Tensor) -> Tensor | None:
        """Which patches of each image to train with, ``[B, K]``; None for all, as at the end of the run."""
        share = self.recipe.keep.get(patch_size)
        if share is None or self.epoch >= (1 - self.recipe.whole) * self.epochs:
            return None
        patches = x.shape[2] // patch_size * (x.shape[3] // patch_size)
        return torch.rand(len(x), patches, device=self.device).argsort(1)[:, : round(share * patches)]

    def _rate(self, step: int) -> float:
        """Linear warm-up, then a cosine to zero; the notebook's rate is constant."""
        peak, total = self.learning_rate, self.epochs * self.steps
        if self.recipe.optimiser == "adam":
            return peak
        warmup = max(1, round(self.recipe.warmup * total))
        if step < warmup:
            return peak * (step + 1) / warmup
        return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))

    def _save(self) -> None:
        """The state, whole or not at all."""
        state = {
            "settings": self.settings,
            "model": self.model.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "average": self.average.state_dict() if self.average is not None else {},
            "epoch": self.epoch,
            "step": self.step,
            "sums": self.sums,
            "seconds": self.seconds,
            "random": self._random_state(),
        }
        partial = self.state_path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(self.state_path)

    def _random_state(self) -> dict[str, Tensor]:
        state = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            state["cuda"] = torch.cuda.get_rng_state(self.device)
        return state

    def _set_random_state(self, state: dict[str, Tensor]) -> None:
        torch.set_rng_state(state["cpu"].cpu())
        if "cuda" in state and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda"].cpu(), self.device)
