"""Seven questions that a learner can answer from the page alone: the sentence with the answer is on it."""

import re

from .choosing import Page, settings

ANSWERS = {
    "What is a patch?": ".terms: A square of the picture. A Vision Transformer cuts the picture into patches",
    "What is a token?": ".terms: The list of numbers that stands for a patch inside the network",
    "What does a row of attention sum to?": (".terms: its shares, with what it keeps for itself, add up to 100 %."),
    "Is what is coloured what the network needs?": (
        ".sentence: Colour shows where the network looks just before it answers. "
        "Whether it needs a square, you find out by rubbing it out."
    ),
    "What does the patch size trade?": (
        ".terms: Smaller patches give a finer map, but more tokens, and attention compares every pair of them."
    ),
    "How can one tell whether a heatmap is faithful?": (
        ".faithfulness: If the colours are right, the strongest squares matter most to 7. So the test masks them first "
        "(deletion), and then puts them first into an empty picture (insertion), and compares the probability of 7 with"
    ),
    "What is the class token for?": ".terms: class token",
}


def test_the_page_answers_seven_questions_and_explains_terms_where_they_are_met(opened: Page) -> None:
    settings(opened).locator(".terms summary").click()
    for question, answer in ANSWERS.items():
        place, sentence = answer.split(": ", 1)
        text = re.sub(r"\s+", " ", opened.locator(place).first.inner_text())
        assert sentence in text, question
    terms = {term.lower() for term in opened.locator(".term").all_inner_texts()}
    assert {"deletion", "insertion"} <= terms
    listed = opened.locator(".terms dt").all_inner_texts()
    assert {"logit lens", "PCA", "norm", "rank correlation", "register", "logit"} <= set(listed)
    assert opened.locator(".terms dd").count() == len(listed)
