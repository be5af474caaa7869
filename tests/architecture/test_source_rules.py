"""The rules of the house that can be read off the source text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "datalens"
FILES = sorted(SOURCE.rglob("*.py"))
USUAL_LINES, MOST_LINES = 300, 500
LONG_FOR_A_REASON = {
    "data/arrays.py": "every layout, range and kind of labels that people's arrays come in",
    "models/stacked.py": "forward and hand-written backward pass of one network, to be read side by side",
    "privacy/accountant.py": "one accountant: totals, conversions and the sampler's slack belong together",
}
OPEN_FOR_A_REASON = {
    "training/parameters.py:set_params": "as scikit-learn sets parameters, each checked by name",
    "training/config.py:replace": "names of settings, each checked against the model",
    "baselines/registry.py:baseline": "settings of privacy, each checked against the model",
    "recipes/__init__.py:by_name": "the options of the named recipe, a Python function that refuses unknown ones",
    "dpsgd/engine.py:make_private_with_epsilon": "settings of make_private, which refuses unknown ones",
    "dpsgd/engine.py:save_checkpoint": "of Opacus's method, which refuses unknown ones",
    "audit/subject.py:mechanism_at": "fields of the mechanism for dataclasses.replace, which refuses unknown ones",
    "audit/findings.py:failed": "the numbers of a finding, under names of the check's own",
}
"""Functions with ``**kwargs``, besides Click's commands, whose options Click checks."""
READS_FOREIGN_WEIGHTS = {"models/weights.py", "dpsgd/checkpoints.py"}
"""Files that may call ``torch.load``, with ``weights_only=True``: published weights come in no other form,
nor do the checkpoints that Opacus writes."""
RUNS_FOREIGN_CODE = {
    "pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "torch.load", "torch.save",
    "torch.jit.load", "torch.hub.load", "pandas.read_pickle", "numpy.loads", "eval", "exec", "os.system",
}  # fmt: skip

SAFE_LOAD = "torch.load of plain weights"

OVERRIDES = frozenset(
    {"forward", "convert", "get_metavar", "parse_args", "list_commands", "get_command", "resolve_command"}
    | {"format_commands", "shell_complete"}
)
"""Methods of PyTorch's and Click's classes that ours replace."""

Check = Callable[[ast.Module], Iterator[tuple[int, str]]]


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Each call with the dotted name it is made by, as it is written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def prints(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """print(), and writing to the standard streams behind its back."""
    for node, name in calls(tree):
        if name in ("print", "pprint", "sys.stdout.write", "sys.stderr.write"):
            yield node.lineno, name


def asserts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """assert, which ``python -O`` removes: nobody's input may rest on it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.lineno, ast.unparse(node)


def unsafe(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Reading or writing of files that can hold code, and running of text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                for name in (alias.name, module, f"{module}.{alias.name}"):
                    if name in RUNS_FOREIGN_CODE or name.split(".")[0] in RUNS_FOREIGN_CODE:
                        yield node.lineno, name
    for node, name in calls(tree):
        whole = name.replace("np.", "numpy.", 1) if name.startswith("np.") else name
        if whole == "torch.load" and is_true(node, "weights_only"):
            yield node.lineno, SAFE_LOAD
        elif whole in RUNS_FOREIGN_CODE:
            yield node.lineno, name
        if whole == "numpy.load":
            given = [word for word in node.keywords if word.arg == "allow_pickle"]
            if not (given and isinstance(given[0].value, ast.Constant) and given[0].value.value is False):
                yield node.lineno, "numpy.load without allow_pickle=False"
        if any(word.arg == "shell" for word in node.keywords):
            yield node.lineno, f"{name} through a shell"


def is_true(call: ast.Call, word: str) -> bool:
    """Whether the call passes ``word=True``."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == word]
    return bool(given) and isinstance(given[0], ast.Constant) and given[0].value is True


def undocumented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Public modules, classes, functions and methods without a docstring.

    A protocol's docstrings speak for the classes that implement all of it, a library's for its overrides.
    """
    if not ast.get_docstring(tree) and tree.body:
        yield 1, "module"
    for owner in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        if isinstance(owner, ast.ClassDef) and owner.name.startswith("_"):
            continue
        spoken_for = described_elsewhere(owner) if isinstance(owner, ast.ClassDef) else set()
        for node in owner.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                public = not node.name.startswith("_") and node.name not in spoken_for
                if public and not ast.get_docstring(node):
                    yield node.lineno, node.name


def described_elsewhere(owner: ast.ClassDef) -> set[str]:
    """Names of methods that a documented protocol, or the library class that is extended, describes."""
    mine = {node.name for node in owner.body if isinstance(node, ast.FunctionDef)}
    implemented = [methods for methods in protocols() if methods <= mine]
    return set().union(*implemented, OVERRIDES if owner.bases else set())


@cache
def protocols() -> list[frozenset[str]]:
    """The methods of every protocol in the sources that describes all of them."""
    found = []
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and "Protocol" in [ast.unparse(base) for base in node.bases]:
                methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
                if methods and all(ast.get_docstring(method) for method in methods):
                    found.append(frozenset(method.name for method in methods))
    return found


def shared_defaults(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """A default that all calls share and any call may change."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if isinstance(default, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp):
                    yield default.lineno, ast.unparse(default)


def silent_options(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """``**kwargs`` of a public function: a misspelt name passes unseen. Click's commands are checked by Click."""
    for owner in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        for node in owner.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwarg is not None:
                words = [ast.unparse(decorator) for decorator in node.decorator_list]
                if not node.name.startswith("_") and not any(".command(" in word for word in words):
                    yield node.lineno, node.name


def global_draws(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Draws from a generator that everybody shares, or its seeding."""
    numpy_names = ("seed", "rand", "randn", "normal", "randint", "permutation", "shuffle", "choice")
    shared = {f"numpy.random.{name}" for name in numpy_names}
    shared |= {f"random.{name}" for name in ("seed", "random", "shuffle", "choice", "sample", "randint")}
    shared |= {"torch.manual_seed", "torch.seed", "torch.cuda.manual_seed_all"}
    for node, name in calls(tree):
        if (name.replace("np.", "numpy.", 1) if name.startswith("np.") else name) in shared:
            yield node.lineno, name


RULES: dict[str, tuple[Check, str]] = {
    "no print": (prints, "print('x')"),
    "no assert": (asserts, "assert size > 0"),
    "nothing pickled": (unsafe, "import pickle"),
    "no numpy pickles": (unsafe, "np.load(path)"),
    "no torch pickles": (unsafe, "torch.load(path, weights_only=True)"),
    "no shell": (unsafe, "subprocess.run(text, shell=True)"),
    "docstrings": (undocumented, '"""Module."""\ndef public(): ...'),
    "no shared default": (shared_defaults, "def f(x=[]): ..."),
    "no silent **kwargs": (silent_options, "def f(**options): ..."),
    "no global generator": (global_draws, "np.random.seed(0)"),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule_is_kept(rule: str) -> None:
    check, _ = RULES[rule]
    broken = [
        f"{path.relative_to(SOURCE)}:{line} {what}"
        for path in FILES
        for line, what in check(ast.parse(path.read_text()))
        if check is not silent_options or f"{path.relative_to(SOURCE)}:{what}" not in OPEN_FOR_A_REASON
        if what != SAFE_LOAD or str(path.relative_to(SOURCE)) not in READS_FOREIGN_WEIGHTS
    ]
    assert broken == []


@pytest.mark.parametrize("rule", RULES)
def test_rule_can_be_broken(rule: str) -> None:
    check, offence = RULES[rule]
    assert list(check(ast.parse(offence)))


def test_files_are_short_or_say_why() -> None:
    lines = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
    unexplained = {name for name, count in lines.items() if count > USUAL_LINES} - LONG_FOR_A_REASON.keys()
    assert unexplained == set(), "cut these in two, or say why not in LONG_FOR_A_REASON"


def test_reasons_are_still_needed() -> None:
    """An exception for what is gone would cover the next offence that nobody looked at."""
    lines = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in FILES}
    assert {name for name in LONG_FOR_A_REASON if lines.get(name, 0) <= USUAL_LINES} == set()
    open_ones = {
        f"{path.relative_to(SOURCE)}:{name}"
        for path in FILES
        for _, name in silent_options(ast.parse(path.read_text()))
    }
    assert OPEN_FOR_A_REASON.keys() - open_ones == set()
    loading = {
        str(path.relative_to(SOURCE))
        for path in FILES
        for _, what in unsafe(ast.parse(path.read_text()))
        if what == SAFE_LOAD
    }
    assert READS_FOREIGN_WEIGHTS - loading == set()
