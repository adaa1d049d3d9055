"""Class labels of custom models: sanitized, unique, quick to read."""

import json
import time

import pytest
import timm
from safetensors.torch import save

from vit_demo.weights import find_preset

from .model_folder import WEIGHTS_FILE, set_field, timm_files, write_files


@pytest.mark.parametrize("style", ["all alike", "all different"])
def test_20000_labels_are_read_at_once(tmp_path, style):
    count = 20_000
    files = timm_files()
    config = json.loads(files["config.json"]) | {"num_classes": count}
    network = timm.create_model("vit_tiny_patch16_224", num_classes=count, **config["model_args"])
    files[WEIGHTS_FILE] = save(network.state_dict())
    config["label_names"] = [f"label {i if style == 'all different' else 0}" for i in range(count)]
    write_files(tmp_path, files | {"config.json": json.dumps(config).encode()})
    started = time.thread_time()  # whatever else the machine does
    labels = find_preset(str(tmp_path)).labels
    assert time.thread_time() - started < 20, "each with each would take minutes"
    assert len(set(labels)) == len(labels) == count


def test_labels_are_cleaned_and_told_apart(timm_folder):
    set_field(timm_folder / "config.json", "label_names", value=["cat", "ca\u202et", "cat (0)"])
    assert find_preset(str(timm_folder)).labels == ("cat (0) (0)", "cat (1)", "cat (0)")
    set_field(timm_folder / "config.json", "label_names", value=["a\n\x00b\u2028c", "\ud800", "x" * 5000])
    labels = find_preset(str(timm_folder)).labels
    assert labels[:2] == ("a b c", "class 1") and len(labels[2]) == 100
    assert all(label.isprintable() for label in labels)
