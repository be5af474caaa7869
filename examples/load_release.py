"""Draw from what somebody released, with PyTorch and safetensors alone: this package need not be installed.

python examples/load_release.py runs/mnist/release

A released generator has a program beside it, ``load_generator.py``: two hundred lines, the same for every run of a
version. It is code, so look at a stranger's before you run it.
"""

# ruff: noqa: T201
from __future__ import annotations

import sys
from pathlib import Path

release = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(release))
from load_generator import Generator  # noqa: E402

generator = Generator()
print(f"draws images of shape {generator.image_shape}, of the classes {', '.join(generator.classes)}")

images, labels = generator.sample(8, labels=[0] * 8, seed=1)
print(
    f"drew {len(images)} images of class {generator.classes[int(labels[0])]}, mean {images.float().mean():.0f}"
)
print(f"with datalens: {'datalens' in sys.modules}")
