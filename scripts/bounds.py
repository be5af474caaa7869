"""The ranges of ``pyproject.toml`` as constraints for pip, which has no option for the oldest that is allowed.

    python scripts/bounds.py lowest > lowest.txt        # click==8.2, dp-accounting==0.6, ...
    python scripts/bounds.py allowed > allowed.txt      # click>=8.2,<9, ...

Only direct dependencies are in it: what they bring along is the newest that they allow.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<low>[\w.]+),<(?P<high>[\w.]+)")


def bounds() -> dict[str, tuple[str, str]]:
    """For each direct dependency, extras too, the lowest version and the first that is too high.

    Raises:
        ValueError: a dependency without both.
    """
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    asked = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        asked += extra
    found: dict[str, tuple[str, str]] = {}
    for each in asked:
        if (read := _REQUIREMENT.fullmatch(each)) is None:
            raise ValueError(
                f"{each!r} in pyproject.toml has no lower and upper bound; write it as 'name>=1.2,<2'"
            )
        if found.setdefault(read["name"].lower(), (read["low"], read["high"])) != (read["low"], read["high"]):
            raise ValueError(
                f"{read['name']} has two ranges in pyproject.toml; give it the same in each place"
            )
    return found


if __name__ == "__main__":
    forms = {"lowest": "{}=={}\n", "allowed": "{}>={},<{}\n"}
    if len(sys.argv) != 2 or sys.argv[1] not in forms:
        sys.exit("error: say which constraints: 'bounds.py lowest' or 'bounds.py allowed'")
    sys.stdout.writelines(forms[sys.argv[1]].format(name, *ends) for name, ends in sorted(bounds().items()))
