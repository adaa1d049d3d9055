"""Runs app.py as a ZeroGPU Space does, with the real ``spaces`` package, on a machine without a GPU.

Started as a process by ``test_zero_gpu.py``. Two things differ from a Space: the lent GPU is the CPU, and
once the page is built, ``photos-tiny`` counts as a large network.
"""

import runpy
import sys

from spaces.zero import wrappers

wrappers.torch.init = lambda uuid: None  # would start CUDA in the fork
wrappers.torch.move = lambda callback=None: None  # would copy what the main thread has put on the emulated GPU

from vit_demo import accelerator  # noqa: E402
from vit_demo.service.engine import get_engine  # noqa: E402
from vit_demo.web import page  # noqa: E402
from vit_demo.web.catalog.menu import default_photo_preset  # noqa: E402

initial_stage = page.initial_stage


def initial_stage_then_lower_the_threshold(*arguments):
    try:
        return initial_stage(*arguments)
    finally:
        get_engine().warm_up(default_photo_preset()).result()  # which the page has started, as a small network's
        accelerator.ZERO_GPU_PARAMETERS = 1_500_000


page.initial_stage = initial_stage_then_lower_the_threshold
sys.argv = ["app.py"]
runpy.run_path("app.py", run_name="__main__")
