"""The file under a ledger: one writer, a name that is never taken from another, file systems that lack things."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from datalens.errors import LedgerError
from datalens.privacy import ledger_file
from datalens.privacy.ledger import Ledger


def test_a_file_is_locked_while_it_is_written_and_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.create(path, {})
    assert ledger_file.is_locked(path)
    ledger.close()
    ledger.close()  # twice does no harm
    assert not ledger_file.is_locked(path)
    assert not ledger_file.is_locked(tmp_path / "none")


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger.create(path, {}).close()

    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(LedgerError, match=r"cannot be locked .*: keep it on a local disk"):
        Ledger.open(path)


@pytest.mark.parametrize("links", [True, False])
def test_a_name_is_never_taken_from_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no hard links")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    first, second, path = tmp_path / "first", tmp_path / "second", tmp_path / "named"
    first.write_text("first")
    second.write_text("second")
    ledger_file.publish(first, path)
    assert path.read_text() == "first"
    assert not first.exists()
    with pytest.raises(FileExistsError):
        ledger_file.publish(second, path)
    assert path.read_text() == "first"
    assert second.exists()
