"""``gallery``: pictures under models and patch sizes as a site that needs no server."""

import argparse
from pathlib import Path

from vit_demo.cli import output, parser
from vit_demo.cli.compare import patch_sizes
from vit_demo.cli.explain import report_failure
from vit_demo.cli.pictures import find_pictures
from vit_demo.errors import ImageError, PresetError


def add(commands: parser.Commands) -> None:
    """Adds the command."""
    examples = [
        "photos/ --out site",
        "seven.png --preset digits-small,digits-tiny --patch-size 4,7 --out site",
        "photos/ --preset timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k --title 'Our photos' --out site",
    ]
    description = "write a site that shows pictures under models and patch sizes, without a server"
    command = parser.add_command(commands, "gallery", run, description, examples)
    command.add_argument(
        "images", nargs="+", metavar="PICTURE", help="a picture file, a folder, a pattern, or - for standard input"
    )
    command.add_argument("--out", type=Path, required=True, metavar="SITE", help="folder of the site")
    parser.add_combinations(command)
    parser.add_fit(command)
    parser.add_device(command)
    command.add_argument("--title", default="vit_demo gallery", metavar="TEXT", help="heading (default: %(default)s)")


def run(options: argparse.Namespace) -> bool:
    """Writes the site; returns whether a picture could not be used, which is reported and left out."""
    pictures = find_pictures(options.images)
    output.make_folder(options.out)
    from vit_demo.images import read_image
    from vit_demo.inference.explainer import Explainer
    from vit_demo.inference.inputs import default_preset
    from vit_demo.web.notebook.gallery import Gallery
    from vit_demo.weights import find_preset

    site, failed = Gallery(options.out, options.title), False
    explainers: dict[tuple[str, int], Explainer] = {}
    with output.progress_bar(len(pictures)) as bar:
        for picture in pictures:
            try:
                image = read_image(picture.read())
                presets = {name: find_preset(name) for name in options.preset or [default_preset(image)]}
                results = []
                for name in presets:
                    for size in patch_sizes(presets, name, options.patch_size):
                        if (name, size) not in explainers:
                            how = {"patch_size": size, "device": options.device, "fit": options.fit}
                            explainers[name, size] = Explainer(name, **how)
                        results.append(explainers[name, size](image))
                site.add(picture.name, results)
            except (ImageError, PresetError) as error:
                failed = True
                report_failure(picture, error, as_json=False, alone=len(pictures) == 1, more_to_do=True)
            bar.update()
    output.print_lines(str(site.write_index()))
    return failed
