"""What the Hub, or what stands between, may answer: each is said as it is, and what is cached whole needs none."""

from __future__ import annotations

import errno
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import constants

import vit_demo
from vit_demo.errors import CheckpointError, InputError
from vit_demo.weights.hub.download import fetch

from .hub_server import COMMIT, forgotten
from .model_folder import write_files

REPO, CONFIG = "some/model", "config.json"
PICTURE = np.random.default_rng(0).integers(0, 256, (80, 90, 3), np.uint8)
LOG_IN = {"Location": "http://login.invalid/", "X-Repo-Commit": None}
PAGE = {"Content-Type": "text/html", "X-Repo-Commit": None}


@pytest.fixture
def repositories(published, transformers_files):
    processor = "preprocessor_config.json"
    return {
        "timm": published.files,
        "transformers": transformers_files,
        "with an older processor": transformers_files | {"processor_config.json": transformers_files[processor]},
        "without a processor": {name: file for name, file in transformers_files.items() if name != processor},
    }


def stop(hub, monkeypatch, how):
    """From now on there is no Hub, or none that answers."""
    if how == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    elif how == "dead":
        hub.close()
    else:
        names = (CONFIG, "model.safetensors", "processor_config.json", "preprocessor_config.json", "tokenizer.json")
        status, headers = {"busy": (503, {}), "login": (200, PAGE), "too many": (429, {})}[how]
        hub.answers = dict.fromkeys(names, (status, headers))
    hub.seen.clear()


@pytest.mark.parametrize("suffix", ["", f"@{COMMIT}", "@main"])
@pytest.mark.parametrize("kind", ["timm", "transformers", "with an older processor", "without a processor"])
def test_what_is_cached_whole_needs_no_hub(hub, repositories, tmp_path, monkeypatch, kind, suffix):
    hub.repositories[REPO] = repositories[kind]
    revision = suffix.removeprefix("@") or "main"
    for name in repositories[kind]:  # as its own library leaves it, which asks for nothing else
        huggingface_hub.hf_hub_download(REPO, name, revision=revision, endpoint=hub.url, cache_dir=tmp_path / "cache")
    (tmp_path / "folder").mkdir()
    expected = vit_demo.explore(PICTURE, str(write_files(tmp_path / "folder", repositories[kind])))
    for how in ("offline", "busy", "too many", "login", "dead"):
        with monkeypatch.context() as patch, forgotten():
            stop(hub, patch, how)
            found = vit_demo.explore(PICTURE, REPO + suffix)
            np.testing.assert_allclose(found.logits, expected.logits, atol=1e-5, err_msg=how)
            assert hub.gets("model.safetensors") == 0, how


@pytest.mark.parametrize("missing", ["model.safetensors", CONFIG])
@pytest.mark.parametrize("how", ["offline", "dead", "busy"])
def test_what_is_not_cached_whole_is_refused(hub, repositories, tmp_path, monkeypatch, missing, how):
    hub.repositories[REPO] = repositories["transformers"]
    for name in hub.repositories[REPO].keys() - {missing}:
        huggingface_hub.hf_hub_download(REPO, name, endpoint=hub.url, cache_dir=tmp_path / "cache")
    stop(hub, monkeypatch, how)
    with pytest.raises(CheckpointError, match="cannot be downloaded, because"):
        vit_demo.explore(PICTURE, REPO)


@pytest.mark.parametrize("how", ["offline", "dead", "busy"])
def test_a_processor_that_was_cached_and_is_lost_is_not_left_out(hub, repositories, tmp_path, monkeypatch, how):
    hub.repositories[REPO] = repositories["transformers"]
    for name in hub.repositories[REPO]:
        path = huggingface_hub.hf_hub_download(REPO, name, endpoint=hub.url, cache_dir=tmp_path / "cache")
        if name == "preprocessor_config.json":
            Path(path).resolve().unlink()
    stop(hub, monkeypatch, how)
    with pytest.raises(CheckpointError, match="cannot be downloaded, because"):
        vit_demo.explore(PICTURE, REPO)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_processor_that_cannot_be_asked_for_is_not_left_out(hub, repositories, status):
    """Without it, the pixels would be others."""
    hub.repositories[REPO], hub.answers = repositories["transformers"], {"preprocessor_config.json": (status, {})}
    with pytest.raises(CheckpointError, match="because the Hub is busy"):
        vit_demo.explore(PICTURE, REPO)


@pytest.mark.parametrize("operation", ["unlink", "open"])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_damaged_file_that_cannot_be_mended_is_a_sentence(hub, repositories, monkeypatch, operation, trusted):
    hub.repositories[REPO] = repositories["timm"]
    path = fetch(REPO, CONFIG, "main", trusted=trusted)
    path.resolve().write_bytes(b"{}")

    def refuse(self, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr("vit_demo.weights.hub.download.Path", type("Kept", (type(path),), {operation: refuse}))
    with pytest.raises(CheckpointError) as refused:
        fetch(REPO, CONFIG, "main", trusted=trusted)
    words = (
        "it cannot be deleted; replace" if operation == "unlink" else "cannot be read (Read-only file system): check"
    )
    assert words in str(refused.value) and "\n" not in str(refused.value)
    assert (str(path) in str(refused.value)) == trusted, "no visitor learns where the cache is"


GATED = f"is gated: ask for access at {{}}/{REPO}, and log in with `hf auth login`."
TOKEN = "The Hub does not accept your token: log in again with `hf auth login`."
PORTAL = "What answers is not the Hub: log in to this network."
BUSY = "because the Hub is busy: try again in a few minutes, or choose the bundled photos-tiny"
ABSENT = "is not on the Hub, or not accessible to you"
ANSWERS = [
    (401, {"X-Error-Message": 'User Access Token "mine" is expired'}, TOKEN),
    (401, {"X-Error-Message": "Invalid credentials in Authorization header"}, TOKEN),
    (401, {}, TOKEN),
    (401, {"X-Error-Code": "GatedRepo"}, GATED),
    (403, {"X-Error-Code": "GatedRepo"}, GATED),
    (403, {"X-Error-Message": "Access to this resource is disabled."}, GATED),
    (403, {}, GATED),
    (404, {"X-Error-Code": "RepoNotFound"}, ABSENT),
    (404, {"X-Error-Code": "RevisionNotFound"}, "has no revision 'main'"),
    *((status, {}, BUSY) for status in (408, 429, 500, 502, 503, 504)),
    (200, PAGE, PORTAL),
    (302, LOG_IN, PORTAL),
    (511, {}, PORTAL),
    *((status, {}, BUSY) for status in (425, 501, 507, 520, 522, 525, 530)),
    *(
        (status, {}, f"because the Hub answers with status {status}: choose")
        for status in (400, 402, 405, 410, 416, 451)
    ),
    (404, {}, "because the Hub answers with status 404: choose"),
]


@pytest.mark.parametrize(("status", "headers", "words"), ANSWERS)
@pytest.mark.parametrize("trusted", [True, False])
def test_an_answer_is_said_as_it_is(hub, monkeypatch, status, headers, words, trusted):
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    hub.answers = {CONFIG: (status, headers)}
    with pytest.raises(CheckpointError) as refused:
        fetch(REPO, CONFIG, "main", trusted=trusted)
    said = str(refused.value)
    if not trusted:  # without the operator's token, and who cannot log in
        words = {GATED: "is not open to everyone: choose another model.", TOKEN: "not public: check its name."}.get(
            words, words
        )
        words = words.replace("accessible to you", "public")
        words = words.replace(PORTAL, "the Hub does not respond")
        assert hub.url not in said and "token" not in said and "hf auth" not in said
    assert words.format(hub.url) in said and said.endswith(".") and "\n" not in said and "Error" not in said


@pytest.mark.parametrize(("status", "words"), [(503, BUSY), (429, BUSY), (403, GATED)])
def test_an_answer_to_the_second_request_is_said_as_well(hub, repositories, monkeypatch, status, words):
    hub.repositories[REPO] = repositories["timm"]

    def refuse(*_: object, **__: object) -> None:
        hub.answers = {CONFIG: (status, {})}
        huggingface_hub.utils.hf_raise_for_status(
            huggingface_hub.utils.get_session().get(f"{hub.url}/{REPO}/resolve/main/{CONFIG}")
        )

    monkeypatch.setattr("huggingface_hub.file_download.http_get", refuse)
    with pytest.raises(CheckpointError) as refused:
        fetch(REPO, CONFIG, "main")
    assert words.format(hub.url) in str(refused.value)


@pytest.fixture
def fresh():
    """A client that reads the environment anew, before and after."""
    huggingface_hub.close_session()
    yield
    huggingface_hub.close_session()


SOCKS = 'A SOCKS proxy needs socksio: run pip install "httpx[socks]", or unset ALL_PROXY.'
ENVIRONMENT = [
    ({"HF_ENDPOINT": "hf-mirror.com"}, "HF_ENDPOINT is 'hf-mirror.com': write it like https://huggingface.co."),
    (
        {"HF_ENDPOINT": "localhost:8080/hub"},
        "HF_ENDPOINT is 'localhost:8080/hub': write it like https://huggingface.co.",
    ),
    ({"HF_ENDPOINT": "ftp://hub"}, "HF_ENDPOINT is 'ftp://hub': write it like https://huggingface.co."),
    ({"HF_ENDPOINT": "//hub"}, "HF_ENDPOINT is '//hub': write it like https://huggingface.co."),
    ({"ALL_PROXY": "socks5://127.0.0.1:9"}, SOCKS),
    ({"all_proxy": "socks5h://127.0.0.1:9"}, SOCKS),
    ({"HTTPS_PROXY": "SOCKS5://user:secret@127.0.0.1:9"}, SOCKS),
    ({"HTTP_PROXY": "socks4://127.0.0.1:9"}, "write it with http://, https:// or socks5://."),
    ({"https_proxy": "foo://127.0.0.1:9"}, "write it with http://, https:// or socks5://."),
    ({"SSL_CERT_FILE": "/nowhere/ca.pem"}, "set SSL_CERT_FILE to a file of those that your network needs."),
    ({"REQUESTS_CA_BUNDLE": "/nowhere/ca.pem"}, "set SSL_CERT_FILE to a file of those that your network needs."),
    *(
        ({"HF_ENDPOINT": url}, "write it like https://huggingface.co.")
        for url in (
            "https://",
            "http:///hub",
            "http://[::1",
            "http://hub:port",
            "http://hub:99999",
            " https://hub",
            "https://a hub",
            "https://hub?x=1",
            "https://hub#x",
            "'https://hub'",
        )
    ),
    *(
        ({"HTTP_PROXY": url}, "A proxy of this machine is no address: write it like http://host:3128.")
        for url in (
            " ",
            "http://",
            "http://proxy:port",
            "http://me:a b@proxy:1",
            "http://[::1",
            "http://pröxy",
            "proxy:0",
        )
    ),
    ({"all_proxy": "127.0.0.1:9", "no_proxy": "", "NO_PROXY": ""}, "The proxy of this machine does not answer"),
    ({"SSL_CERT_FILE": "/"}, "set SSL_CERT_FILE to a file of those that your network needs."),
    ({"HF_HUB_CACHE": "~/.cache/huggingface/hub"}, "There is no home folder for what is downloaded: set HF_HOME"),
]


@pytest.mark.parametrize(("change", "words"), ENVIRONMENT)
@pytest.mark.parametrize("trusted", [True, False])
def test_a_setting_of_the_network_is_named(hub, fresh, monkeypatch, caplog, change, words, trusted):
    monkeypatch.setattr("vit_demo.checks.find_spec", lambda _: None)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CheckpointError) as refused:
        fetch(REPO, CONFIG, "main", trusted=trusted)
    said = str(refused.value)
    assert "\n" not in said and "Error" not in said
    if trusted or "HF_HOME" in words:
        assert words in said
    else:
        assert "the Hub does not respond" in said and words in caplog.text, "what only the operator can mend is logged"
    assert os.environ.get("SSL_CERT_FILE") == change.get("SSL_CERT_FILE"), "what the caller has set, and nothing else"


def test_the_page_without_its_proxy_is_a_sentence(tmp_path):
    environment = {
        **os.environ,
        "ALL_PROXY": "foo://user:secret@127.0.0.1:9",
        "PYTHONPATH": str(Path(vit_demo.__file__).parents[1]),
    }
    program = [sys.executable, "-m", "vit_demo", "serve"]
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "A proxy begins with foo://: write it" in done.stderr and "secret" not in done.stderr


@pytest.mark.parametrize("token", ["hf_schlüssel", "hf_a b", "hf_\x07", "“hf_mine”"])
def test_a_token_that_cannot_be_sent_is_named(hub, repositories, monkeypatch, token):
    hub.repositories[REPO] = repositories["timm"]
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(CheckpointError) as refused:
        fetch(REPO, CONFIG, "main")
    assert "The token of the Hub cannot be sent: log in again" in str(refused.value) and token not in str(refused.value)
    fetch(REPO, CONFIG, "main", trusted=False)


def test_a_token_that_cannot_be_read_is_named(hub, repositories, monkeypatch, tmp_path):
    hub.repositories[REPO] = repositories["timm"]
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CheckpointError, match="The token of the Hub cannot be sent"):
        fetch(REPO, CONFIG, "main")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_store_of_large_files_that_refuses_is_not_taken_for_the_hub(hub, repositories, monkeypatch, status, trusted):
    """An address that is signed for a while may be too old; nobody need ask for access."""
    hub.repositories[REPO], handler = repositories["timm"], hub.server.RequestHandlerClass
    respond = handler.respond

    def refuse(self, with_body: bool) -> None:
        self.head(status, 0, {}) if self.path.startswith("/moved") else respond(self, with_body)

    monkeypatch.setattr(handler, "respond", refuse)
    with pytest.raises(CheckpointError, match="because its store of large files refuses it: try again in a few"):
        fetch(REPO, "model.safetensors", "main", trusted=trusted)


def test_what_does_not_speak_https_is_no_matter_of_certificates(hub, fresh, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", hub.url.replace("http:", "https:"))
    with pytest.raises(CheckpointError, match="What answers does not speak HTTPS: check HF_ENDPOINT"):
        fetch(REPO, CONFIG, "main")


def test_a_proxy_that_refuses_is_named(fresh, monkeypatch):
    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            self.send_error(407)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_ENDPOINT", "https://hub.invalid")
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("NO_PROXY", "")
        with pytest.raises(
            CheckpointError, match="The proxy of this machine does not answer as one: check HTTPS_PROXY"
        ):
            fetch(REPO, CONFIG, "main")
        server.shutdown()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
@pytest.mark.parametrize("variable", [None, "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_certificate_is_trusted_if_its_owner_says_so(hub, repositories, fresh, tmp_path, monkeypatch, variable):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=hub -addext subjectAltName=IP:127.0.0.1"
    files = ["-out", str(certificate), "-keyout", str(key)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    hub.server.socket = context.wrap_socket(hub.server.socket, server_side=True)
    hub.repositories[REPO] = {CONFIG: repositories["timm"][CONFIG]}
    monkeypatch.setenv("HF_ENDPOINT", hub.url.replace("http:", "https:"))
    monkeypatch.setenv("SSL_CERT_FILE", "")
    monkeypatch.delenv("SSL_CERT_FILE")
    if variable:
        monkeypatch.setenv(variable, str(certificate))
        assert fetch(REPO, CONFIG, "main").read_bytes() == repositories["timm"][CONFIG]
        assert ("SSL_CERT_FILE" in os.environ) == (variable == "SSL_CERT_FILE")
    else:
        with pytest.raises(InputError, match="The Hub's certificate is not trusted here: set SSL_CERT_FILE to a file"):
            fetch(REPO, CONFIG, "main")
