"""``audit``: which pictures of a folder a model gets right, or wrong, for the wrong reason."""

import argparse
import json
from pathlib import Path

from vit_demo.cli import output, parser
from vit_demo.defaults import DEFAULT_METHOD


def add(commands: parser.Commands) -> None:
    """Adds the command."""
    examples = [
        "photos-tiny --pictures validation/ --out site",
        "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k --pictures val/ --masks masks/ --out site --limit 500",
        "photos-tiny --pictures validation/ --masks boxes.csv --out site --json",
    ]
    description = "find pictures that a model gets right, or wrong, for the wrong reason"
    command = parser.add_command(commands, "audit", run, description, examples)
    command.add_argument("model", metavar="MODEL", help="a preset, a repository of the Hub as org/name, or a folder")
    command.add_argument(
        "--pictures", required=True, type=Path, metavar="DIR",
        help="a folder of pictures, with a subfolder for each class if the classes are known",
    )  # fmt: skip
    command.add_argument(
        "--out", required=True, type=Path, metavar="SITE", help="folder of the report; a second run goes on"
    )
    command.add_argument(
        "--masks", type=Path, metavar="PATH",
        help="where the objects are: a folder of masks of the same names, a CSV of boxes, or COCO's JSON",
    )  # fmt: skip
    command.add_argument(
        "--method", default=DEFAULT_METHOD, metavar="M", help="explanation method (default: %(default)s)"
    )
    command.add_argument(
        "--against", metavar="CLASS", help="show the evidence for the prediction rather than for this class"
    )
    command.add_argument("--faithfulness", action="store_true", help="test each map, which takes many passes more")
    command.add_argument("--limit", type=int, metavar="N", help="at most so many pictures, spread evenly")
    command.add_argument("--batch-size", type=int, default=16, metavar="N", help="(default: %(default)s)")
    command.add_argument("--patch-size", type=int, metavar="N", help="in pixels (default: the model's)")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of the groups (default: %(default)s)")
    command.add_argument("--json", action="store_true", help="print the groups as JSON")
    parser.add_labels(command)
    parser.add_fit(command)
    parser.add_device(command)
    command.set_defaults(when_stopped=" Run it again to go on.")


def run(options: argparse.Namespace) -> bool:
    """Audits, writes the report, and prints what stands out; returns whether a picture could not be used."""
    from vit_demo.auditing import audit

    names: tuple[str, ...] = ("masks", "method", "against", "faithfulness", "batch_size", "limit", "seed", "out")
    names += ("patch_size", "device", "fit", "labels", "template")
    found = audit(options.model, options.pictures, **{name: getattr(options, name) for name in names})
    path = found.to_html(options.out)
    found.to_csv(options.out / "table.csv")
    if options.json:
        fields = ("label", "files", "accuracy", "why", "is_suspicious")
        groups = [{name: getattr(group, name) for name in fields} for group in found.groups]
        output.print_lines(json.dumps({"pictures": len(found.table), "groups": groups, "problems": found.problems}))
        return bool(found.problems)
    named = [group.why for group in found.groups if group.is_suspicious]
    output.print_lines(*(named or ["No group is suspicious, as far as maps can tell."]))
    output.print_lines(*(f"{name}: {problem}" for name, problem in found.problems[:10]), str(path))
    return bool(found.problems)
