"""Whether a device that was asked for can be used."""

from __future__ import annotations

from datalens.errors import ConfigError


def require_device(name: str) -> None:
    """Refuse a device that cannot compute here.

    Raises:
        ConfigError: says why it cannot.
    """
    from datalens.training.devices import why_not

    reason = why_not(name)
    if reason is not None:
        raise ConfigError(f"--device {name}: cannot be used here ({reason:.100}); use cpu")
