"""Copy check: are the samples nearer to the training images than to test images that no one trained on?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import torch

from datalens.errors import DataError
from datalens.evaluation.inputs import ImageArray, ValueRange, byte_images

_CANDIDATES = 4
_CHUNK = 512


@dataclass(frozen=True)
class CopyCheck:
    """What the nearest neighbours of the samples say. Measured on people's images: keep under ``private/``.

    Distances are root mean square pixel differences, black to white being 1.

    Attributes:
        num_samples: Samples checked.
        num_train: Training images searched.
        num_reference: Training images, and test images, in the even comparison.
        share_closer_to_train: Share of samples nearer to the even training subset than to the test
            subset, a tie counting half. Near 0.5 when training images are no closer than unseen ones.
        z_score: That share's distance from 0.5 in standard deviations of fair coin tosses; above about 4 is a
            reason to look. Samples that resemble each other make it larger than it should be.
        median_distance_train: To the nearest of the even training subset, median over samples.
        median_distance_test: To the nearest of the test subset, median over samples.
        smallest_distance_train: To the nearest of all training images, smallest over samples.
        num_exact_copies: Samples that equal a training image at 8 bits.
        closest_pairs: (sample, training image, distance) of up to ten samples nearest to any training image.
    """

    num_samples: int
    num_train: int
    num_reference: int
    share_closer_to_train: float
    z_score: float
    median_distance_train: float
    median_distance_test: float
    smallest_distance_train: float
    num_exact_copies: int
    closest_pairs: tuple[tuple[int, int, float], ...]

    def to_json(self) -> dict[str, object]:
        """The same, as plain types."""
        return {**asdict(self), "closest_pairs": [list(pair) for pair in self.closest_pairs]}


def copy_check(
    samples: ImageArray,
    train_images: ImageArray,
    test_images: ImageArray,
    *,
    value_range: ValueRange | str | None = None,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> CopyCheck:
    """Compare the samples' distances to training images with those to as many test images.

    The sets are cut to one size for the comparison, since the larger of two equal crowds has the nearer
    neighbour; exact copies and closest pairs are searched among all training images. A clean result is no
    proof of privacy; that is the certificate's matter.

    Args:
        samples: Generated images.
        train_images: What the generator was trained on.
        test_images: Images of the same kind that it never saw.
        value_range: What the numbers mean, of images that are not uint8.
        seed: Of the choice of the even subsets.
        device: Where distances are computed.

    Raises:
        DataError: no images, an undeclared range, or shapes that differ.
    """
    arrays = [
        byte_images(images, value_range, name=name)
        for name, images in (
            ("samples", samples),
            ("train_images", train_images),
            ("test_images", test_images),
        )
    ]
    if len({array.shape[1:] for array in arrays}) != 1:
        shapes = ", ".join(str(array.shape[1:]) for array in arrays)
        raise DataError(f"samples, train_images and test_images are {shapes} (C, H, W); give one shape")
    sample_BD, train_RD, test_RD = (array.reshape(len(array), -1) for array in arrays)
    rng = np.random.default_rng(seed)
    size = min(len(train_RD), len(test_RD))
    place = torch.device(device)
    _, even_train = nearest(sample_BD, train_RD[rng.permutation(len(train_RD))[:size]], place)
    _, even_test = nearest(sample_BD, test_RD[rng.permutation(len(test_RD))[:size]], place)
    index, distance = nearest(sample_BD, train_RD, place)
    share = float(np.mean((even_train < even_test) + 0.5 * (even_train == even_test)))
    closest = np.argsort(distance, kind="stable")[:10]
    return CopyCheck(
        num_samples=len(sample_BD),
        num_train=len(train_RD),
        num_reference=size,
        share_closer_to_train=share,
        z_score=(share - 0.5) * 2.0 * math.sqrt(len(sample_BD)),
        median_distance_train=float(np.median(even_train)),
        median_distance_test=float(np.median(even_test)),
        smallest_distance_train=float(distance.min()),
        num_exact_copies=int((distance == 0).sum()),
        closest_pairs=tuple((int(i), int(index[i]), float(distance[i])) for i in closest),
    )


def nearest(
    queries_BD: npt.NDArray[np.uint8], references_RD: npt.NDArray[np.uint8], device: torch.device
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """For each query the nearest reference's index and root mean square distance in [0, 1].

    Candidates come from a matrix product in single precision; their distances are then computed exactly.
    """
    references = torch.from_numpy(references_RD).to(device, torch.float32).div_(255.0)
    squares = references.square().sum(1)
    count = min(_CANDIDATES, len(references_RD))
    indices, distances = [], []
    for start in range(0, len(queries_BD), _CHUNK):
        chunk = queries_BD[start : start + _CHUNK]
        queries = torch.from_numpy(chunk).to(device, torch.float32).div_(255.0)
        scores = torch.addmm(squares, queries, references.T, alpha=-2.0)
        candidates = scores.topk(count, dim=1, largest=False).indices.cpu().numpy()
        difference = references_RD[candidates].astype(np.int32) - chunk[:, None].astype(np.int32)
        exact = np.square(difference).sum(axis=2, dtype=np.int64)
        best = exact.argmin(axis=1)
        rows = np.arange(len(chunk))
        indices.append(candidates[rows, best])
        distances.append(np.sqrt(exact[rows, best] / chunk.shape[1]) / 255.0)
    return np.concatenate(indices), np.concatenate(distances)
