"""Probabilities as people read them, for the tests of commands and of the page."""


def percentage(probability: float, space: str = " ") -> str:
    """With one decimal, and never a rounded 0 or 100."""
    if probability < 0.001:
        return f"<0.1{space}%"
    return f">99.9{space}%" if 0.9995 <= probability < 1 else f"{100 * probability:.1f}{space}%"
