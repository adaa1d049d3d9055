"""The documented endpoints, for ``gradio_client``, plain HTTP and MCP."""

import vit_demo.web.api.explanations  # noqa: F401  whose functions are endpoints
from vit_demo.web.api.endpoints import ENDPOINTS

__all__ = ["ENDPOINTS"]
