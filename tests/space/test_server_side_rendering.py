"""Spaces turn server-side rendering on; here it stays off, because Node would answer without the guard's headers."""

from urllib.request import urlopen

from vit_demo.web.server import launch


def test_node_is_not_started_though_the_environment_demands_it(monkeypatch, tmp_path, free_port):
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    node.chmod(0o755)
    monkeypatch.setenv("GRADIO_SSR_MODE", "True")
    monkeypatch.setenv("GRADIO_NODE_PATH", str(node))
    page = launch("127.0.0.1", free_port, wait=False)
    try:
        assert not page.ssr_mode and not (tmp_path / "started").exists()
        with urlopen(page.local_url) as reply:
            assert "default-src 'self'" in reply.headers["content-security-policy"]
            assert '<meta property="og:title" content="vit_demo' in reply.read().decode()
    finally:
        page.close()
