"""The units of maps, and below which value a map of that unit shows nothing that matters.

The colours of a map are scaled by its largest value, so without a limit a map of next to nothing would look like any
other. The scale therefore never ends below the floor of the unit, and such a map is faint.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Floor:
    """The least end of the colour scale.

    Attributes:
        value: In the unit; if ``per_token``, divided by the number of tokens.
        reason: What it means if no patch reaches it, as a sentence.
        per_token: Whether the values are shares of one whole.
    """

    value: float
    reason: str
    per_token: bool = False

    def at(self, num_tokens: int) -> float:
        """The floor for a sequence of so many tokens."""
        return self.value / num_tokens if self.per_token else self.value


_EVEN_SHARE = Floor(
    1.0, "No patch gets as much as if attention were spread evenly, so the map points to none of them.", per_token=True
)

FLOORS = {
    "share of attention": _EVEN_SHARE,
    "share of the input": _EVEN_SHARE,
    # exp(0.01) = 1.01
    "log-probability": Floor(0.01, "No single patch changes the probability by more than 1 % of its value."),
    # The slope of a probability in its logit is at most 1/4.
    "logit": Floor(
        0.01, "All values are below 0.01 logits, which changes no probability by more than 0.25 percentage points."
    ),
    # Measured on digits with 384 passes: an estimate varies by 0.04 to 0.05 from seed to seed.
    "standard deviations of the score": Floor(0.05, "The values are no larger than the error of the estimate."),
}
"""Floors by unit. Lengths of vectors have none: which length matters differs between models and blocks."""
