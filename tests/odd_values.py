"""What people and scripts give that is not meant: odd numbers, odd text, odd places."""

from __future__ import annotations

from pathlib import Path

NUMBERS = {
    "zero": "0",
    "minus zero": "-0",
    "one": "1",
    "minus one": "-1",
    "signed": "+7",
    "padded": "012",
    "half": "0.5",
    "whole as decimal": "3.0",
    "exponent": "1e3",
    "tiny": "1e-320",
    "no number": "1e-400",
    "too large for a float": "1e400",
    "30 digits": "1" + "0" * 30,
    "19 digits": "9" * 19,
    "18 digits": "9" * 18,
    "two to the 63": str(2**63),
    "a million million": str(10**12),
    "400 digits": "9" * 400,
    "5000 digits": "9" * 5000,
    "nan": "nan",
    "signed nan": "-NaN",
    "inf": "inf",
    "minus infinity": "-Infinity",
    "underscore": "1_000",
    "hexadecimal": "0x10",
    "full-width digits": "１０",
    "Arabic digits": "١٢",
    "superscript": "2²",
    "thousands": "1,000",
    "comma": "0,5",
    "blanks around": " 7 ",
    "line break behind": "7\n",
    "sexagesimal": "1:30",
    "complex": "1j",
    "fraction": "1/2",
    "per cent": "50%",
    "Unicode minus": "\u22125",
}
TEXTS = {
    "empty": "",
    "blank": " \t ",
    "no-break space": "\u00a0",
    "zero width": "\u200b",
    "word": "nonsense",
    "true": "true",
    "no": "no",
    "null": "null",
    "emoji": "🦙",
    "combining": "e\u0301\u0301\u0301",
    "right to left": "\u202eabc\u05d0",
    "byte order mark": "\ufeffmnist",
    "NUL": "a\0b",
    "line break": "a\nb",
    "separator": "a\u2028b",
    "escape": "\x1b[31mred",
    "surrogate": "a\udcffb",
    "quote": "a'\"b",
    "braces": "{0}%s{x!r}",
    "JSON": '{"a": [1]}',
    "commas": ",,,",
    "one name twice": "cnn,cnn",
    "long": "x" * 100_000,
    "long name": "x" * 300,
    "deep": "a/" * 3000 + "b",
    "dash": "-",
    "like an option": "--nonsense",
    "home": "~",
    "device": "/dev/null",
    "under a device": "/dev/null/x",
    "parent": "..",
}
PLACES = ("a folder", "a file", "a closed file", "a closed folder", "a loop", "a dead link", "missing/x")


def make_places(folder: Path) -> None:
    """The places of :data:`PLACES` but the last, by their own names."""
    (folder / "a folder").mkdir()
    (folder / "a folder" / "kept.txt").write_text("kept")
    (folder / "a file").write_text("kept")
    (folder / "a closed file").write_text("kept")
    (folder / "a closed file").chmod(0)
    (folder / "a closed folder").mkdir(mode=0)
    (folder / "a loop").symlink_to("a loop")
    (folder / "a dead link").symlink_to("nowhere")


ALL = {**NUMBERS, **TEXTS, **{place: place for place in PLACES}}
"""Name -> text, of everything."""
