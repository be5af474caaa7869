"""What a plan must keep to: the given options, and a recipe's settings where none is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datalens.privacy.accountant import AccountantKind
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.sensitivity import images_voted, topagg_sensitivity
from datalens.privacy.signal import Signal, best_threshold, require_signal, signal_of

if TYPE_CHECKING:
    from datalens.training.config import Voting


def voting_of(recipe: str, epsilon: float) -> Voting:
    """The voting of a recipe at this epsilon; an unknown name is a ConfigError that lists the known ones."""
    from datalens import recipes

    return recipes.by_name(recipe, epsilon=epsilon).voting


@dataclass(frozen=True)
class Terms:
    """What a plan must keep to."""

    epsilon: float
    delta: float
    accountant: AccountantKind
    noise: NoiseKind
    top_k: int
    batch_size: int
    images_per_teacher: int | None
    vote_threshold: float | None
    group_size: int

    @property
    def images(self) -> int:
        """Images of a step that one teacher may vote on."""
        return images_voted(self.batch_size, self.images_per_teacher)

    def event(self, noise_stddev: float) -> GaussianEvent:
        """What one step costs."""
        sensitivity = topagg_sensitivity(self.top_k, self.images, self.group_size)
        return GaussianEvent(sensitivity, noise_stddev, 1, self.noise)

    def signal(self, num_teachers: int, noise_stddev: float, *, require: bool = False) -> Signal:
        """What is heard of so many teachers; refused where it is hopeless and required."""
        threshold = self.vote_threshold
        if threshold is None:
            threshold = best_threshold(num_teachers, noise_stddev)
        judge = require_signal if require else signal_of
        return judge(num_teachers, noise_stddev, threshold, share_voting=self.images / self.batch_size)

    @property
    def target(self) -> tuple[float, float, AccountantKind]:
        """What must not be overspent, and how it is counted."""
        return self.epsilon, self.delta, self.accountant


def assumed(recipe: str, wanted: Terms, num_teachers: int | None, top_k: int | None) -> str:
    """Every setting that the answer rests on, where it is not in the table."""
    most = "" if wanted.images == wanted.batch_size else f" (at most {wanted.images} for each teacher)"
    threshold = "the best" if wanted.vote_threshold is None else f"{wanted.vote_threshold:g}"
    said = [
        *([] if num_teachers is None else [f"{num_teachers} teachers"]),
        *([] if top_k is None else [f"top_k {top_k}"]),
        f"{wanted.batch_size} images a step{most}",
        f"vote threshold {threshold}",
        f"{wanted.noise} noise",
        *([] if wanted.group_size == 1 else [f"{wanted.group_size} records a person"]),
    ]
    return f"assumed (recipe {recipe} and your options): {', '.join(said)}"
