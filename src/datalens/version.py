"""The version, in one place: the one that the build read off git's tags, and wrote beside this file."""

from __future__ import annotations

from importlib import import_module

UNBUILT = "0.1.0.dev0"
"""Of sources that were never built or installed; also the build's own answer where git knows no tag."""

try:
    __version__: str = import_module(
        "datalens._version"
    ).__version__  # by name: a fresh checkout has no such file
except ModuleNotFoundError:
    __version__ = UNBUILT
