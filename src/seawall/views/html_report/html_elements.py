# SPDX-License-Identifier: Apache-2.0
"""Elements of an HTML page, by the standard library's ElementTree: text is a value, never markup,
so that a name with ``<script>`` in it is shown as these eight characters.
"""

from collections.abc import Iterable
from typing import TypeAlias
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from seawall.views.terminal import plain

Child: TypeAlias = Element | str | None


def element(tag: str, *children: Child | Iterable[Child], **attributes: str) -> Element:
    """One element.  ``class_`` is the attribute ``class``, ``aria_label`` is ``aria-label``; None
    among the children is left out.  Characters that steer a terminal or mean nothing in HTML are
    written out (``\\x1b``).
    """
    made = Element(tag, {_name(name): plain(value) for name, value in attributes.items()})
    for child in children:
        if child is None or isinstance(child, (str, Element)):
            _append(made, child)
        else:
            for one in child:
                _append(made, one)
    return made


def preformatted(lines: Iterable[str]) -> Element:
    """Lines as a terminal shows them."""
    made = Element("pre")
    made.text = "\n".join(map(plain, lines))
    return made


def style_sheet(text: str) -> Element:
    """Our own style, as it is: HTML has no other way to write it, and no value goes into it."""
    made = Element("style")
    made.text = text
    return made


def folded(summary: str, *children: Child | Iterable[Child]) -> Element:
    """What is shown after a click; a printer shows all of it."""
    return element("details", element("summary", summary), *children)


def html_bytes(head: Element, body: Element) -> bytes:
    """The whole page, UTF-8."""
    root = Element("html", {"lang": "en"})
    root.extend((head, body))
    text = ET.tostring(root, encoding="unicode", method="html")
    return b"<!DOCTYPE html>\n" + text.encode("utf-8", "backslashreplace") + b"\n"


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _append(above: Element, child: Child) -> None:
    if child is None:
        return
    if isinstance(child, Element):
        above.append(child)
    elif len(above):
        last = above[-1]
        last.tail = (last.tail or "") + plain(child)
    else:
        above.text = (above.text or "") + plain(child)
