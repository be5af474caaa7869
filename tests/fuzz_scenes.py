"""For each command a line that it accepts, in which one word after the other is replaced by an odd one."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from odd_values import make_places

from datalens.cli.main import main

TRAIN = {
    "--num-teachers": "100",
    "--top-k": "20",
    "--num-steps": "3",
    "--batch-size": "4",
    "--epsilon": "10",
}
CANDIDATES = "[[candidate]]\nvoting = {top_k = 20}\n[[candidate]]\nvoting = {top_k = 30}\n"


@dataclass(frozen=True)
class Scene:
    """A command line that is accepted.

    Attributes:
        verb: the words that name the command.
        arguments: its arguments, in order.
        options: name -> value; None for a flag.
        beside: options that an option needs beside itself to be of use.
    """

    verb: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    options: dict[str, str | None] = field(default_factory=dict)
    beside: dict[str, dict[str, str | None]] = field(default_factory=dict)

    def with_option(self, name: str, *values: str) -> list[str]:
        """The line with one option as given."""
        options = {key: value for key, value in self.options.items() if key != name}
        return self._line(options | self.beside.get(name, {}), [name, *values], self.arguments)

    def with_argument(self, place: int, value: str) -> list[str]:
        """The line with one argument replaced."""
        arguments = (*self.arguments[:place], value, *self.arguments[place + 1 :])
        return self._line(self.options, [], arguments)

    @property
    def line(self) -> list[str]:
        """As it is accepted."""
        return self._line(self.options, [], self.arguments)

    def _line(self, options: dict[str, str | None], odd: list[str], arguments: tuple[str, ...]) -> list[str]:
        words = [word for pair in options.items() for word in pair if word is not None]
        return [*self.verb, *words, *odd, "--", *arguments]


SCENES = (
    Scene(("quickstart",), ("shapes",), {"--out": "new"}),
    Scene(
        ("train",),
        ("shapes",),
        {"--out": "new", **TRAIN},
        {
            "--levels": {"--mechanism": "d2p-fed"},
            "--sketch-rows": {"--mechanism": "fetchsgd-sound"},
            "--sketch-buckets": {"--mechanism": "fetchsgd-sound"},
            "--data-name": {"--budget-file": "budget"},
            "--public-init-is-public": {"--public-init": "shapes"},
        },
    ),
    Scene(("train",), ("shapes",), {"--out": "new", "--method": "dp-merf"}),
    Scene(("train",), ("shapes",), {"--resume": "run", "--epsilon": "20"}),
    Scene(("dpsgd",), ("shapes",), {"--out": "new"}),
    Scene(("tune",), ("shapes",), {"--out": "new", "--candidates": "candidates.toml", "--epsilon": "10"}),
    Scene(("sample",), ("run",), {"--num-samples": "10", "--out": "new.npz"}),
    Scene(("export",), ("run",), {"--to": "imagefolder", "--num-samples": "10", "--out": "new"}),
    Scene(("evaluate",), ("run",), {"--data": "shapes"}),
    Scene(("report",), ("run",)),
    Scene(("compare",), ("run", "run2")),
    Scene(("list",), ("run",)),
    Scene(("audit",), ("run",)),
    Scene(("verify",), ("run",)),
    Scene(("purge",), ("run",), {"--yes": None}),
    Scene(("budget", "create"), ("new",), {"--data-name": "clinic", "--epsilon": "3"}),
    Scene(("budget", "show"), ("budget",)),
    Scene(("privacy", "cost"), (), {"--noise-stddev": "5000", "--queries": "1000"}),
    Scene(("privacy", "plan"), (), {"--epsilon": "1", "--num-steps": "149"}),
    Scene(("reproduce",), ("table1",)),
    Scene(("benchmark",), ("shapes",)),
    Scene(("data", "check"), ("shapes",)),
    Scene(("data", "fetch"), ("mnist",)),
    Scene(("data", "list"), ()),
    Scene(("completion",), ("bash",)),
)


def make_scene(folder: Path) -> None:
    """What the scenes name: two runs, a budget, candidates, and odd places."""
    words = [word for pair in TRAIN.items() for word in pair]
    assert main(["train", "shapes", "--out", str(folder / "run"), *words, "--quiet"]) == 0
    shutil.copytree(folder / "run", folder / "run2")
    budget = ["--data-name", "clinic", "--epsilon", "30", "--quiet"]
    assert main(["budget", "create", str(folder / "budget"), *budget]) == 0
    (folder / "candidates.toml").write_text(CANDIDATES)
    make_places(folder)
