# SPDX-License-Identifier: Apache-2.0
"""Records of nodes in a folder that they share: read by a child, for its server may hang."""

import base64
import json
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from seawall.cluster.objects.node_report_object import BYTES_MOST
from seawall.cluster.slurm.left_record import RecordRefused, left_record
from seawall.cluster.slurm.slurm_death import SlurmDeath
from seawall.proc.serving_child import ChildDied, ServingChild, TooManyHang

READ_SECONDS: Final = 3.0
HANGING_MOST: Final = 2
AWAITED_SECONDS: Final = 86400.0
"""So long after a death its record may come: the node's black box, after a boot."""
RECORDS_MOST: Final = 64
"""Of one look; the latest deaths."""
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_OTHERS_WRITE: Final = 0o022
_NODE_LETTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
)


class EvidenceFolder:
    """``hear`` at each look."""

    def __init__(self, folder: str) -> None:
        """Empty: none is read."""
        self.folder = folder
        self.problem = ""
        """Why the last look at it saw nothing at all."""
        child = ServingChild("seawall-records", hanging_most=HANGING_MOST)
        self._lane = child.lane(_answer, RECORDS_MOST * BYTES_MOST * 2)

    def hear(
        self, deaths: Iterable[SlurmDeath], now: float, slurm_uid: int | None
    ) -> list[SlurmDeath]:
        """Those of which something else is known now than before.  A record that was believed stays
        until another is: a node's file has its last one alone.

        slurm_uid:  SlurmUser's; None: root's files alone are believed
        """
        waiting = [one for one in deaths if now - one.observed_seconds <= AWAITED_SECONDS]
        waiting = waiting[-RECORDS_MOST:]
        if not self.folder or not waiting:
            self.problem = ""
            return []
        owners = sorted({0, slurm_uid} - {None})  # type: ignore[type-var]
        names = sorted({one.node for one in waiting})
        found = self._read({"folder": self.folder, "owners": owners, "nodes": names})
        heard = [_heard(one, found.get(one.node, self.problem), now) for one in waiting]
        return [one for one, before in zip(heard, waiting, strict=True) if one != before]

    def _read(self, question: Mapping[str, object]) -> dict[str, bytes | str]:
        """Of each node its file, or why there is none."""
        self.problem = ""
        try:
            frame = self._lane.ask(json.dumps(question).encode(), READ_SECONDS)
        except (ChildDied, TooManyHang, OSError) as problem:
            self.problem = f"{self.folder} was not read: {problem or 'its reader died'}"
            return {}
        if frame is None:
            self.problem = f"{self.folder} gives no answer in {READ_SECONDS:g} s"
            return {}
        if frame.code:
            self.problem = f"{self.folder}: {os.strerror(frame.code)}"
            return {}
        answer = json.loads(frame.body)
        self.problem = answer["problem"]
        return {
            name: one[1] if one[0] else base64.b64decode(one[1])
            for name, one in answer["nodes"].items()
        }


def slurm_user_id(setting: str) -> int | None:
    """Of ``SlurmUser = slurm(64030)``; None: it is not as scontrol prints it."""
    number = setting.rpartition("(")[2].removesuffix(")")
    return int(number) if setting.endswith(")") and number.isdigit() and len(number) < 11 else None


def _heard(death: SlurmDeath, found: bytes | str, now: float) -> SlurmDeath:
    words = found if isinstance(found, str) else ""
    if isinstance(found, bytes):
        try:
            return replace(death, record=left_record(found, death, now), record_words="")
        except RecordRefused as problem:
            words = str(problem)
    return death if death.record is not None else replace(death, record_words=words)


# --- in the child -------------------------------------------------------------------------


def _answer(question: bytes) -> bytes:
    asked = json.loads(question)
    owners = asked["owners"]
    folder = os.open(asked["folder"], os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    nodes: dict[str, tuple[bool, str]] = {}
    problem = why_not_believed(os.fstat(folder), owners)
    if problem:
        problem = f"{asked['folder']}: {problem}"
    try:
        for node in asked["nodes"] if not problem else ():
            try:
                nodes[node] = (False, base64.b64encode(read_record(folder, node, owners)).decode())
            except (OSError, RecordRefused) as error:
                nodes[node] = (True, getattr(error, "strerror", None) or str(error))
    finally:
        os.close(folder)
    return json.dumps({"problem": problem, "nodes": nodes}).encode()


def read_record(folder: int, node: str, owners: Collection[int]) -> bytes:
    """What a node left; OSError, RecordRefused."""
    if not set(node) <= _NODE_LETTERS or node.startswith("."):
        raise RecordRefused("no name of a file")
    try:
        fd = os.open(f"{node}.json", _FLAGS, dir_fd=folder)
    except FileNotFoundError:
        raise RecordRefused("it left none") from None
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise RecordRefused("no plain file")
        if words := why_not_believed(about, owners):
            raise RecordRefused(words)
        with open(fd, "rb", closefd=False) as file:
            return file.read(BYTES_MOST + 1)
    finally:
        os.close(fd)


def why_not_believed(about: os.stat_result, owners: Collection[int]) -> str:
    """Empty: only root and SlurmUser can have written it."""
    if about.st_uid not in owners:
        return f"it belongs to uid {about.st_uid}, neither root nor SlurmUser"
    return "others may write it" if about.st_mode & _OTHERS_WRITE else ""
