# SPDX-License-Identifier: Apache-2.0
"""What one cgroup is to the guard: a workload, or what only leads to some.

A workload is a container or a batch job as a whole, a unit, or a plain cgroup that has none below
it.  What a container made below itself is never looked at (its names are its own invention).
Slices, pods and users' managers only lead there.

Where users count as one (``user_slices``) a user's slice is a workload, and what is below it but
for containers and jobs is a part of that.

Below a unit of the host's only containers and jobs are workloads: a runtime without systemd's
help makes its containers below its own unit (runc on cgroup v1), Slurm its jobs.  As long as it
has any the unit is, like a pod, none itself: what is charged to it includes theirs.  What else a
service made below itself belongs to it, and so does all below a user's units and a machine's.
"""

from seawall.cgroup_paths import CgroupPlace, place_of, user_of


class Folder:
    """One folder of the tree.  Refers to the one above it, never below: no reference cycle."""

    __slots__ = (
        "above", "children", "inner", "inode", "is_group", "is_leaf", "is_own", "is_plain",
        "is_unit", "is_within_unit", "limit", "limit_fd", "manager", "path", "user", "watch",
    )  # fmt: skip

    def __init__(
        self, path: str, inode: int, above: "Folder | None", *, user_slices: bool = False
    ) -> None:  # fmt: skip
        self.path = path
        """Below the mount point; the root's is ``/``."""
        self.inode = inode
        self.above = above
        self.children: dict[str, None] = {}
        """Their paths; not a set, which takes 200 bytes where there are none."""
        place = place_of(path)  # and not kept: two in three of all folders need it never again
        kind = place.kind
        unit = place.unit or ""
        # Not what a user runs below it: nothing of that is a group of its own.
        is_manager = kind == "unit" and unit.startswith("user@") and "/" not in unit
        self.is_within_unit: bool = above is not None and (above.is_unit or above.is_within_unit)
        """It is below a unit that is looked into."""
        is_host = not is_manager and not self.is_within_unit
        self.is_unit: bool = is_host and _is_looked_into(path, place)
        """Of the host: a workload as long as there is none below it."""
        self.is_plain = (kind == "cgroup" or is_manager) and not self.is_within_unit
        """A workload as long as it has no folder below it."""
        self.is_own = self.is_leaf = kind == "container" or place.job is not None
        """A container or a job: a workload of its own wherever it is."""
        self.user: str = above.user if above is not None else ""
        """Path of the slice of the user whose it is, where users count as one."""
        if user_slices and user_of(path) is not None:
            self.user = path
        if not self.is_within_unit and not self.is_unit:
            self.is_leaf |= kind == "unit" and not is_manager
        if place.monitors:
            self.is_plain = self.is_unit = False
            self.is_leaf = not self.is_within_unit
        self.inner = 0
        """Workloads below it, of a unit."""
        self.is_group = False
        self.watch = -1
        self.limit_fd = -1
        """-1: not opened yet; -2: it could not be."""
        self.limit: int | None = None
        """Its own, of the last time."""
        self.manager: str = above.manager if above is not None else ""
        """Path of the user's manager or the unit that it is or is below."""
        # What a user made has the manager's unit too.
        if (is_manager or self.is_unit) and not self.manager:
            self.manager = path

    @property
    def is_user_slice(self) -> bool:
        """It is a user, and not only of one."""
        return self.user == self.path

    @property
    def is_part(self) -> bool:
        """It counts to its user."""
        return bool(self.user) and not self.is_own and not self.is_user_slice


def _is_looked_into(path: str, place: CgroupPlace) -> bool:
    is_own = place.kind == "unit" and place.cgroup == path and not place.is_delegated
    return is_own and not place.is_machine and path.endswith((".service", ".scope"))
