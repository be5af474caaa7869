"""``datalens completion``: what a shell is offered, and that offering it takes no PyTorch."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from datalens import recipes
from datalens.baselines.registry import METHODS
from datalens.cli import known
from datalens.cli.completion import SHELLS, VARIABLE
from datalens.cli.main import VERBS, cli
from datalens.data import list_sources

SOURCES = Path(__file__).resolve().parents[2] / "src"
CASES = [
    ("", ["quickstart", "train", "completion"]),
    ("tra", ["train"]),
    ("train mn", ["file:mn", "mnist"]),
    ("train scans/", ["file:scans/"]),
    ("train mnist --method g", ["g-pate", "gs-wgan"]),
    ("train mnist --recipe mnist-", ["mnist-quick", "mnist-paper"]),
    ("train mnist --epsilon 1 --me", ["--method", "--mechanism"]),
    ("train mnist --out run", ["file:run"]),
    ("train mnist --noise d", ["discrete-gaussian"]),
    ("dpsgd mnist --model l", ["linear"]),
    ("evaluate runs/a --metrics utility,f", ["utility,fid"]),
    ("data fe", ["fetch"]),
    ("data fetch fash", ["fashion-mnist"]),
    ("nonsense ", list(VERBS)),
    ("completion z", ["zsh"]),
]


def offered(line: str) -> list[str]:
    """What bash is offered after such a line, files marked as such."""
    *words, last = line.split(" ")
    found = BashComplete(cli, {}, "datalens", VARIABLE).get_completions(words, last)
    return [f"{item.type}:{item.value}" if item.type != "plain" else item.value for item in found]


@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_names_are_offered(line: str, expected: list[str]) -> None:
    found = offered(line)
    if line in ("", "train mnist --epsilon 1 --me"):
        assert set(expected) <= set(found)
        assert line or found == list(VERBS)
    else:
        assert found == expected


def test_an_option_that_is_given_is_not_offered_again() -> None:
    assert "--method" not in offered("train mnist --method moments --me")


def test_the_names_are_those_of_the_registries() -> None:
    assert (known.DATALENS, *METHODS) == known.METHODS
    assert set(known.RECIPES) == set(recipes.RECIPES) and len(known.RECIPES) == len(recipes.RECIPES)
    assert tuple(source.name for source in list_sources()) == known.SOURCES


def test_completing_imports_no_torch() -> None:
    program = (
        "import sys\n"
        "from click.shell_completion import BashComplete\n"
        "from datalens.cli.main import cli\n"
        "for line in sys.argv[1:]:\n"
        "    *words, last = line.split(' ')\n"
        "    BashComplete(cli, {}, 'datalens', 'X').get_completions(words, last)\n"
        "sys.exit(sum(name in sys.modules for name in ('torch', 'opacus')))\n"
    )
    lines = [line for line, _ in CASES]
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    assert subprocess.run([sys.executable, "-c", program, *lines], env=env, timeout=120).returncode == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_is_told_how_to_ask(call, shell: str) -> None:
    answer = call("completion", shell)
    assert answer.status == 0 and answer.err == ""
    assert f"{VARIABLE}={shell}_complete" in answer.out


def test_an_unknown_shell_is_refused(call) -> None:
    complaint = call("completion", "tcsh").complaint
    assert "tcsh" in complaint and all(shell in complaint for shell in SHELLS)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash on this machine")
def test_bash_itself_completes(tmp_path: Path) -> None:
    program = tmp_path / "datalens"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m datalens "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    script = (
        'eval "$(datalens completion bash)"; COMP_WORDS=(datalens train mnist --method mo); COMP_CWORD=4; '
        '_datalens_completion datalens; echo "${COMPREPLY[@]}"'
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCES), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "moments\n", done.stderr
