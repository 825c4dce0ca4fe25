# SPDX-License-Identifier: Apache-2.0
"""``seawall version --json``."""

from typing import Final, NamedTuple

from seawall.views.documents.document_fields import Document


class VersionPage(NamedTuple):
    """What runs, and from where."""

    python: str
    """Version of the interpreter: 3.11.7."""
    executable: str
    """Path of the interpreter."""
    location: str
    """The folder that holds the package, or the one file (seawall.pyz)."""
    is_one_file: bool
    """It runs from an archive."""
    machine: str
    """As uname -m has it: x86_64, aarch64."""


VERSION_DOCUMENT: Final = Document(
    name="version",
    verb="seawall version --json",
    about="Which Seawall this is: tool_version, and what it runs on. Of no host, so there is no "
    "taken_at, no window and no host. Additive within the major number.",
    is_of_host=False,
    pages=(VersionPage,),
    shapes={},
)
