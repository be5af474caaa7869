"""What every page must hold, by the standard library's parser alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "link", "img", "br", "hr", "input"}
SELF_CLOSED = {"path", "circle", "rect"}


@dataclass
class Page(HTMLParser):
    """A page as it was parsed.

    Attributes:
        tags: every opening tag with its attributes, in order.
        text: all text, joined.
        problems: what is not well formed.
    """

    source: str
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self.feed(self.source)
        self.close()
        self.problems += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if len(dict(attrs)) < len(attrs):
            self.problems.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in SELF_CLOSED:
            self.problems.append(f"<{tag}/> closes itself")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self._open[-1:]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of every such tag."""
        return [attrs for name, attrs in self.tags if name == tag]


def check_page(source: str) -> Page:
    """Well-formed, in English, without scripts or network, headings in order, a text for each picture."""
    page = Page(source)
    assert page.problems == []
    assert source.startswith("<!DOCTYPE html>\n")
    assert page.of("html") == [{"lang": "en"}]
    assert page.of("script") == [] and page.of("iframe") == [] and page.of("object") == []
    assert len(page.of("title")) == len(page.of("h1")) == len(page.of("main")) == 1
    for tag, attrs in page.tags:
        assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
        for name in ("src", "href", "action", "data", "poster", "srcset", "style"):
            value = attrs.get(name) or ""
            assert not re.search(r"//|javascript:|url\(", value) or value.startswith("data:image/png"), attrs
    assert "http://" not in source and "https://" not in source and "@import" not in source
    assert "url(" not in source
    policy = page.of("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy" and "default-src 'none'" in (
        policy["content"] or ""
    )
    for image in page.of("img"):
        assert image["alt"] and image["width"] and image["height"]
        assert (image["src"] or "").startswith("data:image/png;base64,")
    for chart in page.of("svg"):
        assert chart["role"] == "img" and chart["aria-label"]
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    names = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(set(names)) == len(names)
    assert {attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs} <= set(names)
    return page
