"""The sources that have a name: published sets, and the drawn shapes."""

from __future__ import annotations

import os
from dataclasses import dataclass

from datalens.data.celeba import CELEBA_GENDER, CELEBA_HAIR
from datalens.data.cifar10 import CIFAR10
from datalens.data.emoji import EMOJI
from datalens.data.fashion_mnist import FASHION_MNIST
from datalens.data.gathered import GatheredSet
from datalens.data.mnist import MNIST
from datalens.data.places365 import PLACES365
from datalens.data.published import PublishedSet, resolve_root
from datalens.data.shapes import CLASSES as SHAPE_CLASSES

SHAPES = "shapes"
PUBLISHED: dict[str, PublishedSet] = {known.name: known for known in (MNIST, FASHION_MNIST, CIFAR10)}


GATHERED: dict[str, GatheredSet] = {
    known.name: known for known in (CELEBA_GENDER, CELEBA_HAIR, PLACES365, EMOJI)
}


@dataclass(frozen=True)
class SourceInfo:
    """A source that can be asked for by name.

    Attributes:
        name: by which it is asked for.
        title: what it holds.
        classes: in label order.
        needs_fetch: it is not drawn: its files have to be here.
        by_hand: its files are given out by their makers alone, and no fetch brings them.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    needs_fetch: bool
    by_hand: bool = False


def list_sources() -> tuple[SourceInfo, ...]:
    """Every source with a name; besides these, whatever `datalens.data.own` knows is a source by its path.

    >>> [source.name for source in list_sources()]
    ['mnist', 'fashion-mnist', 'cifar10', 'celeba-gender', 'celeba-hair', 'places365', 'emoji', 'shapes']
    """
    published = [SourceInfo(known.name, known.title, known.classes, True) for known in PUBLISHED.values()]
    published += [
        SourceInfo(known.name, known.title, known.classes, True, by_hand=not known.packages)
        for known in GATHERED.values()
    ]
    drawn = SourceInfo(
        SHAPES, "four drawn shapes, 16x16 grey, for tests and first tries", SHAPE_CLASSES, False
    )
    return (*published, drawn)


def remedy(name: str, root: str | os.PathLike[str] | None = None) -> str:
    """What to do where files of a named source are missing or damaged, as part of a sentence.

    >>> remedy("mnist")
    'run `datalens data fetch mnist`'
    """
    known = GATHERED.get(name)
    return f"run `datalens data fetch {name}`" if known is None else known.remedy(resolve_root(root))


def known_names() -> str:
    """The names, as part of a sentence."""
    return ", ".join(names())


def names() -> list[str]:
    """The names."""
    return [source.name for source in list_sources()]
