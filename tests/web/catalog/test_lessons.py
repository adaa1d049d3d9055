"""The lessons: their links, their translations, and that the numbers in their answers are those of the networks."""

import re
from html import unescape
from urllib.parse import parse_qs

import pytest

import vit_demo
from scripts.translations import read_language
from vit_demo.defaults import ENOUGH_SHARE
from vit_demo.web.catalog import method_docs
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.weights import PRESETS
from vit_demo.weights.costs import num_operations, num_tokens

SURE = ("4", pytest.approx(1, abs=0.001))


@pytest.mark.parametrize("language", method_docs.LANGUAGES)
def test_lessons_have_fourteen_links_to_this_page_and_as_many_folded_answers(language):
    html = method_docs.lessons_html(language)
    languages, _, lessons = html.partition("</nav>")
    links = re.findall(r'href="([^"]*)"', lessons)
    page = r"\./" if language == "en" else rf"\./\?language={language}"
    assert len(links) == 14 and "_blank" not in lessons
    assert all(re.fullmatch(page + f"#lesson={i}&amp;[a-z_]+=.+", link) for i, link in enumerate(links, 1))
    assert re.findall(r'href="([^"]*)"', languages) == [f"./lessons?language={code}" for code in method_docs.LANGUAGES]
    assert re.findall(r'lang="(\w+)"[^>]* aria-current=page', languages) == [language]
    answers = re.findall(r"<td><details><summary>(\w+)</summary>[^<]+</details></td>\s*</tr>", lessons)
    assert len(answers) == 14 and f"<th><details><summary>{answers[0]}</summary></details></th>" in lessons


def test_each_lesson_shows_what_its_link_opens():
    links = re.findall(r'<a href="\./(#lesson[^"]*)">(.*?)<span>', method_docs.lessons_html(), re.DOTALL)
    assert len(links) == 14
    for link, picture in links:
        fields = parse_qs(unescape(link)[1:])
        photo = fields.get("photo")
        assert picture.startswith(
            f'<img src="./gradio_api/vit_demo/examples/preview/{photo[0]}.webp"' if photo else "<svg"
        )
        assert not photo or photo[0] in EXAMPLE_PHOTOS
        if "digit" in fields and "build" not in link:
            cuts = 28 // int(fields["patch_size"][0]) - 1
            assert re.findall(r'class="line" d="([^"]*)"', picture)[0].count("M") == 2 * cuts, "the grid of its squares"
        assert ("thread" in picture) == ("lesson=2&" in unescape(link)), "the film's threads"


def lessons_of(language: str) -> list[str]:
    """What is before the table of lessons, then its rows."""
    document = method_docs.read_document("lessons.md" if language == "en" else f"lessons.{language}.md")
    intro, *rows = re.split(r"^\|", document, flags=re.MULTILINE)
    return [intro, *rows[2:]]


def numbers(text: str) -> list[float]:
    """The numbers of a text, without its addresses, in order of size, as each language puts its words in another."""
    found = re.findall(r"\d+(?:[.,]\d+)?", re.sub(r"\(http[^)]*\)", "", text))
    return sorted(float(number.replace(",", ".")) for number in found)


@pytest.mark.parametrize("language", sorted(method_docs.LANGUAGES.keys() - {"en"}))
def test_translated_lessons_have_the_links_numbers_and_labels_of_the_english_ones(language):
    quoted = re.compile('["„“«]\u00a0?(.*?)\u00a0?["“”»]', re.DOTALL)
    words = read_language(language)
    for english, translated in zip(lessons_of("en"), lessons_of(language), strict=True):
        for pattern in (r"\(http[^)]*\)", r"\|"):
            assert re.findall(pattern, translated) == re.findall(pattern, english), translated
        assert numbers(translated) == numbers(english), translated
        labels = [words[" ".join(label.split())] for label in quoted.findall(english)]
        found = [" ".join(label.split()) for label in quoted.findall(translated)]
        assert len(found) == len(labels), translated
        for label, shown in zip(labels, found, strict=True):
            assert re.match(rf"{re.escape(shown)}($|\W)", label), f"the page says {label}, not {shown}"


@pytest.mark.parametrize("language", method_docs.LANGUAGES)
def test_each_lesson_is_the_row_of_its_number(language):
    found = [method_docs.lesson(number, language) for number in range(1, 15)]
    rows = lessons_of(language)[1:]
    for number, (each, row) in enumerate(zip(found, rows, strict=True), 1):
        assert (each["number"], each["count"]) == (number, 14)
        assert each["link"].startswith(f"#lesson={number}&") and f"7860/{each['link']})" in row
        assert f"| {each['minutes']} " in row and f"| {each['task']} |" in row and f"| {each['answer']} |" in row
        assert not re.search(r"[*_`<>\[]", each["task"] + each["answer"]), "plain text"
    assert [each["next"] for each in found] == [each["link"] for each in found[1:]] + [None]


@pytest.mark.parametrize("number", [0, -1, 15, 10**6])
def test_there_is_no_other_lesson(number):
    with pytest.raises(ValueError, match=rf"^There is no lesson {number}: choose one from 1 to 14\.$"):
        method_docs.lesson(number)


def test_the_times_add_up():
    intro = " ".join(lessons_of("en")[0].split())
    minutes = {number: method_docs.lesson(number)["minutes"] for number in range(1, 15)}
    (total,) = re.findall(r"All tasks take (\d+) minutes", intro)
    (short, chosen) = re.findall(r"In (\d+) minutes: ([^.]+)\.", intro)[0]
    assert int(total) == sum(minutes.values())
    assert int(short) == sum(minutes[int(number)] for number in re.findall(r"\d+", chosen))


def explored(digit, patch_size):
    return vit_demo.explore(example_picture(digit), "digits-small", patch_size=patch_size)


def answer(number):
    return method_docs.lesson(number)["answer"].replace("\u00a0", " ")


def strongest(values):
    return divmod(int(values.argmax()), values.shape[1])


def test_where_the_seven_looks():
    ex = explored(7, 4)
    empty, corner, token = (ex.attention(query=query) for query in ((0, 0), (2, 4), None))
    assert strongest(empty) == strongest(token) == (2, 4) and "(row 3, column 5)" in answer(1)
    assert f"gives {100 * empty.max():.0f} % of its attention" in answer(1)
    assert f"more than about {100 * corner.max():.0f} %" in answer(1) and f"{100 * token.max():.1f} %" in answer(1)


def test_what_squares_of_other_sizes_cost():
    operations, shares = {}, {}
    for size in (2, 4, 7, 14):
        label, probability = explored(7, size).top(1)[0]
        assert label == "7" and probability > 0.999
        config = PRESETS["digits-small"].config_at(size)
        tokens = num_tokens(config, size)
        operations[size] = num_operations(config, size, tokens)
        shares[size] = 2 * tokens**2 * config.embed_dim * config.depth / operations[size]
    assert f"from {operations[2] / 1e6:.0f} to {operations[14] / 1e6:.0f} million" in answer(3)
    assert shares[2] == pytest.approx(1 / 5, abs=0.01) and shares[14] < 0.01


def test_when_the_network_knows_the_eight():
    _, *blocks = (of_block[0] for of_block in explored(8, 7).logit_lens())
    assert [label for label, _ in blocks] == ["1", "1", "8", "8", "8", "8"]
    third, fourth, fifth = (f"{100 * probability:.0f} %" for _, probability in blocks[2:5])
    assert f"8 with {third}, then with {fourth}, {fifth} and more than 99.9 %" in answer(4) and blocks[5][1] > 0.999


def test_what_speaks_for_the_four():
    ex = explored(4, 4)
    values = ex.heatmap("libra_fullgrad", label="4", against="9")
    reddest = [divmod(int(place), 7) for place in (-values).ravel().argsort()[:3]]
    assert (
        reddest == [(1, 3), (3, 4), (3, 5)]
        and "(row 2, column 4)" in answer(5)
        and "(row 4, columns 5 and 6)" in answer(5)
    )
    assert values.min() > -0.05 * values.max(), "none is clearly blue"
    assert ex.drop_patches(reddest).top(1)[0] == SURE


def test_the_threads_of_the_eight_come_from_many_squares_and_then_from_one():
    ex, text = explored(8, 7), answer(2)
    first, last = (ex.attention(block) for block in (0, 5))
    assert f"more than {100 * first.max():.1f} % of what the class token looks at" in text
    assert f"block 6 one has {100 * last.max():.1f} % (row 2, column 3)" in text and strongest(last) == (1, 2)
    _, early, *_, late = (of_block[0] for of_block in ex.logit_lens())
    assert f"from {early[0]}, with {100 * early[1]:.1f} %, to {late[0]}, with more than 99.9 %" in text
    assert late[1] > 0.999 and "Six of the eight steps" in text


def test_two_squares_make_the_eight_a_three():
    ex = explored(8, 7)
    places = [(row, column) for row in range(4) for column in range(4)]
    assert {ex.drop_patches([place]).top(1)[0][0] for place in places} == {"8"}
    pairs = [[one, other] for i, one in enumerate(places) for other in places[i + 1 :]]
    found = {str(pair): ex.drop_patches(pair).top(1)[0] for pair in pairs}
    threes = [pair for pair, (label, _) in found.items() if label == "3"]
    assert threes == [str([(1, 1), (2, 1)])] and found[threes[0]][1] > 0.999
    assert f"of {len(pairs)} pairs" in answer(6) and "rows 2 and 3 of column 2" in answer(6)


def test_the_wall_behind_the_lion_is_alike():
    ex = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, "photos-tiny")
    alike = ex.similarity((0, 0))
    assert f"column 8) with {alike[0, 7]:.2f}" in answer(7) and f"column 5) with only {alike[1, 4]:.2f}" in answer(7)


def test_no_class_is_a_tiger():
    ex = vit_demo.explore(EXAMPLE_PHOTOS["tiger"].path, "photos-tiny")
    label, probability = ex.top(1)[0]
    assert "tiger" not in ex.labels and len(ex.labels) == 50 and not ex.is_confident
    assert f"says {label}, but with only {100 * probability:.0f} %" in answer(8)


def test_which_head_the_eight_needs():
    ex, text = explored(8, 7), answer(14)
    every = [(block, head) for block in range(6) for head in range(4)]
    shares = [dict(ex.without(heads=[head]).top())["8"] for head in every]
    assert f"of its {len(every)} heads" in text and min(shares) > 0.999
    effects, logit = ex.head_effects(), ex.logits.max()
    assert strongest(effects) == (4, 2) and "Without head 3 of block 5 it loses most" in text
    with_other = ex.without(heads=[(3, 2)]).head_effects()
    assert f"most, {effects[4, 2]:.2f} of its logit of {logit:.1f}, but {with_other[4, 2]:.2f} while" in text
    assert "silent=4.3" in method_docs.lesson(14)["link"] and "head 3 of block 4 is silent, too" in text
    found = ex.enough_heads(share=ENOUGH_SHARE)
    assert (
        set(found.heads) == {(3, 2), (4, 0)} and "2 heads are enough, head 3 of block 4 and head 1 of block 5" in text
    )
    alone = ex.without(heads=set(every) - set(found.heads)).top(1)[0]
    assert alone[0] == "8" and f"8 with {100 * alone[1]:.1f} %" in text
    assert ex.without(heads=found.heads).top(1)[0] == ("8", pytest.approx(1, abs=0.001))
