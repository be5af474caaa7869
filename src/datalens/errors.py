"""One exception family: every error a user can cause, each with one line that names the remedy."""

from __future__ import annotations

import re

_LONG_WORD = re.compile(r"\S{241,}")
_LONGEST_LINE = 1200


def one_line(text: str) -> str:
    """The text with spaces for line breaks and the like, and a question mark for what cannot be printed.

    >>> one_line("no file a\\nb\\x1b here")
    'no file a b? here'
    """
    spaced = re.sub(r"\s*[^\S ]\s*", " ", text)
    return "".join(char if char.isprintable() else "?" for char in spaced)


def shortened(line: str) -> str:
    """The line with the middle of an overlong word, or of all of it, left out: a value may be a file by mistake.

    >>> shortened("no file " + 1000 * "x") == "no file " + 80 * "x" + "..." + 80 * "x"
    True
    >>> len(shortened("a " * 10_000))
    1205
    """
    line = _LONG_WORD.sub(lambda word: f"{word[0][:80]}...{word[0][-80:]}", line)
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"


class DataLensError(Exception):
    """Base of every error that DataLens raises on purpose.

    The message is one line of a readable length, whatever the values in it hold: which value, which rule, what to
    do. The command line prints it and exits with status 2.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(shortened(one_line(str(message))))


class ConfigError(DataLensError, ValueError):
    """A setting that breaks a rule; raised before anything is read, trained or written."""


class MissingExtraError(ConfigError):
    """An optional package that a setting needs and that is not installed; the message says how to install it."""


class PrivacyWarning(UserWarning):
    """A setting under which the guarantee says less than its number suggests; the run goes on."""


class DataError(DataLensError):
    """Data that are missing, damaged or not what their description says."""


class BudgetError(DataLensError):
    """A release that the authorised privacy budget does not cover; nothing was released."""


class LedgerError(DataLensError):
    """A privacy ledger that is damaged, or that disagrees with what is known of it."""


class CheckpointError(DataLensError):
    """A checkpoint or saved model that cannot be used as it is."""


class RunError(DataLensError):
    """A run folder that is in use, incomplete, or not what the command needs."""


class NotFittedError(RunError, ValueError):
    """An estimator that is asked for what only a training gives; the remedy is ``fit``, or to load a run."""


class NotBegunError(RunError):
    """A run that was asked to stop before it had begun: nothing was written or charged."""


class NotPrivateError(DataLensError):
    """An action that would present something without a guarantee as if it had one."""
