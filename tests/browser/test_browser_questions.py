"""Seven questions that a learner can answer from the page alone: the sentence with the answer is on it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

ANSWERS = {
    "What is a patch?": ".terms: A square of the picture. A Vision Transformer cuts the picture into patches",
    "What is a token?": ".terms: The list of numbers that stands for a patch inside the network",
    "What does a row of attention sum to?": (
        ".about .sentence: A token divides its attention among all tokens, itself included: 100 %."
    ),
    "Why does attention not depend on the class?": (
        ".terms: No class enters the calculation, so attention is the same for every class."
    ),
    "What does the patch size trade?": (
        ".terms: Smaller patches give a finer map, but more tokens, and attention compares every pair of them."
    ),
    "How can one tell whether a heatmap is faithful?": (
        ".faithfulness: A heatmap is faithful if its strongest patches matter most to 7. "
        "So they are removed first (deletion) or inserted first (insertion), and the probability of 7 is compared"
    ),
    "What is the class token for?": (
        ".about .sentence: After the last block, the prediction is read from the class token."
    ),
}


def test_the_page_answers_seven_questions_and_explains_terms_where_they_are_met(opened: Page) -> None:
    opened.locator(".terms summary").click()
    for question, answer in ANSWERS.items():
        place, sentence = answer.split(": ", 1)
        text = re.sub(r"\s+", " ", opened.locator(place).first.inner_text())
        assert sentence in text, question
    terms = {term.lower() for term in opened.locator(".term").all_inner_texts()}
    assert {"class token", "token", "attention", "block", "heads", "deletion", "insertion"} <= terms
    listed = opened.locator(".terms dt").all_inner_texts()
    assert {"logit lens", "PCA", "norm", "rank correlation", "register", "logit"} <= set(listed)
    assert opened.locator(".terms dd").count() == len(listed)
