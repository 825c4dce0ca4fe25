# SPDX-License-Identifier: Apache-2.0
"""What may be done to a workload, as data: orders go to the effects, outcomes come back.

Nothing here touches a machine.  The guard's process holds this module, so it does without
``dataclasses`` (docs/decisions: the guard in memory).
"""

from typing import Literal, NamedTuple, TypeAlias

Step: TypeAlias = Literal["freeze", "thaw", "terminate", "kill", "clamp", "unclamp"]
"""terminate: SIGTERM to every process.  kill: SIGKILL to the whole cgroup and all below it.
clamp: lower the cgroup's own memory.max (v2 only)."""


class Target(NamedTuple):
    """A cgroup as it was seen: whoever acts compares the inode once more."""

    path: str
    """Below the mount point of the tree that counts memory; begins with ``/``."""
    inode: int
    """Of its folder there: a path comes again with another one."""
    name: str
    """As people call it: ``namespace/pod/container``, ``unit:NAME``, or the path."""


class Mounts(NamedTuple):
    """Where the trees are; None: there is none.  No trailing slash."""

    memory: str
    """The tree that counts memory: v1 ``/sys/fs/cgroup/memory`` or v2 ``/sys/fs/cgroup``."""
    version: int
    """Of that tree: 1 or 2."""
    freezer: str | None = None
    """The v1 freezer tree."""
    unified: str | None = None
    """The v2 tree: of a hybrid host too (systemd's units are there under the same paths)."""


class Order(NamedTuple):
    """One thing to do now."""

    decision: str
    """Id that ties log, status and black box together."""
    step: Step
    target: Target
    why: str
    """A code: ``node_short``, ``over_limit``, ``stuck_at_limit``, ``quarantined``, ``suspected``
    (it stands still until it is known), ``undo``, ``self_test``."""
    predicted_bytes: int = 0
    """What should come back."""
    limit_bytes: int | None = None
    """For clamp: the new memory.max."""


class Outcome(NamedTuple):
    """What became of an order."""

    order: Order
    is_done: bool
    """freeze: frozen or FREEZING (v1).  kill: every process was signalled."""
    problem: str = ""
    """In words, when it was not done or not whole: ``its inode is another one``,
    ``refused: Operation not permitted``."""
    processes: int = 0
    """That were signalled."""
    left: int = 0
    """Of them, still there at the deadline (stuck in the kernel)."""
    first_action_seconds: float = 0.0
    """From the order to the first write or signal."""
    seconds: float = 0.0
    """The whole of it."""
    old_value: str = ""
    """For clamp: what was there before."""
    is_observed: bool = False
    """Nothing was done: the mode is ``observe``; this is what would have been done."""
