"""A mistake as one line: which value, which rule, what to do. What is not a mistake is not explained."""

from __future__ import annotations

import difflib
import os

import click

from datalens.errors import DataLensError, one_line, shortened

MISTAKE = 2
"""Exit status of every error that a user can mend."""


def explain(error: Exception) -> str | None:
    """One line for a user's mistake or a failing machine, None for a defect of ours."""
    if isinstance(error, click.ClickException):
        return shortened(one_line(_usage(error)))
    if isinstance(error, DataLensError):
        return str(error)
    if isinstance(error, OSError):
        return shortened(one_line(_system(error)))
    if isinstance(error, MemoryError) or _is_torch_out_of_memory(error):
        return "memory ran out; ask for fewer images, fewer teachers at once (--chunk-size) or smaller ones"
    return None


def _is_torch_out_of_memory(error: Exception) -> bool:
    """PyTorch says it in words, and of its own kind of error only on accelerators."""
    words = ("can't allocate memory", "out of memory", "Storage size calculation overflowed")
    return isinstance(error, RuntimeError) and any(word in str(error) for word in words)


def _usage(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    help_command = f"; see `{ctx.command_path} --help`" if ctx is not None else ""
    if isinstance(error, click.NoSuchOption):
        return _unknown_option(error) + help_command
    if isinstance(error, click.MissingParameter):
        kind = "argument" if isinstance(error.param, click.Argument) else "option"
        return f"the {kind} {_name(error)} is missing{help_command}"
    if isinstance(error, click.BadParameter):
        return f"{_name(error)}: {error.message.rstrip('.')}"
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:] + help_command


def _unknown_option(error: click.NoSuchOption) -> str:
    known = sorted(
        option
        for param in (error.ctx.command.params if error.ctx is not None else [])
        for option in (*param.opts, *param.secondary_opts)
        if option.startswith("--")
    )
    name = error.option_name
    near = difflib.get_close_matches(name.lstrip("-"), [option[2:] for option in known], 1)
    if near:
        return f"no option {name}; did you mean --{near[0]}?"
    return f"no option {name}; known: {', '.join(known)}" if known else f"no option {name}"


def _name(error: click.BadParameter) -> str:
    hint = error.param_hint
    if hint is None and error.param is not None:
        if isinstance(error.param, click.Argument):
            return error.param.human_readable_name
        return max(error.param.opts, key=len)
    return hint if isinstance(hint, str) else " / ".join(hint or ("a value",))


def _system(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    remedy = "make room, permit it, or choose another place"
    return f"{path}: {reason}; {remedy}" if path else f"the system refused ({reason}); {remedy}"
