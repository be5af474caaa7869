"""What a class may be called: a name is printed, typed, put into a certificate, and names a folder of samples."""

from __future__ import annotations

from collections.abc import Sequence

from datalens.errors import ConfigError, DataError

MOST_CHARACTERS = 100
_SHOWN = 5


def check_class_names(names: Sequence[object], source: str) -> None:
    """Refuse class names that nobody could read or type.

    Args:
        names: of the classes, in the order of their numbers.
        source: where they come from, for the message.

    Raises:
        DataError: there is none, or one that is no text, empty, too long, with a character that cannot be printed
            (a line break, a control character), with a space at an end, or there twice; it shows the name.

    >>> check_class_names(["cat", "dog 2", "Fähre"], "pets")
    """
    if not names:
        raise DataError(f"{source}: there is no class; name at least one")
    for name in names:
        if not isinstance(name, str) or not name:
            raise DataError(f"{source}: class name {name!r:.60} is not a non-empty string; name every class")
        if len(name) > MOST_CHARACTERS:
            shown = f"{name[:20]!r}..."
            raise DataError(
                f"{source}: class name {shown} has {len(name)} characters; use at most {MOST_CHARACTERS}"
            )
        if not name.isprintable():
            raise DataError(
                f"{source}: class name {name!a} holds a character that cannot be printed; use letters, digits, "
                "signs and plain spaces"
            )
        if name != name.strip():
            raise DataError(f"{source}: class name {name!r} begins or ends with a space; take it off")
    if len(set(names)) < len(names):
        seen: set[object] = set()
        twice = next(name for name in names if name in seen or seen.add(name))
        raise DataError(f"{source}: class {twice!r} is named twice; each class needs a name of its own")


def declare_classes(classes: Sequence[object] | int) -> tuple[str, ...]:
    """A user's declaration as a tuple of names; the number Y stands for "0" to "Y-1".

    Raises:
        ConfigError: it is no list of different names, and no number from 1.
        DataError: a name that no class may have; see :func:`check_class_names`.
    """
    if isinstance(classes, (bool, str, bytes)):
        raise ConfigError(f"classes is {classes!r:.60}, but must be a list of names or how many there are")
    if isinstance(classes, int):
        if classes < 1:
            raise ConfigError(f"classes is {classes}, but there must be at least 1; raise it")
        return tuple(str(number) for number in range(classes))
    names = tuple(str(item) for item in classes)
    if not names or "" in names or len(set(names)) < len(names):
        shown = ", ".join(f"{name:.20}" for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        raise ConfigError(f"classes is {shown or 'nothing'}, but must name each class once and none emptily")
    check_class_names(names, "classes")
    return names
