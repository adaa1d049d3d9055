"""What stands beside a prediction that could be misunderstood."""

from vit_demo.images import is_plain
from vit_demo.inference.exploration import Exploration
from vit_demo.sentences import sentence
from vit_demo.words.texts import NO_WORDS

WORD_NOTES = {
    ("softmax", False): "The percentages compare these words with each other: with other words they change.",
    ("softmax", True): "The percentage compares this one word with an empty text: write more words to compare.",
    ("sigmoid", False): "Each word has a probability of its own; they need not add up to 100\u00a0%.",
    ("none", False): "These are similarities of the photo to the words, not probabilities.",
}
"""What the numbers beside words mean."""


def note_of(result: Exploration) -> str:
    """What the probabilities of a result do not say; empty if they speak for themselves."""
    if result.preset.takes_words:
        is_alone = result.preset.scores == "softmax" and NO_WORDS in result.labels
        return WORD_NOTES[result.preset.scores, is_alone]
    if result.is_confident or not result.labels:
        return ""
    if is_plain(result.pixels):
        return "The picture is one plain colour, so the prediction means nothing."
    if result.preset.scores == "none":
        return "This model gives scores that are no probabilities, so nothing says how sure it is."
    if result.preset.scores == "sigmoid":
        return "Each class has a probability of its own, and none reaches one half."
    if result.preset.task == "digits" and not result.preset.base:
        return "Low confidence: this may not be a single digit, or not one like those the model was trained on."
    return sentence(
        "Uncertain: many pictures of something else get percentages like these. The first of the {0} classes may still "
        "be right.",
        len(result.labels),
    )
