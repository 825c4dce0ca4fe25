# SPDX-License-Identifier: Apache-2.0
"""Where the guard tells: the names of its files, and the devices of the kernel."""

from typing import Final, NamedTuple

STATUS: Final = "status"
STATUS_JSON: Final = "status.json"
DECISIONS: Final = "decisions.jsonl"
OLDER_DECISIONS: Final = "decisions.1.jsonl"
SPARE_SUFFIX: Final = ".spare"
"""Of the page that is written next; it begins with a dot too."""

FILES: Final = (
    STATUS, f".{STATUS}{SPARE_SUFFIX}", STATUS_JSON, f".{STATUS_JSON}{SPARE_SUFFIX}",
    DECISIONS, OLDER_DECISIONS,
)  # fmt: skip
"""All that is ever made in the folder by a teller."""
REHEARSAL: Final = ".rehearsal"
"""A folder in it that is there for a moment, with ``REHEARSAL_FILES``; beside it a tree."""
REHEARSAL_KMSG, REHEARSAL_PMSG = "kmsg", "pmsg"
REHEARSAL_FILES: Final = (*FILES, REHEARSAL_KMSG, REHEARSAL_PMSG)
REHEARSAL_TREE: Final = (".rehearsal-tree/pod", ".rehearsal-tree")
"""Folders of ``rehearsal.cgroup_on_paper``, in the order in which they can be removed."""


class Paths(NamedTuple):
    """Absolute; the folder has to be there."""

    folder: str = "/run/seawall"
    """Of the status and the decisions: a tmpfs, for a stuck disk would hold the guard up."""
    config: str = "/etc/seawall/guard.toml"
    """Only to be named."""
    kmsg: str = "/dev/kmsg"
    pmsg: str = "/dev/pmsg0"
    proc: str = "/proc"
