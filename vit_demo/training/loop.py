"""The training loop: batches, objective, optimisers, moving average of the weights, log, and a state to resume from."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from vit_demo.errors import InputError
from vit_demo.model import ViT, ViTConfig, compile_blocks
from vit_demo.training.batches import Batch, BatchLoader
from vit_demo.training.data import ImageDataset
from vit_demo.training.log import CSVLogger
from vit_demo.training.objectives import CrossEntropy
from vit_demo.training.optimisers import make_optimisers, set_learning_rate
from vit_demo.training.parallel import Interrupt, rank, world_size
from vit_demo.training.predictions import predict
from vit_demo.training.recipes import RECIPES, Recipe
from vit_demo.training.schedule import learning_rate_at
from vit_demo.training.state import get_random_state, load_state, run_settings, save_state, set_random_state
from vit_demo.training.student import Student
from vit_demo.weights.preset import Preset


def training_config(preset: Preset, recipe: Recipe) -> ViTConfig:
    """The configuration of the network that a recipe trains."""
    return replace(preset.config_at(recipe.patch_sizes[0]), drop_path=recipe.drop_path)


class Trainer:
    """One run of a recipe.

    All random choices of an epoch follow from the seed and the number of the epoch, and the state holds the position of
    the random number generators, so a run that was interrupted and resumed gives bit-identical weights. Processes
    started together by ``torchrun`` share each batch and give the weights of a single process up to rounding.

    Args:
        preset: The preset to train for.
        name: The recipe's key in ``RECIPES``, and the stem of the files written to ``out``.
        data: The training set.
        out: Folder for the state and the log.
        device: Where to train.
        seed: Seed of all random choices.
        epochs: Overrides the recipe's.
        learning_rate: Overrides the recipe's.
        network: The network to train, called as ``network(images, patch_size=...)``; by default the preset's ViT with
            random weights.
        objective: The loss to minimise; by default the cross-entropy with the labels.

    Attributes:
        epoch: Number of finished epochs.
        step: Number of finished steps of the current epoch.
        seconds: Training time so far, including that before a resume.

    Raises:
        InputError: If the batches cannot be shared equally by the processes, or the data are fewer than one batch.
    """

    def __init__(
        self,
        preset: Preset,
        name: str,
        data: ImageDataset,
        out: Path,
        *,
        device: torch.device,
        seed: int = 0,
        epochs: int | None = None,
        learning_rate: float | None = None,
        network: nn.Module | None = None,
        objective: CrossEntropy | None = None,
    ) -> None:
        self.preset, self.recipe, self.name, self.device = preset, RECIPES[name], name, device
        recipe = self.recipe
        if recipe.batch_size % world_size():
            raise InputError(
                f"A batch of {recipe.batch_size} images cannot be shared equally by {world_size()} processes."
            )
        if data.epoch_size < recipe.batch_size:
            raise InputError(f"{data.epoch_size} training images are fewer than a batch of {recipe.batch_size}.")
        self.epochs = recipe.epochs if epochs is None else epochs
        self.learning_rate = recipe.learning_rate if learning_rate is None else learning_rate
        config = training_config(preset, recipe)
        self.settings = run_settings(
            recipe, config, data, seed=seed, epochs=self.epochs, learning_rate=self.learning_rate
        )
        if network is None:
            torch.manual_seed(seed)
            network = ViT(config)
        self.objective = objective or CrossEntropy(config.num_classes, recipe.label_smoothing)
        self.loader = BatchLoader(
            data, preset, recipe, self.objective.targets, device=device, seed=seed, epochs=self.epochs
        )
        self.model = self.objective.wrap(network).to(device)
        self.ema: AveragedModel | None = None
        if recipe.ema_decay:
            averaging = get_ema_multi_avg_fn(recipe.ema_decay)
            self.ema = AveragedModel(self.model, multi_avg_fn=averaging, use_buffers=True)
        self.optimisers = make_optimisers(self.model, recipe, self.learning_rate)
        self.bf16 = recipe.precision == "bf16" and device.type != "mps"
        if device.type == "cuda":
            compile_blocks(self.model)
        self.parallel_model = DistributedDataParallel(self.model) if world_size() > 1 else self.model
        self.epoch, self.step, self.seconds = 0, 0, 0.0
        self.totals = torch.zeros(2)  # sums of loss and accuracy over the steps of this epoch
        self.state_path = out / f"{name}.state.pt"
        self.logger = CSVLogger(out / f"{name}.csv")
        out.mkdir(parents=True, exist_ok=True)

    def run(self, validation: ImageDataset | None = None) -> None:
        """Trains to the last epoch, showing progress, and writes state and log after each epoch.

        Ctrl-C saves the state after the current step; ``resume`` continues from there.

        Args:
            validation: Evaluated after every epoch at every patch size, if given.

        Raises:
            KeyboardInterrupt: After Ctrl-C, once the state is saved.
        """
        if self.epoch == 0:
            self.logger.clear()
        with Interrupt() as interrupt, _progress(self.name, self.epoch, self.epochs, "epoch") as progress:
            while self.epoch < self.epochs:
                row = self.train_epoch(interrupt)
                if rank() == 0:
                    if validation is not None:
                        row |= self.validate(validation)
                    self.save()
                    self.logger.log(row | {"seconds": self.seconds})
                progress.update()
                progress.set_postfix({k: f"{v:.4f}" for k, v in row.items() if k not in ("epoch", "rate")})

    def train_epoch(self, interrupt: Interrupt) -> dict[str, float]:
        """Trains for one epoch, or for the rest of it after a resume.

        Returns:
            The number of the epoch, the last learning rate, and the mean loss and accuracy on the augmented images.
        """
        steps = self.loader.steps_per_epoch
        total_steps = self.epochs * steps
        if self.step == 0:
            self.loader.seed_epoch(self.epoch)
            self.totals.zero_()
        self.model.train()
        with _progress(f"epoch {self.epoch + 1}", self.step, steps, "step", nested=True) as progress:
            for indices, patch_size in self.loader.plan_epoch(self.epoch)[self.step :]:
                started = time.perf_counter()
                rate = learning_rate_at(self.epoch * steps + self.step, total_steps, self.learning_rate, self.recipe)
                batch = self.loader.load(self.epoch, indices, patch_size)
                self.totals += self.train_step(batch, rate).cpu()
                self.step += 1
                self.seconds += time.perf_counter() - started
                progress.update()
                if self.step % 20 == 0:
                    loss, accuracy = (self.totals / self.step).tolist()
                    progress.set_postfix(loss=f"{loss:.3f}", accuracy=f"{accuracy:.3f}")
                if interrupt.requested():
                    if rank() == 0:
                        self.save()
                    raise KeyboardInterrupt
        self.epoch, self.step = self.epoch + 1, 0
        rate = learning_rate_at(self.epoch * steps - 1, total_steps, self.learning_rate, self.recipe)
        loss, accuracy = (self.totals / steps).tolist()
        return {"epoch": self.epoch, "rate": rate, "loss": loss, "accuracy": accuracy}

    def train_step(self, batch: Batch, learning_rate: float) -> Tensor:
        """One update of the weights. Returns the loss and the accuracy on the batch, ``[2]``."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            loss, logits = self.objective(self.parallel_model, batch)
        self.model.zero_grad(set_to_none=True)
        loss.backward()
        if self.recipe.optimiser != "adam":
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        set_learning_rate(self.optimisers, learning_rate)
        for optimiser in self.optimisers:
            optimiser.step()
        if self.ema is not None:
            self.ema.update_parameters(self.model)
        accuracy = (logits.detach().argmax(1) == batch.labels).float().mean()
        return torch.stack([loss.detach(), accuracy])

    def validate(self, validation: ImageDataset) -> dict[str, float]:
        """Accuracy at each patch size, as ``validation_SIZE``, in [0, 1]."""
        network = self.trained_network
        return {
            f"validation_{p}": predict(network, validation, self.preset, p).accuracy for p in self.recipe.patch_sizes
        }

    @property
    def trained_network(self) -> nn.Module:
        """The network to evaluate and export: the moving average if there is one, without a student's extra maps."""
        network = self.ema.module if self.ema is not None else self.model
        return network.vit if isinstance(network, Student) else network

    def save(self) -> None:
        """Writes the state from which ``resume`` continues."""
        state = {
            "settings": self.settings,
            "model": self.model.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "average": self.ema.state_dict() if self.ema is not None else {},
            "epoch": self.epoch,
            "step": self.step,
            "sums": self.totals,
            "seconds": self.seconds,
            "random": get_random_state(self.device),
        }
        save_state(self.state_path, state)

    def resume(self) -> bool:
        """Restores the last saved state.

        Returns:
            False if there is none.

        Raises:
            InputError: If it belongs to a run with another seed, length, learning rate, recipe, network or data.
        """
        if not self.state_path.exists():
            return False
        state = load_state(self.state_path, self.settings, self.device)
        self.model.load_state_dict(state["model"])
        for optimiser, saved in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
        if self.ema is not None:
            self.ema.load_state_dict(state["average"])
        self.epoch, self.step, self.seconds = state["epoch"], state["step"], state["seconds"]
        self.totals = state["sums"].cpu()
        set_random_state(state["random"], self.device)
        return True


def _progress(description: str, done: int, total: int, unit: str, *, nested: bool = False) -> tqdm:
    """A progress bar in the first process, and a silent one in all others."""
    return tqdm(
        total=total, initial=done, desc=description, unit=unit, disable=rank() > 0,
        leave=not nested, position=1 if nested else 0,
    )  # fmt: skip
