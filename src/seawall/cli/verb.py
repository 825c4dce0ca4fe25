# SPDX-License-Identifier: Apache-2.0
"""One runner for the verbs: a verb says what its page is, and how that reads as text and as JSON.

::

    class SwapVerb(SourceVerb[SwapPage]):
        name = "swap"

        def page(self) -> SwapPage:
            return swap_page(self.source.first)

        def text(self, page: SwapPage, paper: "Console") -> Iterable[str]:
            from seawall.views.swap_text import lines
            return lines(page, paper)

        def document(self, top: Head, page: SwapPage) -> Head:
            from seawall.views.documents.swap_document import SWAP
            return SWAP.of(top, page)

    run = SwapVerb.run

Each of the two forms imports what only it needs: a file that is not read is not waited for.
"""

from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from seawall.cli.source_options import open_source

if TYPE_CHECKING:  # on a node that thrashes stacks samples before it reads another file
    from seawall.findings.blindness import NotSeen
    from seawall.readings.snapshot import Snapshot
    from seawall.sources.source import Source
    from seawall.views.terminal import Console

Head: TypeAlias = dict[str, Any]
"""A document, or how it begins: ``views/document.head``."""
_UNSEEN_CHARACTERS: Final = 100


class SourcePage(Protocol):
    """What a verb shows of a source."""

    @property
    def unseen(self) -> "Sequence[NotSeen]":
        """What could not be seen."""


Shown = TypeVar("Shown")
Seen = TypeVar("Seen", bound=SourcePage)


class Verb(ABC, Generic[Shown]):
    """One run of one question: its page, as text or with ``--json`` as a document."""

    name: ClassVar[str]
    """Of the document: ``seawall.NAME/1``."""
    text_view: ClassVar[str]
    """``module:function``, which makes lines of a page and a console; imported for text alone."""
    text_options: ClassVar[tuple[str, ...]] = ()
    """Options of the command line that it takes too."""
    is_framed: ClassVar[bool] = True
    """Whether the text has a heading, and at its end what could not be seen."""
    document_table: ClassVar[str]
    """``module:TABLE``, a ``Document``; imported for JSON alone."""

    def __init__(self, arguments: Namespace) -> None:
        self.arguments = arguments

    @classmethod
    def run(cls, arguments: Namespace) -> int:
        """Ask, print the answer; the exit status."""
        return cls(arguments).answer()

    def answer(self) -> int:
        """Of this run; the exit status."""
        page = self.page()
        if self.arguments.json:
            from seawall.views.document import render  # noqa: PLC0415 - JSON alone

            print(render(self.document(self.head(page), page)))
        else:
            self.print_text(page)
        return self.status(page)

    @abstractmethod
    def page(self) -> Shown:
        """What is shown; UsageProblem."""

    def text(self, page: Shown, paper: "Console") -> Iterable[str]:
        """Its lines, without the heading and what could not be seen."""
        options = {name: getattr(self.arguments, name) for name in self.text_options}
        lines: Iterable[str] = _imported(self.text_view)(page, paper, **options)
        return lines

    def document(self, top: Head, page: Shown) -> Head:
        """``top`` with the page's fields."""
        whole: Head = _imported(self.document_table).of(top, page)
        return whole

    @abstractmethod
    def head(self, page: Shown) -> Head:
        """How the document begins; the text's heading is made of it."""

    def status(self, _page: Shown) -> int:
        """The exit status: 0, answered, whatever was found."""
        return 0

    def has_heading(self, _page: Shown) -> bool:
        """Whether the text begins with the machine."""
        return True

    def notes(self) -> tuple[str, ...]:
        """What whoever recorded the source wrote down with it."""
        return ()

    def unseen(self, _page: Shown) -> "Sequence[NotSeen]":
        """What could not be seen, for the end of the text."""
        return ()

    def fitted(self, page: Shown, _paper: "Console") -> Shown:
        """The page as it fits on the screen, where the verb leaves anything out for that."""
        return page

    def print_text(self, page: Shown) -> None:
        """Heading, lines, what could not be seen."""
        from seawall.cli.console import console_for  # noqa: PLC0415 - text alone

        paper = console_for(getattr(self.arguments, "color", "auto"))
        page = self.fitted(page, paper)
        lines = self.text(page, paper)
        if self.is_framed:
            top = self.head(page) if self.has_heading(page) else None
            lines = page_lines(paper, top, self.notes(), lines, self.unseen(page))
        for line in lines:
            print(line)


class SourceVerb(Verb[Seen]):
    """A verb that looks at a machine or a recording, as ``add_source_arguments`` has it named."""

    @cached_property
    def source(self) -> "Source":
        """Opened when it is asked for first; UsageProblem."""
        return open_source(self.arguments)

    @property
    def moment(self) -> "Snapshot":
        """Which the heading names: the first one."""
        return self.source.first

    def head(self, page: Seen) -> Head:
        from seawall.readings.kernel import Kernel  # noqa: PLC0415 - when there is an answer
        from seawall.views.document import head  # noqa: PLC0415 - likewise

        return head(self.name, self.moment.get(Kernel), self.window_seconds(page))

    def window_seconds(self, _page: Seen) -> float | None:
        """Between the moments that were looked at; None: it was one."""
        return None

    def notes(self) -> tuple[str, ...]:
        """Of a bundle or a black box."""
        return self.source.notes

    def unseen(self, page: Seen) -> "Sequence[NotSeen]":
        """As the page has it."""
        return page.unseen


def _imported(name: str) -> Any:
    """What ``module:name`` stands for."""
    from importlib import import_module  # noqa: PLC0415 - when there is an answer

    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def page_lines(
    paper: "Console",
    top: Head | None,
    notes: tuple[str, ...],
    body: Iterable[str],
    unseen: "Sequence[NotSeen]",
) -> Iterator[str]:
    """The text of a page; ``top``: the document's head, which names the host; None: no heading."""
    from seawall.views.why_text import could_not_see, heading  # noqa: PLC0415 - text alone

    if top is not None:
        yield from heading(top, paper, notes)
    yield from body
    yield from could_not_see(unseen, paper)


def folded(rows: "Sequence[NotSeen]", whole: str) -> "list[NotSeen]":
    """What could not be seen, where it would not fit: a bug of ours in full, all others as one row
    with the capabilities that would let them be seen.  ``whole``: how to get all of it.
    """
    import re  # noqa: PLC0415 - where it does not fit

    from seawall.findings.blindness import NotSeen  # noqa: PLC0415 - likewise

    bugs = [row for row in rows if row.kind == "bug"]
    others = [row for row in rows if row.kind != "bug"]
    if not others:
        return bugs
    what = others[0].what[:_UNSEEN_CHARACTERS]
    if len(others) > 1:
        what += f" and {len(others) - 1} more"
    lacking = sorted({name for row in others for name in re.findall("CAP_[A-Z_]+", row.provide)})
    needs = f"root, or {', '.join(lacking)}" if lacking else ""
    return [*bugs, NotSeen(what, whole, needs)]
