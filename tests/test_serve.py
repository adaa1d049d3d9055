"""The page on Ray Serve: every answer is right, and killed replicas lose none. Needs the extra ``serve``."""

from urllib.request import urlopen

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs the extra `serve`")

from gradio_client import Client, handle_file
from ray.serve._private.api import call_user_app_builder_with_args_if_necessary as build_app

import vit_demo
from benchmarks.cluster import Cluster, draw
from vit_demo.serve import app
from vit_demo.web.catalog.example_digits import example_picture

from . import asynchronous
from .replies import check_teaching


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = Cluster()
    running.deploy(models=2, pages=2)
    yield running
    running.close()


def test_the_arguments_of_serve_run_are_checked_and_converted():
    assert build_app(app, {})._bound_deployment.name == "Page"
    assert build_app(app, {"pages": "2", "max_models": "8", "model_gpus": "0.5"})._bound_deployment.num_replicas == 2
    with pytest.raises(ValueError, match="pages"):
        build_app(app, {"pages": "0"})


def test_the_page_and_its_endpoints_answer_as_in_one_process(cluster, tmp_path):
    with urlopen(cluster.url) as reply:
        assert "default-src 'self'" in reply.headers["content-security-policy"]
        assert b"predictions" in reply.read()
    with urlopen(f"{cluster.url}/healthz") as reply:
        assert b'"device":"CPU' in reply.read()
    example_picture(3).save(tmp_path / "three.png")
    client = Client(cluster.url, verbose=False, headers={"x-session-id": "client"})
    expected = vit_demo.explore(tmp_path / "three.png", "digits-tiny", patch_size=7)
    for method in ("attention", "relevance", "occlusion"):
        found = client.predict(handle_file(tmp_path / "three.png"), "digits-tiny", 7, method, api_name="/explain")
        np.testing.assert_allclose(found["map"], expected.heatmap(method), atol=1e-5)
    with pytest.raises(Exception, match="no class 'ten'"):
        client.predict(handle_file(tmp_path / "three.png"), "digits-tiny", 7, label="ten", api_name="/explain")


def test_a_network_is_taught_and_explained_as_in_one_process(cluster):
    check_teaching(cluster.url, {"x-session-id": "pupil"})


def test_a_killed_model_replica_loses_no_answer_and_is_replaced(cluster):
    before = cluster.replicas("Models")
    load = asynchronous.run(draw(cluster.url, 6, 9, lambda: cluster.kill_one("Models")))
    assert load.failures == load.wrong == 0 and len(load.seconds) >= 6
    asynchronous.until(lambda: len(now := cluster.replicas("Models")) == 2 and before[0] not in now)


def test_a_killed_page_replica_costs_its_visitors_a_repeated_request(cluster):
    load = asynchronous.run(draw(cluster.url, 6, 9, lambda: cluster.kill_one("Page")))
    assert load.wrong == 0 and len(load.seconds) >= 6, "every drawing got its answer in the end"
