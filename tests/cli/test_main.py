"""The entry point: quick, helpful, one line for a mistake, and no hiding of defects."""

from __future__ import annotations

import errno
import subprocess
import sys

import click
import pytest

from datalens.cli import main as entry
from datalens.cli.problems import explain, one_line
from datalens.errors import RunError
from datalens.version import __version__

VERBS = ("train", "sample", "evaluate", "privacy", "data")


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=60)


def test_version(call) -> None:
    answer = call("--version")
    assert (answer.status, answer.out.strip()) == (0, f"datalens {__version__}")


def test_runs_as_a_module() -> None:
    assert python("-m", "datalens", "--version").stdout.strip() == f"datalens {__version__}"
    wrong = python("-m", "datalens", "trian")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: no command 'trian'; did you mean 'train'?")


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_help_lists_the_verbs(call, words) -> None:
    answer = call(*words)
    assert answer.status == 0
    assert all(verb in answer.out for verb in VERBS)


@pytest.mark.parametrize("words", [*[(verb,) for verb in VERBS], ("privacy", "cost"), ("privacy", "plan"),
                                   ("data", "list"), ("data", "fetch"), ("data", "check")])  # fmt: skip
def test_every_verb_explains_itself(call, words) -> None:
    answer = call(*words, "--help")
    assert answer.status == 0
    assert f"Usage: datalens {' '.join(words)}" in answer.out
    if words not in [("data", "fetch"), ("data", "check"), ("data", "list")]:
        assert f"datalens {words[0]}" in answer.out.split("\n", 1)[1]  # an example


HELP = [[], *[[verb] for verb in entry.VERBS], ["privacy", "cost"], ["privacy", "plan"], ["budget", "create"],
        ["budget", "show"], ["data", "list"], ["data", "fetch"], ["data", "check"]]  # fmt: skip


def test_help_loads_neither_torch_nor_scipy() -> None:
    """Every page of help, one after the other in one process: each may only read words and settings."""
    code = (
        f"import sys; from datalens.cli.main import main\n"
        f"assert [main([*words, '--help']) for words in {HELP!r}] == [0] * {len(HELP)}\n"
        "heavy = ('torch', 'scipy', 'pandas', 'dp_accounting', 'PIL', 'matplotlib')\n"
        "sys.exit(' '.join(name for name in heavy if name in sys.modules) or 0)"
    )
    answer = python("-c", code)
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ["privacy", "cost", "--noise-stddev", "9", "--queries", "3"],
        ["privacy", "plan", "--epsilon", "1", "--num-steps", "50", "--num-teachers", "4000"],
        ["data", "list"],
    ],
)
def test_what_needs_no_torch_does_not_load_it(words: list[str]) -> None:
    code = (
        f"import sys; from datalens.cli.main import main; main({words!r}); sys.exit('torch' in sys.modules)"
    )
    assert python("-c", code).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tarin"], "did you mean 'train'? known: quickstart, train"),
        (["--nonsense"], "no option --nonsense"),
        (["train"], "the argument SOURCE is missing; see `datalens train --help`"),
        (["train", "shapes", "mnist"], "unexpected extra argument (mnist)"),
        (["train", "shapes", "--epsilonn", "1"], "did you mean --epsilon?"),
        (["train", "shapes", "--epsilon"], "'--epsilon' requires an argument"),
        (["train", "shapes", "--epsilon", "1", "--epsilon", "2"], "--epsilon is given more than once"),
        (["train", "shapes", "--quiet", "-q"], "--quiet is given more than once"),
        (["train", "shapes", "--out", "--quiet"], "--out: '--quiet' looks like an option of its own"),
        (["train", "shapes", "--out", "-q", "--epsilon", "1"], "--out: '-q' looks like an option of its own"),
        (["train", "shapes", "--out", "--publik-data"], "'--publik-data' looks like an option"),
        (["train", "shapes", "--noise", "laplace"], "known: rounded-gaussian, discrete-gaussian"),
        (["train", "shapes", "--accountant", "rpd"], "known: exact, rdp, rdp-classic"),
        (
            ["evaluate", "x", "--data", "y", "--classifier", "vit"],
            "'vit' is unknown; known: cnn, mlp, logistic",
        ),
        (["sample", "x", "--out", "y"], "the option --num-samples is missing"),
        (["privacy", "costs"], "no such command 'costs'"),
        (["data", "load"], "no such command 'load'"),
    ],
)
def test_usage_errors_are_one_line_with_the_remedy(call, words, said) -> None:
    assert said in call(*words).complaint


@pytest.mark.parametrize(
    "words",
    [("train", "x" * 10_000), ("train", "x " * 10_000), ("train", "shapes", "--method", "y" * 10_000)],
)
def test_a_line_is_of_a_readable_length_whatever_was_given(call, words) -> None:
    assert len(call(*words, "--out", "new").complaint) < 1300


def test_a_failing_machine_is_one_line(call, monkeypatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/some/where")

    command = click.Command("full", callback=lambda: full())
    monkeypatch.setattr(entry.LazyGroup, "get_command", lambda *_: command)
    assert "/some/where: No space left on device; make room" in call("train").complaint


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, click.Abort])
def test_ctrl_c_is_one_line_and_130(call, monkeypatch, interruption) -> None:
    def stop() -> None:
        raise interruption

    monkeypatch.setattr(entry.LazyGroup, "get_command", lambda *_: click.Command("stop", callback=stop))
    answer = call("train")
    assert (answer.status, answer.err.strip()) == (130, "error: interrupted")


def test_a_defect_of_ours_is_not_dressed_up_as_a_mistake(call, monkeypatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(entry.LazyGroup, "get_command", lambda *_: click.Command("broken", callback=broken))
    with pytest.raises(ZeroDivisionError):
        call("train")


def test_python_warnings_are_one_line(call, monkeypatch) -> None:
    def loose() -> None:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("holds but\n is loose", stacklevel=1)

    monkeypatch.setattr(entry.LazyGroup, "get_command", lambda *_: click.Command("loose", callback=loose))
    assert call("train").err == "warning: holds but is loose\n"


def test_explanations() -> None:
    assert explain(RunError("a\n  b\x1b[31m")) == "a b?[31m"
    assert explain(MemoryError()) is not None
    assert explain(RuntimeError("bug")) is None
    assert one_line("a\tb\r\n c") == "a b c"


@pytest.mark.parametrize("option", ["--num-records", "--num-teachers"])
def test_a_million_million_is_refused_by_the_rule_and_not_by_memory(call, tmp_path, option) -> None:
    complaint = call("train", "shapes", "--out", tmp_path / "run", option, 10**12).complaint
    assert "less than or equal to 100000000" in complaint
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", ["DefaultCPUAllocator: can't allocate memory", "CUDA out of memory. Tried"])
def test_memory_that_ran_out_in_pytorch_is_one_line_too(words) -> None:
    from datalens.cli.problems import explain

    assert str(explain(RuntimeError(words))).startswith("memory ran out")
    assert explain(RuntimeError("a defect of ours")) is None
