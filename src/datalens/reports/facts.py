"""What a page may say of a run: read from ``release/`` alone, and checked before anything is drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datalens.errors import DataLensError, NotPrivateError, RunError
from datalens.privacy import promises
from datalens.privacy.baseline_card import is_of_own_method
from datalens.privacy.certificate import build_certificate
from datalens.privacy.ledger import Ledger
from datalens.reports.progress import Progress, progress_of
from datalens.reports.spending import SpentPoint, spending

_PROMISED = ("delta", "adjacency", "group_size")
CONFIG, CERTIFICATE, LEDGER = "config.json", "certificate.json", "ledger.jsonl"
SCORES, AUDIT = "scores.json", "audit.json"


@dataclass(frozen=True)
class AuditVerdict:
    """What ``datalens audit RUN --json RUN/release/audit.json`` left there.

    Attributes:
        passed: whether nothing spoke against the claim.
        verdict: its one line.
        num_checks: how many there were.
        is_current: whether it was of the ledger that lies beside it now.
    """

    passed: bool
    verdict: str
    num_checks: int
    is_current: bool


@dataclass(frozen=True)
class Score:
    """A score that may be shared.

    Attributes:
        is_public: measured as it is, on data declared public; else a count with noise, charged in the ledger.
        right: right predictions, with noise where it is charged.
        num_test: records asked about; None where that is not public.
        noise_stddev: of the count; 0 on public data.
        accuracy: their ratio, where both are known.
        how: the classifier and what it learned from.
    """

    is_public: bool
    right: int
    num_test: int | None
    noise_stddev: float
    accuracy: float | None
    how: str


@dataclass(frozen=True)
class ReleaseFacts:
    """Everything that a page of a run may say.

    Attributes:
        certificate: what is promised.
        config: public settings.
        spent: epsilon after so many releases; empty where nothing is promised.
        scores: those that may be shared, as ``scores.json`` has them.
        audit: the verdict of an audit, where one lies there.
        progress: steps taken and planned.
    """

    certificate: Mapping[str, Any]
    config: Mapping[str, Any]
    spent: tuple[SpentPoint, ...]
    scores: tuple[Score, ...]
    audit: AuditVerdict | None
    progress: Progress

    @property
    def method(self) -> str:
        """Name of the method, as commands take it."""
        return str(self.config.get("method", "datalens"))

    @property
    def is_classifier(self) -> bool:
        """Whether a classifier was trained and no generator."""
        return self.certificate["mechanism"].get("name") in promises.CLASSIFIERS

    @property
    def is_of_own_method(self) -> bool:
        """Whether the method is no part of DataLens, so that only its author's program opens the run."""
        return is_of_own_method(self.certificate)

    @property
    def is_fit(self) -> bool:
        """Whether it may be published."""
        return bool(self.certificate["fit_for_publication"])

    @property
    def epsilon(self) -> float | None:
        """What is promised; None where nothing is."""
        return self.certificate["guarantee"]["epsilon"]

    @property
    def delta(self) -> float:
        """At which delta."""
        return float(self.certificate["guarantee"]["delta"])

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their numbers."""
        return tuple(str(name) for name in self.config["classes"])

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(C, H, W)."""
        channels, height, width = (int(size) for size in self.config["image_shape"])
        return channels, height, width

    @property
    def data_name(self) -> str:
        """Name of a published data set, else ``private``."""
        return str(self.config["data"])

    @property
    def data_set(self) -> str:
        """The same without its split, such as ``mnist``."""
        return self.data_name.partition(" (")[0]

    @property
    def run_id(self) -> str:
        """The name that the ledger gave the run."""
        return str(self.certificate["ledger"]["run_id"])


def read_release(release: Path) -> ReleaseFacts:
    """The facts of a finished or stopped run.

    Args:
        release: its shared folder.

    Raises:
        RunError: the run has no certificate yet, or files are damaged.
        NotPrivateError: an audit lies there that looked at people's records.
        LedgerError: the ledger is damaged.
    """
    if not (release / CERTIFICATE).is_file():
        raise RunError(f"{release}: the run has no {CERTIFICATE} yet; resume the training first")
    certificate, config = read_object(release / CERTIFICATE), read_object(release / CONFIG)
    ledger = Ledger.read(release / LEDGER)
    with understood(release):
        expected = build_certificate(ledger, config, {}, {})
    with understood(release / CERTIFICATE):
        _check_promise(certificate, expected, release)
    with understood(release):
        guarantee = certificate["guarantee"]
        facts = ReleaseFacts(
            certificate=certificate,
            config=config,
            spent=spending(ledger, guarantee["accountant"], guarantee["delta"]),
            scores=_scores(release / SCORES),
            audit=_audit(release / AUDIT, ledger.head[1]),
            progress=progress_of(ledger),
        )
        _ = (
            facts.is_classifier,
            facts.is_of_own_method,
            facts.classes,
            facts.image_shape,
            facts.data_name,
            facts.run_id,
        )
        _ = certificate["ledger"]["last_line"], certificate["ledger"]["head"]
    return facts


@contextmanager
def understood(source: Path) -> Iterator[None]:
    """What is read off a file or the files of a folder, which may come from anywhere.

    Raises:
        RunError: something in them is missing, or of another kind than it should be.
    """
    try:
        yield
    except DataLensError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RunError(
            f"{source}: cannot be understood ({type(error).__name__}: {reason:.120}); see datalens verify"
        ) from None


def _check_promise(certificate: Mapping[str, Any], expected: Mapping[str, Any], release: Path) -> None:
    """No page promises what the ledger does not.

    Raises:
        RunError: the certificate says another thing than what its ledger gives.
    """
    said, given = certificate["guarantee"], expected["guarantee"]
    same = {name: said[name] == given[name] for name in _PROMISED}
    same["epsilon"] = _is_close(said["epsilon"], given["epsilon"])
    same["fit_for_publication"] = certificate["fit_for_publication"] is expected["fit_for_publication"]
    same["not_fit_because"] = certificate["not_fit_because"] == expected["not_fit_because"]
    wrong = [name for name, is_same in same.items() if not is_same]
    if wrong:
        raise RunError(
            f"{release / CERTIFICATE}: says another {wrong[0]} than its ledger gives, so no page is made of it; see "
            "datalens verify"
        )


def _is_close(said: float | None, given: float | None) -> bool:
    """Whether two epsilons are the same but for the last digits, in which platforms differ."""
    if said is None or given is None:
        return said is given
    return math.isclose(said, given, rel_tol=1e-6)


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        RunError: it is missing, is no JSON or no object.
    """
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{path}: no such file; give the folder of a run") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: cannot be read ({' '.join(str(error).split()):.120}); restore it") from None
    if not isinstance(value, dict):
        raise RunError(f"{path}: holds no JSON object; restore the file")
    return value


def _scores(path: Path) -> tuple[Score, ...]:
    return tuple(map(_score, read_object(path)["scores"])) if path.is_file() else ()


def _score(kept: Mapping[str, Any]) -> Score:
    is_public = kept["data_is_public"] is True
    num_test, accuracy = kept["num_test"], kept["accuracy"]
    return Score(
        is_public=is_public,
        right=int(kept["right" if is_public else "noisy_right"]),
        num_test=None if num_test is None else int(num_test),
        noise_stddev=0.0 if is_public else float(kept["noise_stddev"]),
        accuracy=None if accuracy is None else float(accuracy),
        how=f"{kept['classifier']}, trained on {int(kept['num_train']):,} synthetic images for {int(kept['epochs'])} "
        f"epoch{'s' if int(kept['epochs']) > 1 else ''}",
    )


def _audit(path: Path, head: str) -> AuditVerdict | None:
    if not path.is_file():
        return None
    answer = read_object(path)
    findings = answer["findings"]
    if any(finding.get("private") for finding in findings):
        raise NotPrivateError(
            f"{path}: holds findings on people's records, which do not belong there; move it to private/"
        )
    return AuditVerdict(
        passed=answer["passed"] is True,
        verdict=str(answer["verdict"]),
        num_checks=len(findings),
        is_current=answer.get("ledger_head") == head,
    )
