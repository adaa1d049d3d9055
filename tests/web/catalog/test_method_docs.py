"""The section of the documentation about each method, as HTML for the page."""

import re

import pytest

from vit_demo.methods import METHODS
from vit_demo.web.catalog import method_docs
from vit_demo.web.catalog.method_docs import method_html, sections


def test_the_docs_explain_every_method_with_formula_and_source():
    assert {method.docs for method in METHODS.values()} <= set(sections())
    for method in METHODS:
        html = " ".join(method_html(method).split())
        assert "<code>" in html and ("https://arxiv.org/abs/" in html or "This package's own" in html)
        specific = "Depends on the class." if METHODS[method].class_specific else "Does not depend on the class."
        assert specific in html
        assert "`" not in html and "](" not in html and 500 < len(html) < 3200


@pytest.mark.parametrize("method", [*METHODS, method_docs.FEATURES])
def test_a_visitor_first_reads_two_sentences_and_a_formula(method):
    first, _, details = method_html(method).partition("<details>")
    sentences = re.sub(r"<pre>.*?</pre>", "", first, flags=re.DOTALL)
    assert len(re.findall(r"[.](?:\s|</p>)", sentences)) == 2 and first.count("<pre>") == 1
    assert "<a " not in first and "<summary>Source and details</summary>" in details


@pytest.fixture
def render(monkeypatch):
    """Renders a section with the given text."""

    def html(text: str) -> str:
        monkeypatch.setattr(method_docs, "sections", lambda: {"Relevance": text, method_docs.NOTATION: "N."})
        return method_html("relevance")

    return html


def test_markdown_becomes_html(render):
    html = render("A *star*, a **bold** `a*b* < c` [x](https://a.b/c_d).\n\nMore.")
    assert html.startswith("<p>A <em>star</em>, a <strong>bold</strong> <code>a*b* &lt; c</code> ")
    assert '<a href="https://a.b/c_d" target="_blank" rel="noopener">x</a>.</p>\n<p>More.</p>' in html
    assert "<pre><code>f\n</code></pre>\n<details>" in render("Plain.\n\n```\nf\n```\n\nMore.")


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b", "[x](javascript:alert(1))"]
)
def test_html_and_scripts_in_the_docs_stay_text(render, text):
    html = render(text)
    assert "<script" not in html and "<img" not in html and "href" not in html


def test_without_docs_the_error_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(method_docs, "DOCS", tmp_path)
    method_docs.sections.cache_clear()
    with pytest.raises(ValueError, match=r"not part of this installation"):
        method_html("rollout")
    method_docs.sections.cache_clear()


def test_a_method_links_to_its_first_row_of_the_board():
    html = method_docs.board_html()
    for method in METHODS:
        link = f'<a href="faithfulness#{method}"'
        assert link in method_html(method, method_docs.BOARD) and link not in method_html(method)
        assert html.count(f'id="{method}"') == 1
        first = html[html.index(f'id="{method}"') :]
        assert re.match(rf'id="{method}">\s*<td>(<code>)?{method}(</code>)?</td>\s*<td>-?\d', first)
    assert "faithfulness" not in method_html(method_docs.FEATURES, method_docs.BOARD)


def test_the_rank_of_a_method_is_its_row_of_the_board_and_of_a_network_its_place_there():
    ranks = method_docs.board_ranks()
    rows = [
        line.split("|")[1:11] for line in method_docs.read_document("faithfulness.md").splitlines() if "<a id" in line
    ]
    cells = {row[0].split("</a>")[1].strip(): row[1:] for row in rows}
    means = {name: sum(float(cell.split("±")[0]) for cell in cells[name]) / len(cells[name]) for name in METHODS}
    placed = {name: place for place, name in enumerate(sorted(means, key=means.get, reverse=True), 1)}
    assert ranks[""] == placed and set(placed) == set(METHODS)
    networks = ["vit-ti16", "photos-tiny", "digits-small"]  # three columns each
    for i, network in enumerate(networks):
        gains = {name: sum(float(cell.split("±")[0]) for cell in cells[name][3 * i : 3 * i + 3]) for name in METHODS}
        order = sorted(gains, key=gains.get, reverse=True)
        assert all(abs(ranks[network][name] - place) <= 1 for place, name in enumerate(order, 1)), "but for rounding"
    assert ranks.keys() == {"", *networks} and ranks["photos-tiny"] != ranks["digits-small"]


def test_anchors_of_the_file_are_rows_on_the_page(monkeypatch):
    table = (
        """| method | gain |\n|---|---|\n| <a id="rollout"></a>rollout | 0.1 |\n| <a id="edges"></a>edges | 0.0 |\n"""
    )
    monkeypatch.setattr(method_docs, "read_document", lambda name: table)
    html = re.sub(r"\s", "", method_docs.board_html())
    assert '<trid="rollout"><td>rollout</td><td>0.1</td></tr><trid="edges"><td>edges</td>' in html and "lt;" not in html


def test_a_method_that_is_not_on_the_board_links_to_its_beginning(monkeypatch):
    monkeypatch.setattr(method_docs, "read_document", lambda name: "# The board\n\n![plot](images/a.svg)\n")
    assert 'href="faithfulness"' in method_html("rollout", method_docs.BOARD)
    assert method_docs.board_html() == "<h1>The board</h1>\n<p>plot</p>\n"
