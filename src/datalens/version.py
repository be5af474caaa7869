"""The version, in one place: the one that the build read off git's tags, and wrote beside this file."""

from __future__ import annotations

UNBUILT = "0.1.0.dev0"
"""Of sources that were never built or installed; also the build's own answer where git knows no tag."""

try:
    from datalens._version import __version__  # pyright: ignore[reportMissingImports]
except ImportError:
    __version__ = UNBUILT

__all__ = ["UNBUILT", "__version__"]
