"""What a run leaves to look at: a line of CSV an epoch, and curves of loss and accuracy."""

from __future__ import annotations

import csv
from pathlib import Path


class Log:
    """A CSV file, one line an epoch, and beside it a picture of its curves.

    Args:
        path: Of the CSV file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def clear(self) -> None:
        """Forgets an earlier run."""
        self.path.unlink(missing_ok=True)

    def add(self, row: dict[str, float]) -> None:
        """Appends one epoch and draws the curves again."""
        is_new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        self.plot(self.path.with_suffix(".png"))

    def rows(self) -> list[dict[str, float]]:
        """Every epoch so far."""
        with self.path.open(newline="") as file:
            return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]

    def plot(self, path: Path) -> None:
        """Draws loss and accuracy over the epochs into a PNG file."""
        from matplotlib.figure import Figure

        rows = self.rows()
        epochs = [row["epoch"] for row in rows]
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(epochs, [row["loss"] for row in rows], marker=".")
        left.set(title="Loss on training images", xlabel="epoch", ylabel="cross-entropy, nats")
        for key in (key for key in rows[0] if key == "accuracy" or key.startswith("validation_")):
            name = "training, changed" if key == "accuracy" else f"validation, patch {key.removeprefix('validation_')}"
            right.plot(epochs, [100 * row[key] for row in rows], marker=".", label=name)
        right.set(title="Accuracy", xlabel="epoch", ylabel="per cent")
        right.legend(fontsize="small")
        for axes in (left, right):
            axes.grid(alpha=0.3)
        figure.savefig(path, dpi=110)
