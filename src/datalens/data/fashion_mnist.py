"""Fashion-MNIST: 70,000 pictures of clothes, 28x28 grey, laid out like MNIST with 7,000 a class."""

from __future__ import annotations

from datalens.data.published import PublishedFile, PublishedSet

FASHION_MNIST = PublishedSet(
    name="fashion-mnist",
    title="pictures of clothes, 60,000 to train and 10,000 to test, 28x28 grey, 10 classes",
    classes=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    files={
        "train": (
            PublishedFile("train-images-idx3-ubyte", "f4a8712d7a061bf5bd6d2ca38dc4d50a", (60_000, 28, 28)),
            PublishedFile("train-labels-idx1-ubyte", "9018921c3c673c538a1fc5bad174d6f9", (60_000,)),
        ),
        "test": (
            PublishedFile("t10k-images-idx3-ubyte", "8181f5470baa50b63fa0f6fddb340f0a", (10_000, 28, 28)),
            PublishedFile("t10k-labels-idx1-ubyte", "15d484375f8d13e6eb1aabb0c3f46965", (10_000,)),
        ),
    },
    folders=("fashion-mnist", "FashionMNIST/raw"),
    torchvision_class="FashionMNIST",
    debian_package="dataset-fashion-mnist",
)
