"""The environment of all tests: nothing that the user of this machine has set or downloaded is read or written."""

import os
import tempfile
from collections.abc import MutableMapping

SETTINGS = ("VIT_DEMO_", "GRADIO_", "HF_", "HUGGING", "TRANSFORMERS_", "SPACE_", "SSL_CERT_", "REQUESTS_CA_")
"""What the names of settings begin with that would change what the package does."""
OF_TESTS = {"VIT_DEMO_ORDER", "VIT_DEMO_DELAYS", "VIT_DEMO_EXAMPLES", "VIT_DEMO_CLICK_SEQUENCES"}


def set_apart(environment: MutableMapping[str, str], home: str) -> None:
    """Takes out what this user has set, and puts models of the Hub, and its token, elsewhere."""
    for name in [*environment]:
        if name not in OF_TESTS and (name.startswith(SETTINGS) or name.upper().endswith("_PROXY")):
            del environment[name]
    # Threads that wait for each other on a busy machine take five times the processor.
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HF_HOME": home}


HUB_HOME = tempfile.TemporaryDirectory(prefix="vit_demo-tests-")
set_apart(os.environ, HUB_HOME.name)  # also of every program that a test starts
