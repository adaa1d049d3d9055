"""The documented endpoints, for ``gradio_client``, plain HTTP and MCP."""

import vit_demo.web.api.endpoints  # noqa: F401  # importing it registers its functions
from vit_demo.web.api.registration import ENDPOINTS

__all__ = ["ENDPOINTS"]
