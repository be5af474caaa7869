"""``--public-init`` of ``datalens train``: public images, or a run on public images, for a run to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from datalens.cli.judged import is_named
from datalens.cli.options import is_given
from datalens.cli.output import Output
from datalens.errors import ConfigError, DataError

if TYPE_CHECKING:
    from datalens.data.images import LabelledImages
    from datalens.training.config import Config
    from datalens.training.starting import PublicSource

OPTIONS = ("public_init", "public_init_is_public")


def read_public_init(
    source: str, config: Config, data: LabelledImages, options: dict[str, Any], output: Output
) -> PublicSource | None:
    """What was asked for, read and announced; None where nothing was.

    Args:
        source: of the sensitive images, which may not be named again.
        config: settings of the run.
        data: the sensitive images.
        options: of the command.
        output: hears what begins with which weights.

    Raises:
        DataLensError: it is not public, holds most of the sensitive images, or cannot be read.
    """
    from datalens.training.run_folder import RunFolder
    from datalens.training.starting import note_of_shared, refuse_covering
    from datalens.training.warm_settings import ONE_START, refuse_warm

    asked, is_declared = (options[name] for name in OPTIONS)
    if asked is None:
        if is_declared:
            raise ConfigError("--public-init-is-public: belongs to --public-init; give both, or neither")
        return None
    refuse_warm(config.warm_start, *ONE_START)
    if RunFolder.holds_run(Path(asked)):
        if is_declared:
            raise ConfigError(
                f"--public-init-is-public: the run in {asked} says itself what it learned from; leave it out"
            )
        output.say(f"public start: {_who(config)} from the run in {asked}")
        return Path(asked)
    _refuse_same_place(asked, source)
    _require_there(asked)
    if not is_named(asked) and not is_declared:
        raise ConfigError(
            f"--public-init {asked}: what a run begins with is released, so it must be public; say with "
            "--public-init-is-public that these images are, or give others"
        )
    images = _load(asked, data, options)
    refuse_covering(images, data)
    for note in [*images.notes, note_of_shared(images, data)]:
        if note is not None:
            output.warn(note)
    same = set(images.classes) == set(data.classes)
    output.say(
        f"public start: {_who(config)} from {config.public_init.steps} steps on {images.num_records} images of "
        f"{asked}, {'with their classes' if same else 'each with a class by lot, as their classes are others'}"
    )
    return images


def _require_there(asked: str) -> None:
    """What does not exist is no matter of being public."""
    from datalens.data import available_splits

    if is_named(asked) or Path(asked).expanduser().exists():
        return
    try:
        available_splits(asked)
    except DataError as error:
        raise DataError(f"--public-init {error}") from None


def _who(config: Config) -> str:
    from datalens.teachers.families import TeacherKind

    kind = config.teachers.kind
    if kind is TeacherKind.PAPER:
        return "generator and discriminators start"
    return f"the generator starts ({kind} teachers have no weights)"


def _load(asked: str, data: LabelledImages, options: dict[str, Any]) -> LabelledImages:
    """The training split, in the size and channels of the sensitive images and over the same background, with damaged
    ones left out where those of the sensitive source are: as far as its reader knows these options."""
    from datalens.data import load
    from datalens.data.own import OWN_OPTIONS, kind_at

    channels, height, width = data.image_shape
    settings: dict[str, Any] = {"image_size": (height, width), "public": True}
    if is_given(options.get("data_root")):
        settings["root"] = options["data_root"]
    kind = None if is_named(asked) else kind_at(Path(asked).expanduser())
    known = OWN_OPTIONS[kind] if kind is not None else frozenset[str]()
    wanted = {"channels": channels, **{name: options.get(name) for name in ("background", "skip_damaged")}}
    settings |= {name: value for name, value in wanted.items() if name in known and is_given(value)}
    return load(asked, split="train", **settings)


def _refuse_same_place(asked: str, source: str) -> None:
    is_same = asked == source
    if not is_same and not is_named(asked) and not is_named(source):
        is_same = Path(asked).expanduser().resolve() == Path(source).expanduser().resolve()
    if is_same:
        raise ConfigError(
            f"--public-init {asked}: names the images that are to be protected; give other, public ones"
        )
