# SPDX-License-Identifier: Apache-2.0
"""What a person did to a cluster, or would do: each write, what follows, what ends it."""

from dataclasses import dataclass
from typing import Literal

from seawall.findings.blindness import NotSeen

StepResult = Literal["planned", "done", "already", "left", "refused"]
"""planned: it is written with the same words without --dry-run; already: it stands so; left:
somebody else changed it since; refused: ``words`` say by whom."""
StepWhat = Literal["create", "patch", "delete"]
ActOutcome = Literal["planned", "done", "partly", "needs yes", "nothing"]
"""planned: a dry run; partly: a step was refused or left, or not every guard was reached; needs
yes: nothing was written, for pods would be deleted; nothing: there is nothing to do."""
ActName = Literal["quarantine", "release", "undo", "approve", "brake", "rescue"]


@dataclass(frozen=True, slots=True)
class ActStep:
    """One write to the API server."""

    what: StepWhat
    kind: str
    namespace: str
    """Empty: it belongs to none."""
    name: str
    path: str
    """JSON pointer of the field; empty: the whole object."""
    before: str | None
    """The field's value as JSON; null: there was none."""
    after: str | None
    """As JSON; null: none."""
    result: StepResult
    words: str
    """What is said of it; empty: nothing."""


@dataclass(frozen=True, slots=True)
class BrakeAnswer:
    """Whether the guard of one node is known to observe since the brake was put on."""

    node: str
    state: Literal["observes", "not reached"]
    mode: str
    """That it said last; empty: none."""
    words: str
    said_at_unix_seconds: float | None
    """Unix seconds. When it said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterActPage:
    """One deed: its writes, what follows, what is lost for good."""

    act: ActName
    source: str
    """A context of a kubeconfig, or a server."""
    as_of_unix_seconds: float
    """Unix seconds. The API server's clock."""
    subject: str
    """The workload, the quarantine, or what else it is about."""
    headline: str
    is_dry_run: bool
    outcome: ActOutcome
    steps: tuple[ActStep, ...] = ()
    effects: tuple[str, ...] = ()
    """What happens next, and by whom."""
    lost: tuple[str, ...] = ()
    """What cannot be undone."""
    commands: tuple[str, ...] = ()
    """What takes it back, where something does; else what shows more."""
    is_taken_back: bool = False
    """The commands take it back."""
    guards: tuple[BrakeAnswer, ...] = ()
    unseen: tuple[NotSeen, ...] = ()
