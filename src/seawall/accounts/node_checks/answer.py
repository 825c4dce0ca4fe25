# SPDX-License-Identifier: Apache-2.0
"""What a check of a node says: a fault, or why it could not look."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread


class NodeFault(NamedTuple):
    """Something is broken."""

    words: str
    """A sentence without its full stop; of numbers, and of names that root alone gives."""


class NodeUnseen(NamedTuple):
    """The check could not look."""

    words: str


NodeAnswer: TypeAlias = NodeFault | NodeUnseen


class NodeCheck(NamedTuple):
    """One row of the table."""

    name: str
    """Its key in slurm.toml, and the first word of its findings."""
    look: Callable[[Host, WantedNode], Iterable[NodeAnswer]]
    is_lasting: bool = True
    """What it finds does not pass by itself: draining needs no second look."""
    jobs_may: bool = False
    """A running job may cause it: a note while one runs, and no finding."""


def unseen(what: Unread) -> NodeUnseen:
    """In one line: the path and why."""
    return NodeUnseen(f"{what.path}: {what.detail or what.why}")
