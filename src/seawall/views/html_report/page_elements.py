# SPDX-License-Identifier: Apache-2.0
"""What every HTML page of ours is made of: the whole file, sections, tables."""

from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from seawall.views.html_report.html_elements import Child, element, html_bytes, style_sheet
from seawall.views.html_report.page_style import STYLE

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""The page may load and run nothing, whatever stands in it."""


def html_page(title: str, body: Element) -> bytes:
    """The whole file."""
    head = element(
        "head", element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title), style_sheet(STYLE),
    )  # fmt: skip
    return html_bytes(head, body)


def html_section(title: str, *children: Child | Iterable[Child]) -> Element:
    """A heading and what stands below it."""
    return element("section", element("h2", title), *children)


def html_table(head: Sequence[tuple[str, bool]], rows: Iterable[Sequence[Child]]) -> Element:
    """``head``: each column's title, and whether it holds numbers."""
    top = element("tr", (
        element("th", title, scope="col", **_class("number" if is_number else ""))
        for title, is_number in head
    ))  # fmt: skip
    body = [
        element("tr", (
            element("td", cell, **_class("number" if is_number else "name" if not place else ""))
            for place, (cell, (_, is_number)) in enumerate(zip(row, head, strict=True))
        ))
        for row in rows
    ]  # fmt: skip
    return element("div", element("table", element("thead", top), element("tbody", body)),
                   class_="wide")  # fmt: skip


def verdict_box(
    level: str, headline: str, rows: Iterable[tuple[str, Child | list[Element]]]
) -> Element:
    """What is wrong, in a box: a headline with its level, then name and value in rows."""
    return element(
        "div",
        element("h3", element("span", level.upper(), class_=f"level {level}"), f" {headline}"),
        element("dl", (part for name, value in rows
                       for part in (element("dt", name), element("dd", value)))),
        class_=f"verdict {level}",
    )  # fmt: skip


def _class(name: str) -> dict[str, str]:
    return {"class_": name} if name else {}
