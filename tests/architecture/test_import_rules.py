"""Who may import whom, and what the light parts must not drag in."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "src"
PRIVACY = SOURCE / "datalens" / "privacy"
CONTRACTS = REPOSITORY / ".importlinter"
ONLY_IN = {
    "opacus": ("dpsgd", "baselines"),
    "matplotlib": ("reports",),
    "torch.distributed": ("distributed",),
    "opendp": ("noise",),
    "pyarrow": ("data", "writing"),
    "datasets": (),  # writes nothing that pyarrow cannot; tests open what we wrote
    "torchvision": (),  # a process of its own looks for it: see data/fetch.py
}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """One Python process that sees this tree's sources first."""
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )


def lint(config: Path) -> subprocess.CompletedProcess[str]:
    """import-linter's verdict on this tree under one configuration."""
    program = "import sys; from importlinter.cli import lint_imports as lint; "
    program += "sys.exit(lint(sys.argv[1], no_cache=True))"
    return run("-c", program, str(config))


def test_rows_use_rows_below_them() -> None:
    answer = lint(CONTRACTS)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_check_itself_can_fail(tmp_path: Path) -> None:
    """With two rows swapped the tree must be refused: the contracts are read, and the tree is seen."""
    text = CONTRACTS.read_text()
    lowest = "    datalens.errors"
    swapped = text.replace("    datalens.cli\n", "").replace(lowest, "    datalens.cli\n" + lowest)
    assert swapped.count("datalens.cli") == 1
    broken = tmp_path / "broken.importlinter"
    broken.write_text(swapped)
    answer = lint(broken)
    assert answer.returncode == 1
    assert "broken" in answer.stdout.lower()


@pytest.mark.parametrize("library", ONLY_IN)
def test_heavy_libraries_stay_in_their_room(library: str) -> None:
    outside = [
        str(path.relative_to(SOURCE))
        for path in (SOURCE / "datalens").rglob("*.py")
        if path.relative_to(SOURCE / "datalens").parts[0] not in ONLY_IN[library]
        and any(name == library or name.startswith(library + ".") for name in imported(path))
    ]
    assert outside == []


def test_one_file_of_the_baselines_names_opacus() -> None:
    """All else of DP-SGD is the product's own, and only a method that clips records one by one may reach it."""
    baselines = SOURCE / "datalens" / "baselines"
    naming = [
        path.stem
        for path in baselines.glob("*.py")
        if any(n.split(".")[0] == "opacus" for n in imported(path))
    ]
    using = [
        path.stem for path in baselines.glob("*.py") if "datalens.baselines.per_record" in imported(path)
    ]
    assert (naming, using) == (["per_record"], ["dp_gan"])


@pytest.mark.parametrize(
    "modules",
    [
        "datalens",
        ", ".join(
            f"datalens.privacy.{path.stem}" for path in (SOURCE / "datalens/privacy").glob("[a-z]*.py")
        ),
        "datalens.noise.rounded_gaussian",
        "datalens.data",
        "datalens.writing",
        "datalens.cli.main, datalens.cli.privacy, datalens.cli.data",
        "datalens.recipes",
    ],
)
def test_starts_without_torch(modules: str) -> None:
    """Importing PyTorch takes seconds; arithmetic about a budget, and ``--help``, need none of it."""
    heavy = "('torch', 'sklearn', 'torchvision', 'matplotlib', 'pyarrow', 'pandas')"
    answer = run("-c", f"import sys, {modules}; print([name for name in {heavy} if name in sys.modules])")
    assert (answer.stdout.strip(), answer.returncode) == ("[]", 0), answer.stderr


def test_the_package_itself_brings_nothing_that_is_heavy() -> None:
    """Names of the public surface are imported when they are used; see ``datalens.__getattr__``."""
    heavy = "('torch', 'scipy', 'pandas', 'numpy', 'pydantic')"
    answer = run("-c", f"import sys, datalens; print([name for name in {heavy} if name in sys.modules])")
    assert (answer.stdout.strip(), answer.returncode) == ("[]", 0), answer.stderr


def test_importing_draws_nothing_and_writes_nothing() -> None:
    """No work at import: global random states are untouched and nothing is printed."""
    program = (
        "import random, numpy; before = random.getstate(), numpy.random.get_state()[1].tolist();"
        "import datalens, datalens.training.synthesizer, datalens.cli.train;"
        "assert before == (random.getstate(), numpy.random.get_state()[1].tolist())"
    )
    answer = run("-c", program)
    assert (answer.returncode, answer.stdout) == (0, ""), answer.stderr


def imported(path: Path) -> set[str]:
    """Dotted names that a file imports, at the top or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names
