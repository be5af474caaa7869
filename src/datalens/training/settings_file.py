"""A file of settings in TOML, as plain values."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from datalens.errors import ConfigError

_LARGEST_FILE = 2**20  # bytes of settings: anything longer is another file, or a device that never ends


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, as plain values with a section a table.

    Raises:
        ConfigError: the file is missing, is not TOML, or is too large for settings.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        found = tomllib.loads(content.decode()) if len(content) <= _LARGEST_FILE else None
    except FileNotFoundError:
        raise ConfigError(f"--config {path}: no such file; give the path of a TOML file") from None
    except RecursionError:
        raise ConfigError(f"--config {path}: is nested too deeply; write a table a section") from None
    except (OSError, ValueError) as error:  # what is no UTF-8, no TOML, or a number of thousands of digits
        why = " ".join(str(error).split())
        raise ConfigError(f"--config {path}: cannot be read as TOML ({why}); correct the file") from None
    if found is not None:
        return found
    raise ConfigError(f"--config {path}: has more than 1 MiB, so it holds no settings; give a TOML file")
