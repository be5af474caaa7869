"""The whole way in Python: images in, a generator with a guarantee and its images out.

python examples/quickstart_python.py             drawn shapes, seconds
python examples/quickstart_python.py mnist       fetched where this machine has them not, minutes
"""

# ruff: noqa: T201
from __future__ import annotations

import sys

from datalens import DataLens, data, recipes
from datalens.evaluation import evaluate_utility

RECIPES = {
    "shapes": recipes.shapes_quick,
    "mnist": recipes.mnist_quick,
    "fashion-mnist": recipes.fashion_quick,
}


def main(source: str = "shapes", num_samples: int = 2000) -> float:
    """Train on one source and return the accuracy of a classifier that saw synthetic images only."""
    data.fetch(source)
    train, test = data.load(source, split="train"), data.load(source, split="test")

    config = RECIPES[source](epsilon=4.0 if source == "shapes" else 1.0)
    model = DataLens(config).fit(train)
    images, labels = model.sample(num_samples)

    delta = config.privacy.delta
    print(
        f"promised: epsilon {model.epsilon(delta):.3f}, delta {delta:g}; spent {model.spent_epsilon(delta):.3f}"
    )
    result = evaluate_utility(
        images, labels, test.images, test.labels, num_classes=test.num_classes, classifier="logistic"
    )
    print(f"trained on {num_samples} synthetic images, a classifier gets {result.last_accuracy:.1%} right")
    return result.last_accuracy


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "shapes")
