"""The log of a run: a CSV file with one row per epoch, and a plot of loss and accuracy."""

from __future__ import annotations

import csv
from pathlib import Path


class CSVLogger:
    """A CSV file with one row per epoch, and beside it a PNG file with the curves.

    Args:
        path: The CSV file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def clear(self) -> None:
        """Deletes the log of an earlier run."""
        self.path.unlink(missing_ok=True)

    def log(self, row: dict[str, float]) -> None:
        """Appends an epoch and updates the plot."""
        is_new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        self.plot(self.path.with_suffix(".png"))

    def rows(self) -> list[dict[str, float]]:
        """All epochs so far."""
        with self.path.open(newline="") as file:
            return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]

    def plot(self, path: Path) -> None:
        """Plots loss and accuracy over the epochs into a PNG file."""
        from matplotlib.figure import Figure

        rows = self.rows()
        epochs = [row["epoch"] for row in rows]
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(epochs, [row["loss"] for row in rows], marker=".")
        left.set(title="Training loss", xlabel="epoch", ylabel="loss")
        for key in (key for key in rows[0] if key == "accuracy" or key.startswith("validation_")):
            size = key.removeprefix("validation_")
            label = "training, augmented" if key == "accuracy" else f"validation, patch size {size}"
            right.plot(epochs, [100 * row[key] for row in rows], marker=".", label=label)
        right.set(title="Accuracy", xlabel="epoch", ylabel="%")
        right.legend(fontsize="small")
        for axes in (left, right):
            axes.grid(alpha=0.3)
        figure.savefig(path, dpi=110)
