"""Where the objects are, in every spelling that people have: beside masks that are painted pixel by pixel."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

import vit_demo
from vit_demo.errors import InputError

MASK = np.zeros((16, 16), bool)
MASK[4:15, 2:9] = True
MASK[8, 2:16] = True
BOX = [2, 4, 9, 15]


def grey(numbers, mode="L"):
    return Image.fromarray(np.asarray(numbers, {"L": np.uint8, "I;16": np.uint16, "F": np.float32}[mode]))


def palette(numbers, *colours):
    picture = grey(numbers)
    picture.putpalette([value for colour in colours for value in colour])
    return picture


def with_border(inside, border):
    """``inside`` on the object, and what is around it 0 but a row of ``border`` far away."""
    numbers = np.where(MASK, inside, 0)
    numbers[0] = border
    return numbers


def cut_out(mode):
    picture = Image.effect_noise((16, 16), 90).convert("RGB").convert(mode)
    picture.putalpha(grey(255 * MASK))
    return picture


VOC = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]
MASKS = {
    "white": grey(255 * MASK),
    "of 0 and 1": grey(MASK),
    "of 16 bits": grey(65535 * MASK, "I;16"),
    "of 16 bits, 0 and 1": grey(MASK, "I;16"),
    "floats": grey(MASK, "F"),
    "bits": Image.fromarray(MASK),
    "number of a class": grey(17 * MASK),
    "number of a class with its border": grey(with_border(17, 255)),
    "trimap of pets": grey(np.where(MASK, 1, 2)),
    "trimap of pets with its border": grey(np.where(MASK, 1, np.where(np.arange(16) > 12, 3, 2))),
    "palette": palette(MASK, *VOC),
    "palette with the border": palette(with_border(3, 255), *VOC, *[(9, 9, 9)] * 251, (224, 224, 192)),
    "palette of greys": palette(MASK, (0, 0, 0), (255, 255, 255)),
    "palette of a white paper": palette(~MASK, (255, 255, 255), (0, 0, 0)),
    "cut out": cut_out("RGB"),
    "cut out of greys": cut_out("L"),
    "opaque": grey(255 * MASK).convert("RGBA"),
    "red on black": Image.fromarray(np.stack([255 * MASK.astype(np.uint8), 0 * MASK, 0 * MASK], 2).astype(np.uint8)),
}
ARRAYS = {
    "bool": MASK,
    "0 and 1": MASK.astype(np.uint8),
    "int64": MASK.astype(np.int64),
    "float": MASK.astype(float),
    "classes": 7 * MASK.astype(np.int64),
    "with an axis": MASK[:, :, None],
    "colours": np.stack([255 * MASK.astype(np.uint8)] * 3, 2),
}


@pytest.mark.parametrize("kind", [*MASKS, *ARRAYS])
def test_every_kind_of_mask_is_the_same_object(explainer, folder, tmp_path, kind):
    first = folder / "cat" / "00.png"
    expected = vit_demo.audit(explainer, {first: "cat"}, masks=[255 * MASK.astype(np.uint8)]).table[0]
    assert expected["object_area"] == pytest.approx(MASK.mean())
    masks = {"00": ARRAYS.get(kind)}
    if kind in MASKS:
        (tmp_path / "masks" / "cat").mkdir(parents=True)
        MASKS[kind].save(tmp_path / "masks" / "cat" / ("00.tif" if MASKS[kind].mode == "F" else "00.png"))
        masks = tmp_path / "masks"
    found = vit_demo.audit(explainer, folder, masks=masks, limit=1)
    assert not found.problems and found.table[0]["object_area"] == pytest.approx(expected["object_area"])
    assert found.table[0]["on_object"] == pytest.approx(expected["on_object"])


def test_greys_between_are_shares(explainer, folder):
    for numbers in (np.arange(256).reshape(16, 16), np.where(MASK, 255, 128), 257 * np.arange(256).reshape(16, 16)):
        found = vit_demo.audit(explainer, [folder / "cat" / "00.png"], masks=[numbers.astype(np.int64)])
        assert found.table[0]["object_area"] == pytest.approx(numbers.mean() / numbers.max(), abs=0.01)


def coco(tmp_path, boxes, categories=("cat", "dog", "person"), **image):
    about = {"images": [{"id": 7, "file_name": "cat/00.png", **image}]}
    about["categories"] = [{"id": n + 1, "name": name} for n, name in enumerate(categories)]
    about["annotations"] = [{"image_id": 7, "category_id": 1, **box} for box in boxes]
    (tmp_path / "coco.json").write_text(json.dumps(about))
    return tmp_path / "coco.json"


def table(tmp_path, *rows):
    (tmp_path / "boxes.csv").write_text(
        "\n".join(["file,left,top,right,bottom", *(f"cat/00.png,{row}" for row in rows)])
    )
    return tmp_path / "boxes.csv"


def boxes(edges, form, side=16):
    return pytest.importorskip("torchvision").tv_tensors.BoundingBoxes(edges, format=form, canvas_size=(side, side))


CAT, OTHER = {"bbox": [2, 4, 7, 11]}, {"bbox": [0, 0, 16, 16]}


@pytest.mark.parametrize(
    ("masks", "area"),
    [
        (lambda path: coco(path, [CAT, OTHER | {"category_id": 3}]), 77 / 256),
        (lambda path: coco(path, [CAT, OTHER | {"iscrowd": 1}]), 77 / 256),
        (lambda path: coco(path, [OTHER | {"category_id": 2}, CAT, CAT], ["Cat", "dog"]), 77 / 256),
        (lambda path: coco(path, [CAT | {"category_id": 2}], ["animal", "object"]), 77 / 256),
        (lambda path: coco(path, [CAT], width=16, height=16), 77 / 256),
        (lambda path: coco(path, [{"bbox": [20, 40, 70, 110]}], width=160, height=160), 77 / 256),
        (lambda path: coco(path, [{"bbox": [2 / 16, 4 / 16, 7 / 16, 11 / 16]}]), 77 / 256),
        (lambda path: table(path, "0.125,0.25,0.5625,0.9375"), 77 / 256),
        (lambda path: table(path, "0,0,0.5,1", "0.25,0,1,0.5"), 3 / 4),
        (lambda path: table(path, "5.2,3,5.6,9"), 0.4 * 6 / 256),
        (lambda path: table(path, "5.2,3,5.6,9", "5.4,3,6,9"), 0.8 * 6 / 256),
        (lambda path: table(path, "-1e30,4,inf,8"), 1 / 4),
        (lambda path: table(path, "-9,-9,99,99"), 1),
        (lambda path: {"cat/00": BOX}, 77 / 256),
        (lambda path: {"cat/00": [BOX, [9, 0, 16, 16]]}, (77 + 7 * 16) / 256),
        (lambda path: [tuple(np.array(BOX) / 16)], 77 / 256),
        (lambda path: [np.array(BOX)], 77 / 256),
        (lambda path: {"cat/00": torch.tensor([BOX, [9, 0, 16, 16]])}, (77 + 7 * 16) / 256),
        (lambda path: [torch.tensor([BOX], dtype=torch.bfloat16)], 77 / 256),
        (lambda path: [torch.tensor([BOX], dtype=torch.float32, requires_grad=True)], 77 / 256),
        (lambda path: [boxes([BOX], "XYXY")], 77 / 256),
        (lambda path: [boxes([[2, 4, 7, 11]], "XYWH")], 77 / 256),
        (lambda path: [boxes([[2, 4, 7, 11], [9, 0, 7, 16]], "XYWH")], (77 + 7 * 16) / 256),
        (lambda path: [boxes([[5.5, 9.5, 7, 11]], "CXCYWH")], 77 / 256),
        (lambda path: [boxes([[20, 40, 70, 110]], "XYWH", 160)], 77 / 256),
        (lambda path: coco(path, [CAT], width=0, height=0), 77 / 256),
        (lambda path: coco(path, [CAT], width=None, height=None), 77 / 256),
    ],
)  # fmt: skip
def test_every_kind_of_box_is_the_same_object(explainer, folder, tmp_path, masks, area):
    found = vit_demo.audit(explainer, folder, masks=masks(tmp_path), limit=1)
    assert not found.problems and found.table[0]["object_area"] == pytest.approx(area)


@pytest.mark.parametrize(
    ("masks", "words"),
    [
        (lambda path: table(path, "nan,1,5,9"), "nan, 1, 5, 9"),
        (lambda path: table(path, "9,9,3,3"), "9, 9, 3, 3"),
        (lambda path: table(path, "1,2,3,4", "20,3,30,9"), "20, 3, 30, 9"),
        (lambda path: table(path, "-9,-9,-1,-1"), "-9, -9, -1, -1"),
        (lambda path: table(path, "3,3,3,9"), "3, 3, 3, 9"),
        (lambda path: coco(path, [CAT], width=16, height=32), "16 x 32 pixels, and it has 16 x 16"),
        (lambda path: coco(path, [OTHER | {"category_id": 3}]), "boxes are of person, and it is counted as cat"),
        (lambda path: coco(path, [CAT, CAT | {"category_id": 2}], ["horse", "man"]), "of horse and man"),
        (lambda path: coco(path, [CAT | {"iscrowd": 1}]), "boxes are of nothing"),
        (lambda path: [np.arange(256).reshape(16, 16) % 5], "mask holds 0, 1, 2, 3 and more"),
        (lambda path: [np.where(MASK, np.nan, 1)], "mask holds"),
        (lambda path: [np.where(MASK, 26, 7)], "mask holds 7, 26"),
        (lambda path: [np.where(MASK, 5, 255)], "mask holds 5, 255"),
        (lambda path: [np.where(MASK, -1, 1)], "mask holds -1, 1"),
        (lambda path: [np.zeros((16, 16, 7))], "The mask"),
        (lambda path: [b"no mask"], "The mask"),
        (lambda path: [grey(255 * MASK).resize((8, 8))], "has 8 x 8 pixels and the picture 16 x 16"),
    ],
)
def test_what_is_no_object_is_told_with_its_file(explainer, folder, tmp_path, masks, words):
    found = vit_demo.audit(explainer, folder, masks=masks(tmp_path), limit=2)
    assert len(found.table) == 2 and found.table[0]["object_area"] is None
    assert [name for name, _ in found.problems] == ["cat/00.png"] and words in found.problems[0][1]


def share_of_view(path, upright):
    """The share of what photos-tiny sees of a picture that a mask ``[height, width]`` of the upright picture covers."""
    geometry = vit_demo.explore(path, "photos-tiny").geometry
    scale = upright.shape[1] / geometry.source_size[0]
    left, top, right, bottom = (round(edge * scale) for edge in geometry.box)
    return upright[top:bottom, left:right].mean()


NO_FILES = {
    "deep.json": "[" * 200_000,
    "endless.json": '{"images": [{"id": 1, "file_name": "a", "width": Infinity, "height": 1}], "annotations": '
    '[{"image_id": 1, "bbox": [0, 0, 1, 1]}]}',
    "large.json": f'{{"images": [{{"id": 1}}], "annotations": [{{"image_id": 1, "bbox": [0, 0, 1, 1{"0" * 400}]}}]}}',
    "wide.csv": f"file,left,top,right,bottom\n{'a' * 200_000},1,1,3,3\n",
}


@pytest.mark.parametrize("masks", [*NO_FILES, 5, True, {"00": [BOX, [1, 2]]}, {"00": list("abcd")}])
def test_what_cannot_be_read_as_masks_is_one_sentence(explainer, folder, tmp_path, masks):
    if masks in [*NO_FILES]:
        (tmp_path / masks).write_text(NO_FILES[masks])
        masks = tmp_path / masks
    with pytest.raises(InputError, match=r"holds no masks|Boxes are a list"):
        vit_demo.audit(explainer, folder, masks=masks)


@pytest.mark.parametrize("size", [(3000, 2000), (2049, 100), (2100, 4200), (600, 400)])
@pytest.mark.parametrize("kind", ["csv", "coco", "coco with sizes", "mask", "array", "image"])
def test_large_pictures_have_their_boxes_where_they_are(tmp_path, size, kind):
    path, (width, height) = tmp_path / "large.jpg", size
    picture = Image.linear_gradient("L").resize(size).convert("RGB")
    picture.save(path)
    box = [int(width * 0.55), int(height * 0.3), int(width * 0.7), int(height * 0.8)]
    upright = np.zeros((height, width), np.uint8)
    upright[box[1] : box[3], box[0] : box[2]] = 255
    given = {"array": np.asarray(picture), "image": picture}.get(kind, path)
    masks = [upright if kind in ("mask", "array") else box]
    if kind == "csv":
        (tmp_path / "boxes.csv").write_text(f"file,left,top,right,bottom\nlarge.jpg,{','.join(map(str, box))}")
        masks = tmp_path / "boxes.csv"
    if kind.startswith("coco"):
        about = {"file_name": "large.jpg", **({"width": width, "height": height} if "sizes" in kind else {})}
        masks = coco(tmp_path, [{"bbox": [*box[:2], box[2] - box[0], box[3] - box[1]]}], **about)
    found = vit_demo.audit("photos-tiny", [given], masks=masks)
    assert not found.problems
    assert found.table[0]["object_area"] == pytest.approx(share_of_view(given, upright / 255), abs=0.01)


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("kind", ["upright", "stored", "stored mask", "of half the size"])
def test_turned_photos_have_their_boxes_where_they_are(tmp_path, turn, kind):
    path, stored = tmp_path / "turned.jpg", Image.effect_noise((300, 200), 60).convert("RGB")
    stored.getexif()[274] = turn
    stored.save(path, exif=stored.getexif())
    painted = Image.new("L", (300, 200))
    painted.paste(255, (30, 20, 140, 190))
    upright = painted
    if kind != "upright" and turn > 4:  # others look the same stored and upright, and are taken as upright
        painted.getexif()[274] = turn
        upright = ImageOps.exif_transpose(painted)
    size, box = (300, 200), [30, 20, 140, 190]
    if kind == "upright" and turn > 4:
        size, box = (200, 300), [20, 30, 190, 140]
        upright = painted.transpose(Image.Transpose.TRANSPOSE)
    if kind == "of half the size":
        size, box = upright.size, upright.getbbox()
        size, box = (size[0] // 2, size[1] // 2), [edge / 2 for edge in box]
    about = {"file_name": "turned.jpg", "width": size[0], "height": size[1]}
    masks = coco(tmp_path, [{"bbox": [*box[:2], box[2] - box[0], box[3] - box[1]]}], **about)
    if kind == "stored mask":
        painted.save(tmp_path / "mask.png")
        masks = [tmp_path / "mask.png"]
    found = vit_demo.audit("photos-tiny", [path], masks=masks)
    assert not found.problems
    assert found.table[0]["object_area"] == pytest.approx(share_of_view(path, np.asarray(upright) / 255), abs=0.005)


def test_boxes_of_a_transform_are_in_what_it_gives(explainer, folder, tmp_path):
    wide = [Image.open(folder / "cat" / "00.png").resize((160, 90))] * 2
    found = vit_demo.audit(explainer, wide, masks=[BOX, 255 * MASK.astype(np.uint8)])
    assert not found.problems
    assert [row["object_area"] for row in found.table] == [pytest.approx(77 / 256), pytest.approx(MASK.mean())]
