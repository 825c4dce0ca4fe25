# SPDX-License-Identifier: Apache-2.0
"""While the disk does not answer: what was known of containers is kept, and it is asked again.

A container's id stands for one pod, one name and one list of mounts, so what was told of it
once stays true.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from typing import Final

from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.container_files import ContainerFile, ContainerFiles
from seawall.role_claims import NOT_SEEN

REST_SECONDS: Final = 10.0
"""Between two tries: each may cost a second, and children that hang."""
_OF_ONE: Final = ("/config.json", "/config.v2.json", "/state.json")
"""Files of one container; all others tell of many."""
_NEEDED: Final = "needs root, and the runtime's folder in /run"
_TO_COME: Final = "left alone until it answers"


class DiskSilence:
    """Whether the disk is left alone for now, because it did not answer."""

    def __init__(self, host: LiveHost) -> None:
        self._host = host
        self._until = 0.0

    @property
    def lasts(self) -> bool:
        """It is not time yet to ask again."""
        return time.monotonic() < self._until

    def note(self, unread: Iterable[Unread]) -> None:
        """What could not be read.  The first silence counts: one that is told again and again
        would never be over.
        """
        if not self._until and any(map(is_silent, unread)):
            self._until = time.monotonic() + REST_SECONDS

    def is_over(self) -> bool:
        """Whether the disk may be asked.  By itself the host would refuse what was lost too often
        for its whole life.
        """
        if self._until and not self.lasts:
            self._until = 0.0
            self._host.ask_disk_again()
        return not self._until


def is_silent(unread: Unread) -> bool:
    """It tells nothing, not even that there is no such file or that it may not be read."""
    return unread.why in ("no_answer", "not_reached", "failed")


class ContainerFolders:
    """Folders of the host in each container, as they were told last."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, tuple[str, ...]]] = {}
        """By cgroup, with its inode."""
        self.unread: dict[str, Unread] = {}
        """By cgroup: those for which they could not be read."""

    def of(
        self, path: str, inode: int, told: tuple[str, ...] | Unread, *, may_come: bool
    ) -> tuple[tuple[str, ...], str]:
        """The folders, and the role where nothing can be told before they are read.

        Of a container whose files cannot be read now what was told stays: its folders, not its
        role, for that is of other facts too, which change.  ``may_come``: files that are not there
        may be later.
        """
        if not isinstance(told, Unread):
            self.unread.pop(path, None)
            self._known[path] = inode, told
            return told, ""
        known = self._known.get(path)
        if known is not None and known[0] == inode:
            return known[1], ""
        self.unread[path] = told
        if is_silent(told):
            return (), NOT_SEEN
        if not may_come:  # of another runtime: a disk that falls silent later says no more
            self._known[path] = inode, ()
        return (), ""

    def forget(self, path: str) -> None:
        """Drop what is known of a container whose cgroup is gone."""
        self._known.pop(path, None)
        self.unread.pop(path, None)


def kept(before: ContainerFiles, now: ContainerFiles, there: Workloads) -> ContainerFiles:
    """``now``, and where not all of it could be read, what was known of who is ``there``."""
    if not now.unread:
        return now
    by_id, pods = dict(now.by_id), dict(now.pods)
    for one in there.by_cgroup.values():
        key, uid = one.container_id or "", one.pod_uid or ""
        if key in before.by_id:
            by_id[key] = _filled(by_id.get(key), before.by_id[key])
        if uid in before.pods:
            pods.setdefault(uid, before.pods[uid])
    return ContainerFiles(by_id, pods, now.unread)


def _filled(now: ContainerFile | None, before: ContainerFile) -> ContainerFile:
    if now is None:
        return before
    told = {field.name: getattr(now, field.name) for field in fields(now)}
    return replace(before, **{name: value for name, value in told.items() if value})


def told_nothing(ids: Collection[str], unread: Iterable[Unread]) -> set[str]:
    """Of ``ids``, those for whom all was read that may tell a name: they have none yet."""
    silent = [one.path for one in unread if is_silent(one)]
    if not all(path.endswith(_OF_ONE) for path in silent):
        return set()
    return set(ids).difference(*(path.split("/") for path in silent))


def blind_words(
    roleless: Mapping[str, Unread], unnamed: Collection[str], unread: Iterable[Unread]
) -> list[str]:
    """What cannot be seen of roles and of names, and what would provide it."""
    others = [why for why in roleless.values() if not is_silent(why)]
    silent = [why for why in roleless.values() if is_silent(why)]
    nameless = [why for why in unread if is_silent(why)]
    told = (
        ("roles by the host's folders", len(others), others, _NEEDED),
        ("roles by the host's folders", len(silent), silent, _TO_COME),
        ("names", len(unnamed), nameless, _TO_COME),
    )
    return [_words(what, n, whys[0]) + remedy for what, n, whys, remedy in told if n and whys]


def _words(what: str, number: int, why: Unread) -> str:
    whose = "1 container" if number == 1 else f"{number} containers"
    return f"{what} in {whose} ({why.path}: {why.why}): "
