"""The loop that every training shares: an update of the weights for each batch, at a learning rate that changes."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer


def updates(
    model: nn.Module,
    optimiser: Optimizer,
    batches: Iterable[tuple[Any, ...]],
    loss_of: Callable[..., tuple[Tensor, Any]],
    share: Callable[[int], float],
    *,
    first_step: int = 0,
    clip: bool = True,
) -> Iterator[Any]:
    """Updates the weights once for each batch, when the next value is asked for.

    Args:
        model: The network, which is in training mode while ``loss_of`` is called.
        optimiser: That of its parameters, with the peak learning rates.
        batches: The arguments of ``loss_of``.
        loss_of: Returns the loss of a batch, and what is yielded after the update.
        share: The share of the peak of the learning rates, in [0, 1], by the number of a step.
        first_step: The number of the first step.
        clip: Whether the norm of all gradients is limited to 1.
    """
    for group in optimiser.param_groups:
        group.setdefault("initial_lr", group["lr"])  # saved with the optimiser's state, as torch's schedules do
    for step, batch in enumerate(batches, first_step):
        for group in optimiser.param_groups:
            group["lr"] = group["initial_lr"] * share(step)
        model.train()
        loss, seen = loss_of(*batch)
        optimiser.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        yield seen
