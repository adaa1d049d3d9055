import io
import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import transformers
from PIL import Image

import vit_demo
from vit_demo.cli import main, output
from vit_demo.render import contact_sheet

TINY = ["--preset", "digits-tiny", "--patch-size", "7"]


@pytest.mark.parametrize(
    ("method", "label"),
    [("attention", None), ("rollout", None), ("relevance", None), ("relevance", "1"), ("occlusion", None)],
)
def test_explain_prints_the_top_five_and_writes_the_pictures(seven, tmp_path, capsys, method, label):
    out, about = tmp_path / "out", ["--label", label] if label else []
    assert main(["explain", str(seven), *TINY, "--method", method, *about, "--out", str(out)]) == 0
    printed = capsys.readouterr().out.splitlines()
    expected = vit_demo.explore(seven, "digits-tiny", patch_size=7)
    assert [line.split()[0] for line in printed[:5]] == [label for label, _ in expected.top(5)]
    assert printed[0].split()[0] == "7"
    shown_name = f"{method}-{label}" if label else method
    assert printed[5:8] == [str(out / f"seven-{name}.png") for name in ("input", shown_name, "heads")]
    assert printed[8] == "Model: digits-tiny, patches of 7 px." and printed[9].endswith(
        ": 0, 1, 2, 3, 4, 5, 6, 7, 8, 9."
    )
    for name in ("input", shown_name, "heads"):
        assert Image.open(out / f"seven-{name}.png").size[0] >= 28
    shown = np.asarray(Image.open(out / f"seven-{shown_name}.png"))
    assert np.array_equal(shown, np.asarray(expected.overlay(expected.heatmap(method, label), method=method)))
    assert not label or not np.array_equal(shown, np.asarray(expected.overlay(expected.heatmap(method), method=method)))


def test_the_picture_decides_which_model_reads_it(seven, photo, capsys, tmp_path):
    command = ["explain", str(seven), str(photo)]
    assert main([*command, "--json"]) == 0
    digit, lion = map(json.loads, capsys.readouterr().out.splitlines())
    assert (digit["preset"], digit["predictions"][0]["label"]) == ("digits-small", "7")
    assert (lion["preset"], lion["predictions"][0]["label"]) == ("photos-tiny", "lion")
    assert lion["labels"] == list(vit_demo.presets()["photos-tiny"].labels)
    assert main([*command, "--out", str(tmp_path), "--html", str(tmp_path / "r.html")]) == 0
    out, report = capsys.readouterr().out, (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Model: digits-small, patches of 4 px." in out and "Model: photos-tiny, patches of 12 px." in out
    sentence = "knows 50 classes and takes anything else for one of them"
    assert f"photos-tiny {sentence}: " in out and f"The model {sentence}." in report and "(digits-small)" in report
    assert main([*command, "--json", "--patch-size", "7"]) == 2, "no size of the photo's model"
    digit, lion = map(json.loads, capsys.readouterr().out.splitlines())
    assert digit["patch_size"] == 7 and "no patch size 7" in lion["error"] and lion["image"] == str(photo)
    assert main(["compare", str(seven), "--json", "--out", str(tmp_path)]) == 0
    assert {entry["preset"] for entry in json.loads(capsys.readouterr().out)} == {"digits-small"}


def test_low_confidence_is_said_of_probabilities_alone(seven, photo, tmp_path, capsys):
    grey, out = tmp_path / "grey.png", tmp_path / "out"
    Image.new("RGB", (60, 60), "grey").save(grey)
    command = ["explain", str(grey), str(photo), "--preset", "photos-tiny", "--method", "rollout"]
    assert main([*command, "--out", str(out)]) == 0
    printed = capsys.readouterr().out.splitlines()
    sure, unsure = (f"Model: photos-tiny, patches of 12 px{end}" for end in (".", "; low confidence."))
    assert printed.index(unsure) < printed.index(str(photo)) < printed.index(sure)
    shape = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3, "image_size": 32, "patch_size": 8}
    scores = transformers.ViTConfig(**shape, intermediate_size=32, num_labels=1, problem_type="regression")
    transformers.ViTForImageClassification(scores).save_pretrained(tmp_path / "scores")
    transformers.Dinov2Model(transformers.Dinov2Config(**shape)).save_pretrained(tmp_path / "headless")
    for name in ("scores", "headless"):  # a number that is no probability, and no classes at all
        command = ["explain", str(seven), "--preset", str(tmp_path / name), "--method", "rollout"]
        assert main([*command, "--out", str(out), "--html", str(tmp_path / "r.html"), "--faithfulness"]) == 0
        printed = capsys.readouterr().out.splitlines()
        assert f"Model: {tmp_path / name}, patches of 8 px." in printed
        assert (len(printed) > 5) == (name == "scores") and "low confidence" not in "".join(printed)
        assert "ollout of " in (tmp_path / "r.html").read_text(encoding="utf-8")
        assert main([*command, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert len(found["predictions"]) == (name == "scores") and found["is_confident"] is False
        assert main(["compare", *command[1:], "--out", str(out), "--json"]) == 0
        [entry] = json.loads(capsys.readouterr().out)
        assert np.isfinite(entry["maps"]["rollout"]["values"]).all()
    refused = ["--method", "relevance", "--label", "x"]
    assert main(["explain", str(seven), "--preset", str(tmp_path / "headless"), *refused]) == 2
    assert "headless has no classes" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["explain", "compare"])
def test_a_label_that_no_method_uses_is_refused(seven, capsys, tmp_path, command):
    given = [command, str(seven), "--label", "3", "--out", str(tmp_path)]
    assert main([*given, "--method", "rollout,attention"]) == 2
    assert "--label does not apply to rollout, attention: add --method relevance" in capsys.readouterr().err
    assert main([*given, "--method", "rollout,relevance"]) == 0


def test_explain_compares_two_classes(seven, capsys, tmp_path):
    command = ["explain", str(seven), *TINY, "--label", "7", "--against", "1", "--json"]
    assert main([*command, "--method", "relevance,rollout", "--html", str(tmp_path / "r.html")]) == 0
    maps = json.loads(capsys.readouterr().out)["maps"]
    ex = vit_demo.explore(seven, "digits-tiny", patch_size=7)
    np.testing.assert_allclose(maps["relevance"]["values"], ex.heatmap("relevance", "7", against="1"), atol=1e-6)
    assert maps["relevance"]["against"] == "1" and maps["rollout"]["against"] is None
    assert "for 7 rather than 1" in (tmp_path / "r.html").read_text(encoding="utf-8")
    command = ["explain", str(seven), *TINY, "--against", "7", "--json", "--method"]
    for method, words in (("rollout", "--against does not apply to rollout"), ("relevance", "compared with itself")):
        assert main([*command, method]) == 2
        assert words in capsys.readouterr().err


def test_json_holds_the_true_values_of_every_registered_method(seven, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    every = list(vit_demo.methods())
    command = ["explain", str(seven), *TINY, "--json", "--label", "1"]
    assert main([*command, "--method", ",".join(every[:2]), "--method", every[0], "--method", ",".join(every[2:])]) == 0
    [line] = capsys.readouterr().out.splitlines()
    found, expected = json.loads(line), vit_demo.explore(seven, "digits-tiny", patch_size=7)
    assert found["image"] == str(seven) and found["grid"] == [4, 4] and found["is_confident"] is True
    assert [(p["label"], p["probability"]) for p in found["predictions"]] == expected.top(5)
    assert list(found["maps"]) == every
    for name, method in vit_demo.methods().items():
        values = np.float32(found["maps"][name]["values"])
        label = "1" if method.class_specific else None
        assert np.array_equal(values, expected.heatmap(name, label)), "to the last bit"
        assert found["maps"][name]["label"] == label
    assert found["files"] == [] and not (tmp_path / "out").exists(), "no pictures unless --out is given"


def test_block_head_and_query_apply_to_the_methods_that_have_them(seven, tmp_path, capsys):
    out = tmp_path / "out"
    chosen = ["--block", "2", "--head", "1", "--query", "3,2"]
    command = ["explain", str(seven), *TINY, "--method", "attention,rollout,relevance", *chosen]
    assert main([*command, "--json", "--out", str(out), "--html", str(tmp_path / "r.html")]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    maps, expected = json.loads(line)["maps"], vit_demo.explore(seven, "digits-tiny", patch_size=7)
    for name, wanted, options in (
        ("attention", expected.attention(2, 1, (3, 2)), {"block": 2, "head": 1, "query": [3, 2]}),
        ("rollout", expected.rollout((3, 2)), {"query": [3, 2]}),
        ("relevance", expected.relevance(), {}),
    ):
        assert np.array_equal(np.float32(maps[name]["values"]), wanted) and maps[name]["options"] == options
    heads = np.asarray(Image.open(out / "seven-heads.png"))
    assert np.array_equal(heads, np.asarray(contact_sheet(expected.image, expected.attention_maps((3, 2)))))
    assert "block 2, head 1, query (3, 2)" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert main(["explain", str(seven), *TINY, "--method", "attention", "--direction", "to", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["maps"]["attention"]["values"]
    assert np.array_equal(np.float32(values), expected.attention(direction="to"))


def test_a_folder_is_explained_and_a_bad_file_in_it_reported(pictures, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["explain", str(pictures), *TINY, "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"vit_demo: {pictures / 'b.jpg'}: ") and printed.err.count("\n") == 1
    headings = [line for line in printed.out.splitlines() if line.startswith(str(pictures))]
    assert headings == [str(pictures / name) for name in ("a.png", "c.PNG")], "those directly in the folder"
    assert {path.name for path in out.glob("*-libra_fullgrad.png")} == {"a-libra_fullgrad.png", "c-libra_fullgrad.png"}


def test_patterns_and_files_each_once_with_files_of_their_own(pictures, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = [str(pictures / "**/*.png"), str(pictures / "a.png"), str(pictures / "c.PNG")]
    assert main(["explain", *arguments, *TINY, "--json", "--out", str(out)]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["image"] for one in found] == [str(pictures / name) for name in ("a.png", "more/a.png", "c.PNG")]
    files = [file for one in found for file in one["files"]]
    assert len(files) == len(set(files)) == 9 and str(out / "a-2-libra_fullgrad.png") in files


def test_explain_reads_standard_input(seven, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(seven.read_bytes())))
    command = ["explain", "-", *TINY, "--out", str(tmp_path)]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("7 ") and (tmp_path / "image-libra_fullgrad.png").is_file()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"no picture")))
    assert main(command) == 2


def test_a_bar_moves_within_each_map():
    bar = SimpleNamespace(refresh=lambda: None, set_description_str=lambda *_, **__: None)
    move = output.map_progress(bar, "seven.png", 3)
    places = [bar.n, *((move(done, total), bar.n)[1] for done, total in ((1, 4), (4, 4), (0, 0)))]
    assert places == [3, 3.25, 4, 3]


def test_the_progress_bar_is_on_a_terminal_only(seven, tmp_path, capsys, monkeypatch):
    command = ["explain", str(seven), *TINY, "--method", "occlusion", "--json"]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(command) == 0
    assert "seven.png   0% |" in terminal.getvalue()
    assert json.loads(capsys.readouterr().out)["image"] == str(seven), "the bar is not in the output"


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "nowhere.png"],
        ["explain", "nowhere/*.png"],
        ["explain", "FOLDER/more/empty"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--method", "relevance", "--label", "ten"],
        ["explain", "SEVEN", "--preset", "vit-9000"],
        ["explain", "SEVEN", "--method", "rollout,magic"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--method", "relevance", "--head", "1"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--method", "attention", "--block", "9"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--query", "0,9"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--patch-size", "5"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--out", "SEVEN/out"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--html", "FOLDER"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--without-heads", "9.0"],
        ["heads", "FOLDER"],
        ["heads", "SEVEN", "--preset", "digits-tiny", "--without-heads", "0.9"],
        ["heads", "SEVEN", "--preset", "digits-tiny", "--label", "ten"],
        ["heads", "SEVEN", "--preset", "digits-tiny", "--label", "1", "--against", "1"],
        ["compare", "nowhere.png"],
        ["compare", "FOLDER"],
        ["compare", "SEVEN", "--preset", "digits-tiny,photos-tiny", "--patch-size", "4"],
        ["compare", "SEVEN", "--preset", "digits-tiny,photos-tiny", "--patch-size", "4,12,13"],
        ["evaluate", "digits-tiny", "--data", "nowhere", "--patch-size", "3"],
        ["evaluate", "vit-9000", "--data", "nowhere"],
    ],
)
def test_invalid_input_is_one_line_on_stderr_and_exit_code_2(arguments, seven, pictures, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (pictures / "more" / "empty").mkdir()
    assert main([a.replace("SEVEN", str(seven)).replace("FOLDER", str(pictures)) for a in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("vit_demo: ") and error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["explain"],
        ["fly"],
        ["gallery", "x.png"],
        ["compare", "x.png", "--patch-size", "4,x"],
        ["explain", "x.png", "--query", "3"],
        *(
            ["explain", "x.png", "--without-heads", text]
            for text in ("", "2", "2.1,2.1", "02.1", "-1.0", "2.1,", "٢.1")
        ),
        ["heads", "x.png", "--without-heads", ",".join(f"{i}.0" for i in range(10_000))],
    ],
)
def test_a_wrong_command_is_one_line_on_stderr_and_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_a_bug_keeps_its_traceback(seven, tmp_path, monkeypatch, error):
    def break_down(*_):
        raise error("a bug")

    monkeypatch.setattr("vit_demo.render.contact_sheet", break_down)
    with pytest.raises(error, match="a bug"):
        main(["explain", str(seven), "--preset", "digits-tiny", "--out", str(tmp_path)])


def test_the_options_of_a_method_are_given_by_name(seven, capsys):
    given = ["--method", "occlusion,local_surrogate", "--option", "window=3", "--option", "with_hint=false"]
    assert main(["explain", str(seven), *TINY, *given, "--option", "budget=64", "--json"]) == 0
    maps = json.loads(capsys.readouterr().out)["maps"]
    expected = vit_demo.explore(seven, "digits-tiny", patch_size=7)
    for method, options in (("occlusion", {"window": 3}), ("local_surrogate", {"with_hint": False, "budget": 64})):
        assert maps[method]["options"] == options
        assert np.array_equal(np.float32(maps[method]["values"]), expected.heatmap(method, **options))
        assert not np.array_equal(expected.heatmap(method), expected.heatmap(method, **options))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("windows=3", "None of the chosen methods has an option 'windows': choose from window."),
        ("window=0", "window must be a whole number from 1 to 99, not 0."),
        ("window=wide", "window must be a whole number from 1 to 99, not 'wide'."),
    ],
)
def test_an_option_that_is_wrong_is_refused_before_anything_is_done(seven, tmp_path, capsys, option, words):
    command = ["explain", str(seven), *TINY, "--method", "occlusion", "--out", str(tmp_path / "out")]
    assert main([*command, "--option", option]) == 2
    assert words in capsys.readouterr().err


def test_a_map_is_tested_for_faithfulness(seven, tmp_path, capsys):
    command = ["explain", str(seven), *TINY, "--method", "rollout,relevance", "--label", "1", "--faithfulness"]
    assert main([*command, "--json", "--html", str(tmp_path / "r.html")]) == 0
    maps = json.loads(capsys.readouterr().out)["maps"]
    expected = vit_demo.explore(seven, "digits-tiny", patch_size=7)
    for method, label in (("rollout", None), ("relevance", "1")):
        found = expected.faithfulness(method, label=label)
        assert maps[method]["faithfulness"] == {
            name: getattr(found, name)
            for name in ("deletion_area", "random_deletion_area", "insertion_area", "random_insertion_area")
        }
        line = f"deletion {found.deletion_area:.3f} (random {found.random_deletion_area:.3f})"
        assert line in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert main([*command, "--out", str(tmp_path)]) == 0
    assert f"relevance: {line}" in capsys.readouterr().out


def test_maps_of_two_classes_do_not_overwrite_each_other(seven, tmp_path, capsys):
    command = ["explain", str(seven), *TINY, "--method", "rollout,relevance", "--out", str(tmp_path)]
    for label in ("1", "7"):
        assert main([*command, "--label", label]) == 0
    assert main([*command, "--label", "7", "--against", "1"]) == 0
    names = ("input", "rollout", "relevance-1", "relevance-7", "relevance-7-1", "heads")
    assert {path.name for path in tmp_path.iterdir()} == {"seven.png", *(f"seven-{name}.png" for name in names)}
    ex = vit_demo.explore(seven, "digits-tiny", patch_size=7)
    for label in ("1", "7"):
        shown = np.asarray(Image.open(tmp_path / f"seven-relevance-{label}.png"))
        assert np.array_equal(shown, np.asarray(ex.overlay(ex.relevance(label), method="relevance")))


def test_the_device_is_chosen(seven, tmp_path, capsys):
    for command in ("explain", "compare"):
        given = [command, str(seven), "--preset", "digits-tiny", "--json", "--out", str(tmp_path)]
        assert main([*given, "--device", "cpu"]) == 0
        assert main([*given, "--device", "abacus"]) == 2
        assert "This machine has no device 'abacus': choose" in capsys.readouterr().err


def test_it_starts_no_workers_of_the_server(seven, capsys):
    before = threading.active_count()
    assert main(["explain", str(seven), *TINY, "--json", "--method", "occlusion"]) == 0
    assert threading.active_count() == before
