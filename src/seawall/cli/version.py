# SPDX-License-Identifier: Apache-2.0
"""``seawall version``: which Seawall this is, by which Python it runs and from where."""

import os
import platform
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Final

from seawall.cli.source_options import add_form_arguments
from seawall.cli.verb import Head, Verb
from seawall.version import VERSION
from seawall.views.documents.version_document import VERSION_DOCUMENT, VersionPage
from seawall.views.terminal import Console

WANTED: Final = ()


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall version`` to its parser."""
    add_form_arguments(parser)


class VersionVerb(Verb[VersionPage]):
    """Of the tool itself, and of no machine."""

    name = "version"
    is_framed = False

    def page(self) -> VersionPage:
        place = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        return VersionPage(
            python=platform.python_version(), executable=sys.executable, location=place,
            is_one_file=not os.path.isdir(place), machine=platform.machine(),
        )  # fmt: skip

    def text(self, page: VersionPage, paper: Console) -> Iterable[str]:
        kind = "one file" if page.is_one_file else "folder"
        yield f"seawall {VERSION}"
        yield from paper.wrap(f"{page.location} ({kind})", " " * 10, f"{'from':<10}")
        yield from paper.wrap(f"{page.python}, {page.executable}", " " * 10, f"{'python':<10}")

    def head(self, _page: VersionPage) -> Head:
        return {}

    def document(self, _top: Head, page: VersionPage) -> Head:
        return VERSION_DOCUMENT.alone(page)


run = VersionVerb.run
