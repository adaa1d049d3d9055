"""The documents that the page links to, as a browser gets them."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from urllib.parse import quote

import pytest

from vit_demo.web.catalog.method_docs import LANGUAGES, lesson, to_html

from ..http_requests import request

TITLES = {"en": "Lessons", "es": "Lecciones", "zh": "课程", "de": "Aufgaben", "fr": "Leçons"}


def get(page, path: str) -> str:
    status, headers, reply = request(page, "GET", path)
    assert status == 200 and headers["content-type"] == "text/html; charset=utf-8"
    return reply.decode()


@pytest.mark.parametrize("language", LANGUAGES)
def test_lessons_are_in_the_language_that_is_asked_for(page, language):
    html = get(page, f"/lessons?language={language}")
    assert f'<html lang="{language}">' in html and f"<title>{TITLES[language]} – vit_demo</title>" in html


@pytest.mark.parametrize(
    "query", ["", "?language=", "?language=it", "?language=DE", "?language=../api", "?language=md"]
)
def test_any_other_language_is_english(page, query):
    assert get(page, f"/lessons{query}") == get(page, "/lessons?language=en")


@pytest.mark.parametrize("language", ["", *LANGUAGES, "it", "../api"])
def test_one_lesson_is_sent_in_the_language_that_is_asked_for(page, language):
    status, _, reply = request(page, "GET", f"/lessons/6?language={language}")
    assert status == 200 and json.loads(reply) == lesson(6, language if language in LANGUAGES else "en")


@pytest.mark.parametrize("number", ["0", "15", "000000", "999999"])
def test_a_lesson_that_does_not_exist_gets_a_sentence(page, number):
    status, headers, reply = request(page, "GET", f"/lessons/{number}")
    assert status == 404 and headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.decode() == f"There is no lesson {int(number)}: choose one from 1 to 14."


@pytest.mark.parametrize("number", ["-1", "1.0", "1e3", "٣", "6/", "6/7", "6x", "1234567", "9" * 200, "%00", "x/../6"])
def test_what_is_no_number_of_a_lesson_is_refused(page, number):
    status, _, reply = request(page, "GET", quote(f"/lessons/{number}", safe="/%"))
    assert status == 404 and b"Not found." in reply


@pytest.mark.parametrize(("path", "title"), [("/api", "API"), ("/faithfulness", "Faithfulness benchmark")])
def test_other_documents_are_english(page, path, title):
    html = get(page, path)
    assert html == get(page, f"{path}?language=de")
    assert '<html lang="en">' in html and f"<title>{title} – vit_demo</title>" in html


@pytest.mark.parametrize("path", ["/api", "/faithfulness", "/lessons?language=zh"])
def test_no_script_runs_but_the_one_of_the_template(page, path):
    html = get(page, path)
    (script,) = re.findall("<script>(.*?)</script>", html, re.DOTALL)
    (policy,) = re.findall('<meta http-equiv="Content-Security-Policy" content="(.*?)">', html)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy and "default-src 'none';" in policy
    assert html.index(policy) < html.index("<script>")
    assert "<script" not in to_html("<script>alert(1)</script>")
