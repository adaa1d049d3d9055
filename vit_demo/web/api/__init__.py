"""The documented endpoints, for ``gradio_client``, plain HTTP and MCP."""
