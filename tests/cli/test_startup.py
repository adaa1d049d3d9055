"""What help and the table of presets show is complete."""

import shlex

import pytest

import vit_demo
from vit_demo.cli import COMMANDS, build_parser, main
from vit_demo.cli.parser import method_names


def test_presets_are_listed(capsys):
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    sources = {line.split()[0]: line.split()[-1] for line in lines}
    assert list(sources) == list(vit_demo.presets())
    assert sources["photos-tiny"] == "bundled"
    assert sources["vit-ti16"] == "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k"


def test_the_methods_in_the_help_are_the_registered_ones(capsys):
    assert sorted(vit_demo.list_methods()) == method_names()
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    assert f"(default: libra_fullgrad): {', '.join(method_names())}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_parse(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    examples = capsys.readouterr().out.split("examples:\n")[1].splitlines()
    prefix = "  python -m vit_demo "
    assert examples and all(line.startswith(prefix + command) for line in examples)
    for line in examples:
        arguments = line.removeprefix(prefix).split(" > ")[0].split(" >> ")[0].split(" < ")[0]
        build_parser().parse_args(shlex.split(arguments))
