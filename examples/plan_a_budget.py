"""What a budget buys, before any data are touched: steps, noise, and what is left of the teachers' votes.

python examples/plan_a_budget.py           epsilon 1
python examples/plan_a_budget.py 0.2
"""

# ruff: noqa: T201
from __future__ import annotations

import sys

from datalens import recipes
from datalens.privacy.accountant import AccountantKind
from datalens.privacy.calibration import epsilon_for, max_releases, noise_for
from datalens.privacy.events import GaussianEvent
from datalens.privacy.sensitivity import topagg_sensitivity
from datalens.privacy.signal import best_threshold, signal_of

VOTING = recipes.by_name("quick").voting  # what `datalens train` starts from
NUM_TEACHERS, DIM, DELTA = VOTING.num_teachers, 784, 1e-5


def step(noise_stddev: float) -> GaussianEvent:
    """One generator step: one teacher moves the votes on its m images by at most 2 sqrt(m k)."""
    sensitivity = topagg_sensitivity(VOTING.top_k, VOTING.images_voted)
    return GaussianEvent(sensitivity, noise_stddev, VOTING.batch_size * DIM)


def main(epsilon: float = 1.0) -> dict[str, int]:
    """Print the plan; return the number of steps that each accountant allows."""
    print(
        f"recipe quick: {NUM_TEACHERS} teachers, top_k {VOTING.top_k}, {VOTING.batch_size} images a step, of which "
        f"a teacher votes on {VOTING.images_voted}"
    )
    allowed = {}
    for kind in AccountantKind:
        allowed[str(kind)] = max_releases(step(5000.0), epsilon, DELTA, kind)
        print(f"{kind:12} {allowed[str(kind)]:6} steps with noise 5000 at epsilon {epsilon:g}")

    for num_steps in (50, 150, 500):
        noise = noise_for(step, num_steps, epsilon, DELTA, AccountantKind.EXACT)
        threshold, share = best_threshold(NUM_TEACHERS, noise), VOTING.images_voted / VOTING.batch_size
        signal = signal_of(NUM_TEACHERS, noise, threshold, share_voting=share)
        spent = epsilon_for(step(noise), num_steps, DELTA, AccountantKind.EXACT)
        print(
            f"{num_steps} steps need noise {noise:.0f} (epsilon {spent:.4f}): where all {NUM_TEACHERS} "
            f"teachers agree, right {signal.right:.3f}, wrong {signal.wrong:.3f}"
        )
    return allowed


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:2]))
