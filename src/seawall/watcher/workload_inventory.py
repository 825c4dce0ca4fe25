# SPDX-License-Identifier: Apache-2.0
"""The inventory of workloads on this node, kept up to date at little cost, as rows of ``groups``.

The tree is walked every few seconds; names are read when a cgroup is there that was not.  A
group is a container, or a unit or cgroup that is in none; what a container made below itself
belongs to it.  A user's slice has a row too, for a guard to which each user is one workload; what
is claimed is claimed of the groups below.
"""

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final

from seawall.accounts import workloads as joining
from seawall.accounts.workloads import Workload, Workloads
from seawall.actions.step_daemons import is_daemons_adj
from seawall.cgroup_paths import place_of, user_of
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings import cgroup, container_files, oom_score_adj, slurm_jobs
from seawall.readings.cgroup import Cgroups
from seawall.readings.cgroup_tree import file_path
from seawall.readings.container_files import ContainerFiles
from seawall.readings.reading import read_each_as
from seawall.readings.saved_claims import inode_of
from seawall.role_claims import NOT_NAMED, NOT_SEEN
from seawall.slurm_paths import part_of
from seawall.watcher import roles_unread
from seawall.watcher.guard_endpoint import Row, word
from seawall.watcher.memory_requests import MemoryRequest, capacity_of, class_rank_of, request_of
from seawall.watcher.role_facts import given_folders, programs
from seawall.watcher.roles import RoleFacts, role_of
from seawall.watcher.roles_unread import ContainerFolders, DiskSilence

_TRIES_MOST: Final = 3
"""To find the name of a container: its files may come after its cgroup."""
_PROCESSES_MOST: Final = 8
_NONE: Final = Cgroups(cgroup.CgroupLayout(v1={}, v2=None, v2_controllers=()), ("/",), "/", {}, ())
_NO_FILES: Final = ContainerFiles(by_id={}, pods={}, unread=())


class WorkloadInventory:
    """The groups (containers, units, cgroups) on this node, with names and roles."""

    def __init__(self, host: LiveHost) -> None:
        self._host = host
        self._silence = DiskSilence(host)
        self._capacity: int | None = None
        self.cgroups = _NONE
        self.files = _NO_FILES
        self._jobs = slurm_jobs.NO_JOBS
        self.workloads = Workloads({}, {})
        self.problem = "the cgroup tree was not read yet"
        """Why nobody is known; empty when somebody is."""
        self._known: dict[str, Row] = {}
        self._again = RereadSchedule()
        self._news = RowUpdates()
        self._tries: dict[str, int] = {}
        self._given = ContainerFolders()
        self._users: Mapping[int, str] = {}
        self._unnamed: set[str] = set()
        """Containers whose names may still come."""
        self._folders: dict[str, tuple[int, int]] = {}
        self._walked_at = 0.0

    @property
    def blind(self) -> list[str]:
        """What could not be seen of roles and names, in words."""
        return roles_unread.blind_words(self._given.unread, self._unnamed, self.files.unread)

    @property
    def is_to_be_named(self) -> bool:
        """A container is there whose files were not found or read yet, and may be by now."""
        roles = (row["role"] for row in self._known.values())
        is_wanted = bool(self._unnamed) or (bool(self._given.unread) and NOT_SEEN in roles)
        return is_wanted and not self._silence.lasts

    def is_stale(self) -> bool:
        """Whether a cgroup came or went since ``refresh``, or it was long ago: one stat(2) for
        each cgroup, whose folder has a link for each below it (kernfs).
        """
        now = time.monotonic()
        is_old = now - self._walked_at > REREAD_SECONDS or self._again.is_any_settled(now)
        if is_old or not self._folders or self.is_to_be_named:
            return True
        try:
            return any(_seen(folder) != before for folder, before in self._folders.items())
        except OSError:
            return True

    def _note_folders(self) -> None:
        self._walked_at, self._folders = time.monotonic(), {}
        for path in self.cgroups.paths:
            folder = self._folder(path)
            with suppress(OSError):
                self._folders[folder] = _seen(folder)

    def refresh(self) -> None:
        """Walk the tree; read what is new."""
        found = cgroup.read(self._host)
        if isinstance(found, Unread):
            self.problem = f"{found.path}: {found.detail or found.why}"
            return
        self.problem = ""
        self._capacity = capacity_of(self._host, self._capacity)
        is_new = found.paths != self.cgroups.paths
        self.cgroups = found
        self._note_folders()
        self._note_unnamed(found.paths)
        is_new |= self._read_files()
        jobs = slurm_jobs.read_owners(self._host, found, self._jobs)
        is_new |= jobs.by_cgroup != self._jobs.by_cgroup
        self._jobs = jobs
        # Processes move while the tree stays.
        self.workloads = joining.account(found, self.files, jobs)
        self._read_rows(is_new=is_new)

    def _read_files(self) -> bool:
        """Reads names from the files of container runtimes; whether that was done."""
        if not self._silence.is_over() or not (self._unnamed or self.files is _NO_FILES):
            return False
        files = container_files.read(self._host)
        if isinstance(files, Unread):
            return False
        self._silence.note(files.unread)
        for key in roles_unread.told_nothing(self._unnamed, files.unread):
            self._tries[key] = self._tries.get(key, 0) + 1
        self.files = roles_unread.kept(self.files, files, self.workloads)
        return True

    def _note_unnamed(self, paths: Iterable[str]) -> None:
        """Containers that are there and whose files were not found yet."""
        ids = set()
        self._unnamed.clear()
        for path in paths:
            place = place_of(path)
            if place.kind != "container" or place.cgroup != path or place.is_delegated:
                continue
            key = place.container_id or ""
            ids.add(key)
            told = self.files.by_id.get(key)
            is_named = told is not None and (told.container or told.name or told.is_sandbox)
            if not is_named and self._tries.get(key, 0) < _TRIES_MOST:
                self._unnamed.add(key)
        self._tries = {key: tries for key, tries in self._tries.items() if key in ids}

    # --- rows ---------------------------------------------------------------------------

    def group_of(self, path: str) -> Workload | None:
        """The group that a cgroup belongs to; None: none is known, or it is no group."""
        found = self.workloads.of_cgroup(path)
        outer = found
        above = path
        while above not in ("/", ""):
            above = above.rpartition("/")[0] or "/"
            one = self.workloads.by_cgroup.get(above)
            if one is not None and one.kind == "container":
                outer = one
        if outer is None or outer.kind not in ("container", "unit", "cgroup"):
            return None
        return outer

    def groups(self) -> Iterator[Workload]:
        """Every group of the node: containers, units and cgroups that are in no container."""
        for path, workload in self.workloads.by_cgroup.items():
            if path != "/" and self.group_of(path) == workload:
                yield workload

    def _user_slices(self, *, is_new: bool) -> Iterator[Workload]:
        """Each under its user's name; a lookup elsewhere (LDAP) could hang, and is not made."""
        slices = {path: uid for path in self.cgroups.paths if (uid := user_of(path)) is not None}
        if slices and (is_new or not self._users):
            users = slurm_jobs.read_users(self._host)
            self._users = self._users if isinstance(users, Unread) else users
        for path, uid in slices.items():
            name = f"user:{uid}" + (f"@{self._users[uid]}" if uid in self._users else "")
            yield Workload(kind="slice", name=name, cgroup=path, unit=path.rpartition("/")[2])

    def inode(self, path: str) -> int | None:
        """Of a group's folder, as it was told."""
        row = self._known.get(path)
        return None if row is None else row["inode"]

    def _read_rows(self, *, is_new: bool) -> None:
        now = time.monotonic()
        members = self._members()
        there = {one.cgroup: one for one in self.groups()}
        there |= {one.cgroup: one for one in self._user_slices(is_new=is_new)}
        for path, workload in there.items():
            known = self._known.get(path)
            is_same = known is not None and self._is_same(known, workload, is_new=is_new)
            if is_same and not self._again.is_due(path, now):
                continue
            row = self._row(workload, members.get(path, ()))
            if row is None:
                self._forget(path)
            else:
                self._known[path] = row
                is_other = known is None or known["inode"] != row["inode"]
                self._again.was_read(path, now, is_new=is_other)
        for path in self._known.keys() - there.keys():
            self._forget(path)

    def _forget(self, path: str) -> None:
        self._known.pop(path, None)
        self._given.forget(path)
        self._again.forget(path)

    def _is_same(self, row: Row, workload: Workload, *, is_new: bool) -> bool:
        """Still that cgroup: a path comes again with another inode; and that name."""
        folder = self._folder(workload.cgroup)
        seen = self._folders.get(folder)
        inode = seen[0] if seen else inode_of(self._host, folder)
        is_named = row["role"] == NOT_NAMED and workload.container_id not in self._unnamed
        if is_named or (row["role"] == NOT_SEEN and not self._silence.lasts):
            return False
        return row["inode"] == inode and (not is_new or row["name"] == word(workload.name))

    def _folder(self, path: str) -> str:
        return file_path(self.cgroups.mount_point, path, "").rstrip("/")

    def _members(self) -> dict[str, list[int]]:
        """Some processes of each group, of the cgroups below it too."""
        found: dict[str, list[int]] = {}
        for path, pids in self.cgroups.pids.items():
            group = self.group_of(path)
            if group is not None:
                own = found.setdefault(group.cgroup, [])
                own += pids[: max(0, _PROCESSES_MOST - len(own))]
        return found

    def _row(self, workload: Workload, pids: Iterable[int]) -> Row | None:
        folder = self._folder(workload.cgroup)
        inode = inode_of(self._host, folder)
        if isinstance(inode, Unread):
            return None
        adj = self._adj(pids, is_job=part_of(workload.cgroup) is not None)
        is_made_up = place_of(workload.cgroup).is_delegated
        is_container = workload.kind == "container"
        is_given = is_container and not is_made_up
        folders, unread_role = self._folders_of(workload, inode) if is_given else ((), "")
        facts = RoleFacts(
            cgroup=workload.cgroup,
            is_container=is_container,
            is_delegated=is_made_up,
            unit=workload.unit or "",
            namespace=workload.namespace or "",
            pod=workload.pod or "",
            pod_uid=workload.pod_uid or "",
            qos=workload.qos,
            is_sandbox=workload.is_sandbox,
            adj=adj,
            folders=folders,
            programs=() if is_container else programs(self._host, pids),
        )
        asked = MemoryRequest.read(self._host, folder, self.cgroups.layout.memory_version)
        return {
            "cgroup": workload.cgroup,
            "inode": inode,
            "name": word(workload.name),
            "pod": "" if is_made_up else word(workload.pod_uid or ""),
            "class_rank": class_rank_of(workload, is_delegated=is_made_up),
            "adj": adj,
            "request": request_of(workload, asked, adj, self._capacity, is_delegated=is_made_up),
            "role": role_of(facts) or unread_role or self._role_until_named(workload),
        }

    def _folders_of(self, workload: Workload, inode: int) -> tuple[tuple[str, ...], str]:
        """Of the host's; and why nobody may take it for anybody before they are read."""
        told = given_folders(self._host, workload)
        if isinstance(told, Unread):
            self._silence.note((told,))
        may_come = bool(self._role_until_named(workload))
        return self._given.of(workload.cgroup, inode, told, may_come=may_come)

    def _role_until_named(self, workload: Workload) -> str:
        """It may be in kube-system: its files come some seconds after its cgroup."""
        has_name = workload.container or workload.pod or workload.container_id not in self._unnamed
        return "" if has_name else NOT_NAMED

    def _adj(self, pids: Iterable[int], *, is_job: bool) -> int | None:
        """The lowest of some of its processes; of a Slurm job's, but for its slurmstepd."""
        asked = list(pids)
        files = [f"/proc/{pid}/oom_score_adj" for pid in asked]
        found = zip(asked, read_each_as(self._host, files, oom_score_adj.parse), strict=True)
        return min(
            (
                value
                for pid, value in found
                if not isinstance(value, Unread) and not (is_job and is_daemons_adj(value, pid))
            ),
            default=None,
        )

    # --- what is told -------------------------------------------------------------------

    def row_updates(self) -> tuple[list[Row], list[str]]:
        """Rows that are to be told, and the cgroups that are gone."""
        return self._news.of(self._known)

    def mark_sent(self, rows: Iterable[Row], gone: Iterable[str]) -> None:
        """The guard has them."""
        self._news.mark_sent(rows, gone)


def _seen(folder: str) -> tuple[int, int]:
    """Which folder it is, and how many there are in it."""
    found = os.stat(folder)
    return found.st_ino, found.st_nlink


# Updates of rows for the guard: which are new, changed or removed since it was told.
#
# A message that went out may still be lost: the guard has room for some rows of folders that it has
# not found yet.  So everybody is told again, some of them each minute.

REPEAT_SECONDS: Final = 60.0
REPEAT_ROWS: Final = 64
"""30 KB; a thousand groups are told again within a quarter of an hour."""


class RowUpdates:
    """What is known, against what was told."""

    def __init__(self) -> None:
        self._told: dict[str, Row | None] = {}
        """By cgroup, those first that were told longest ago; None: to be told again."""
        self._again_at = time.monotonic() + REPEAT_SECONDS

    def of(self, known: Mapping[str, Row]) -> tuple[list[Row], list[str]]:
        """Rows to be told, and the cgroups that are gone."""
        now = time.monotonic()
        if now >= self._again_at:
            self._again_at = now + REPEAT_SECONDS
            self._told.update(dict.fromkeys(list(islice(self._told, REPEAT_ROWS))))
        rows = [row for path, row in known.items() if self._told.get(path) != row]
        return rows, [path for path in self._told if path not in known]

    def mark_sent(self, rows: Iterable[Row], gone: Iterable[str]) -> None:
        """Note that the guard has these rows, and knows who is ``gone``."""
        for row in rows:
            self._told.pop(row["cgroup"], None)
            self._told[row["cgroup"]] = row
        for path in gone:
            self._told.pop(path, None)


# The schedule by which a group is read again: soon after it came, then about once a minute.
#
# A runtime puts a container's first process into its cgroup, and then has it write its
# oom_score_adj (runc: Apply, then the bootstrap data of nsexec): until then it has the runtime's,
# -998 or -999, as a pod that the node needs.

REREAD_SECONDS: Final = 60.0
"""Values that processes can change are read again, a part of the groups each time."""
SETTLED_SECONDS: Final = 3.0
"""What was read of a group before is not yet its own."""
_SPREAD_SECONDS: Final = 16


class RereadSchedule:
    """Seconds of the monotonic clock, by path."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._young: dict[str, float] = {}

    def is_due(self, path: str, now: float) -> bool:
        """Also where it was never read."""
        return now >= self._due.get(path, -math.inf)

    def is_any_settled(self, now: float) -> bool:
        """Whether a group that was new is due."""
        return any(now >= due for due in self._young.values())

    def was_read(self, path: str, now: float, *, is_new: bool) -> None:
        """``is_new``: its cgroup was not there before."""
        if is_new:
            self._due[path] = self._young[path] = now + SETTLED_SECONDS
            return
        # Spread, so that a thousand groups are not read in one look.
        self._due[path] = now + REREAD_SECONDS - hash(path) % _SPREAD_SECONDS
        self._young.pop(path, None)

    def forget(self, path: str) -> None:
        """Drop a group whose cgroup is gone from the schedule."""
        self._due.pop(path, None)
        self._young.pop(path, None)
