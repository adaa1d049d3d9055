"""What an installation of some requirements would hold, told from the packages that are installed here."""

import re
from collections.abc import Iterable
from importlib import metadata

from packaging.requirements import Requirement


def importable_names_beyond(requirements: Iterable[str]) -> list[str]:
    """The importable names that these requirements, with all that they need, do not install."""
    installed = installed_with(requirements)
    owners = metadata.packages_distributions()
    return [name for name, them in owners.items() if not {normalised(one) for one in them} & installed]


def installed_with(requirements: Iterable[str]) -> set[str]:
    """The distributions that pip would install for some requirements, by normalised name."""
    waiting = [Requirement(line) for line in requirements]
    found: set[str] = set()
    while waiting:
        name = normalised(waiting.pop().name)
        if name in found:
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # for another platform
        found.add(name)
        waiting += [one for one in map(Requirement, needs) if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
