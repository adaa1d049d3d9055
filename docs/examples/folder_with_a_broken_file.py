"""Explains all photos of a folder, and skips files that are no pictures."""

from pathlib import Path

import vit_demo

explainer = vit_demo.Explainer("photos-tiny")
photos = sorted(Path("photos").iterdir())
for ex in explainer.batch(photos, on_error="skip"):
    print(ex.source, ex.top(1), ex.heatmap("libra_fullgrad").max())
