"""``python -m benchmarks NAME [options]``; without a name, the list."""

import importlib
import sys

BENCHMARKS = {
    "accuracy": ("digits.main", "digits of other pens, and cropped to their ink, beside what it was before"),
    "attention": ("attention.main", "time and memory of maps and explanations, compared with other libraries"),
    "audit": ("audit.main", "whether planted shortcuts are named and nothing else, and what an audit costs"),
    "cluster": ("cluster.main", "the page on Ray Serve, by the number of replicas, and when one is killed"),
    "coverage": ("coverage.main", "which networks of timm and transformers can be traced, and whether exactly"),
    "drawing": ("browser.drawing", "from the end of a stroke to the prediction, in a browser"),
    "faithfulness": ("faithfulness.main", "deletion and insertion areas of every method, beside chance"),
    "flood": ("flood.main", "what a visitor waits for while another floods the server"),
    "heads": ("heads.main", "effects and contributions of attention heads, beside a plain loop with hooks"),
    "library": ("library.main", "batches, busy machines and threads for one caller, beside plain loops of timm"),
    "live": ("live.main", "live answers of visitors who all draw, and an ordinary drawing beside them"),
    "load": ("load.main", "answers a second and waiting times of many visitors"),
    "memory": ("server.memory", "a server's memory while visitors bring one large repository after another"),
    "notebook": ("accuracy.notebook", "the MNIST notebook with its mistake, without it, and trained longer"),
    "page": ("browser.page", "the first visit: time, transferred kB, requests, layout shift; another patch size"),
    "patch_sizes": ("accuracy.patch_sizes", "a pretrained ViT at resampled patch sizes, compared with timm's"),
    "smallest_sets": ("smallest_sets.main", "how few patches are enough for a class, by the order they are tried in"),
    "startup": ("server.startup", "from `python app.py` to a usable page, and torch and Gradio alone"),
    "teach": ("teach.main", "right answers of networks that were taught with a few pictures, on others"),
    "training": (
        "training.main",
        "training in seconds, beside a plain loop; a drawing beside trainings",
    ),
    "variants": ("variants.main", "networks, folders and photos as people have them: right, said or refused"),
}
"""By name: module and function, and what is measured."""


def main() -> int:
    """Runs one benchmark, or lists all."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name not in BENCHMARKS:
        print("python -m benchmarks NAME [options]; NAME --help lists the options\n")
        print("\n".join(f"  {name:13} {what}" for name, (_, what) in BENCHMARKS.items()))
        return 0 if name in ("-h", "--help") else 2
    module, function = BENCHMARKS[name][0].split(".")
    sys.argv = [f"benchmarks {name}", *sys.argv[2:]]
    getattr(importlib.import_module(f"benchmarks.{module}"), function)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
