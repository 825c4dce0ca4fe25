# SPDX-License-Identifier: Apache-2.0
"""``seawall capture --json`` and ``seawall blackbox export --json``."""

from typing import Final, NamedTuple

from seawall.views.documents.document_fields import Document


class WrittenBundle(NamedTuple):
    """Where a bundle went."""

    path: str
    bytes: int
    rounds: int
    """Passes over all that is read."""


CAPTURE: Final = Document(
    name="capture",
    verb="seawall capture --json",
    about="Where the bundle went.",
    window="between the first and the last pass, as asked",
    pages=(WrittenBundle,),
    shapes={},
)

EXPORT: Final = Document(
    name="blackbox-export",
    verb="seawall blackbox export --json",
    about="Where the bundle went; taken_at is the last moment that is told of.",
    window="from the first pass to the last",
    pages=(WrittenBundle,),
    shapes={},
)
