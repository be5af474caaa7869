"""What a budget buys, before any data are touched: steps, noise, and what is left of the teachers' votes.

python examples/plan_a_budget.py           epsilon 1
python examples/plan_a_budget.py 0.2
"""

# ruff: noqa: T201
from __future__ import annotations

import math
import sys

from datalens.privacy.accountant import AccountantKind
from datalens.privacy.calibration import epsilon_for, max_releases, noise_for
from datalens.privacy.events import GaussianEvent
from datalens.privacy.signal import signal_of

NUM_TEACHERS, TOP_K, BATCH_SIZE, DIM, DELTA = 4000, 200, 15, 784, 1e-5


def step(noise_stddev: float) -> GaussianEvent:
    """One generator step: one teacher moves the votes on all images by at most 2 sqrt(m k)."""
    return GaussianEvent(2 * math.sqrt(BATCH_SIZE * TOP_K), noise_stddev, BATCH_SIZE * DIM)


def main(epsilon: float = 1.0) -> dict[str, int]:
    """Print the plan; return the number of steps that each accountant allows."""
    allowed = {}
    for kind in AccountantKind:
        allowed[str(kind)] = max_releases(step(5000.0), epsilon, DELTA, kind)
        print(f"{kind:12} {allowed[str(kind)]:6} steps with noise 5000 at epsilon {epsilon:g}")

    for num_steps in (50, 150, 500):
        noise = noise_for(step, num_steps, epsilon, DELTA, AccountantKind.EXACT)
        signal = signal_of(NUM_TEACHERS, noise, vote_threshold=0.612 * noise / NUM_TEACHERS)
        spent = epsilon_for(step(noise), num_steps, DELTA, AccountantKind.EXACT)
        print(
            f"{num_steps} steps need noise {noise:.0f} (epsilon {spent:.4f}): where all {NUM_TEACHERS} "
            f"teachers agree, right {signal.right:.3f}, wrong {signal.wrong:.3f}"
        )
    return allowed


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:2]))
