"""The corpus of hostile pictures: each gives a picture or one sentence, in little memory and time."""

import json

import pytest

from .bombs import run_without_torch
from .corpus import ENDED_BY_THE_KERNEL, corpus

# In one process, whose peak of memory is that of the worst file; with the memory limit of the process
# that decodes a visitor's picture, but not its limit on processor time, which would be that of all files together.
READ = """
import json, pathlib, resource, sys, time
from vit_demo.images import decoder

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

resource.setrlimit(resource.RLIMIT_AS, (decoder.MAX_DECODER_MEMORY,) * 2)
outcomes, idle = {}, peak()
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    started = time.process_time()
    try:
        outcome = decoder.decode(path.read_bytes()).mode
    except ValueError as error:
        outcome = str(error)
    except MemoryError:
        outcome = decoder.TOO_COMPLEX
    outcomes[path.name] = outcome, time.process_time() - started
print(json.dumps({"outcomes": outcomes, "megabytes": peak() - idle}))
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("corpus")
    for name, data in corpus().items():
        if name not in ENDED_BY_THE_KERNEL:
            (folder / name).write_bytes(data)
    return json.loads(run_without_torch(READ, folder))


def test_each_is_a_picture_or_one_sentence(report: dict) -> None:
    assert report["outcomes"].keys() | set(ENDED_BY_THE_KERNEL) == corpus().keys()
    for name, (outcome, _) in report["outcomes"].items():
        is_sentence = outcome.endswith(".") and "\n" not in outcome and "/" not in outcome and 20 < len(outcome) < 300
        assert outcome == "RGB" or is_sentence, (name, outcome)
    pictures = {name for name, (outcome, _) in report["outcomes"].items() if outcome == "RGB"}
    assert {"icc.jpg", "icc-cut-off.jpg", "mode-CMYK.jpeg", "polyglot-of-html.png"} <= pictures
    assert not pictures & {"entities.svg", "script.eps", "path.png", "empty.png", "bomb-100-megapixels.png"}


def test_none_takes_long_or_much_memory(report: dict) -> None:
    seconds = {name: seconds for name, (_, seconds) in report["outcomes"].items()}
    slowest = max(seconds, key=lambda name: seconds[name])
    # Of a plain picture of as many pixels as are accepted, whose time depends on the machine in the same way.
    assert seconds[slowest] < 4 * seconds["bomb-just-below.png"], (slowest, seconds[slowest])
    assert report["megabytes"] < 400
