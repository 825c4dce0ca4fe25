# SPDX-License-Identifier: Apache-2.0
"""The agent's reports as a file in a folder that all nodes of a Slurm cluster share.

``NODE.json`` is replaced whole.  The file system may hang, so a child writes, which is forked while
there is memory: the agent waits a few seconds for it, and one that hangs goes on when the server is
back.  There is never more than one; when it ends, the agent ends, and is started anew.

It writes as the folder's owner (root, or SlurmUser beside StateSaveLocation), so that a server that
takes root for nobody is no matter; whoever else may write there could accuse jobs, and then nothing
is written.
"""

import os
import stat
import time
from http import HTTPStatus
from typing import Final

from seawall.agent.api_connection import OLD_REPORT, REPORT, ApiAnswer, ApiProblem
from seawall.own_process import be_spared, go_first, lock
from seawall.problems import UsageProblem
from seawall.proc.process_rights import keep_only
from seawall.proc.serving_child import ChildDied, ServingChild, TooManyHang

WRITE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.02
_FILE_MODE: Final = 0o644
"""The controller of Slurm reads it, which is neither root nor SlurmUser."""
_MOST_BYTES: Final = 64 << 10
_OTHERS_WRITE: Final = 0o022
_READ: Final = b"r"
_WRITE: Final = b"w"


class EvidenceWriter:
    """To the agent's loop it is as ``ApiConnection``: ``send`` raises ApiProblem and nothing else.

    Conditions and Events are nobody's here, and taken without a word.
    """

    where = "the folder of records"

    def __init__(self, folder: str, node: str) -> None:
        self.folder, self.node = folder, node
        self.used_at = 0.0
        """Monotonic, of the last answer."""
        self._path = f"{folder}/{node}.json"
        self._is_owner = False
        child = ServingChild("seawall-records", begin=_begin)
        self._lane = child.lane(self._answer, _MOST_BYTES)
        self._asked_at: float | None = None
        """When the child was asked what it has not answered; None: it waits."""

    @property
    def is_open(self) -> bool:
        """It always is: a child costs nothing while nothing is told."""
        return True

    @property
    def pid(self) -> int:
        """Of the child; 0: there is none."""
        return self._lane.child.pid

    def close(self) -> None:
        """There is nothing to save by it."""

    def end(self) -> None:
        """Without waiting for the child."""
        self._lane.child.end()

    def forget_token(self) -> None:
        """There is none."""

    def prepare(self) -> None:
        """The child, while there is memory for it; ApiProblem."""
        try:
            self._lane.child.start()
        except (OSError, TooManyHang) as problem:
            raise ApiProblem(f"{self.folder}: no child to write there ({problem})") from problem

    def send(self, kind: str, body: bytes = b"") -> ApiAnswer:
        """The answer; ApiProblem.  UsageProblem: the child ended."""
        if kind == REPORT:
            self._ask(_WRITE + body)
        elif kind == OLD_REPORT:
            data = self._ask(_READ)
            status = HTTPStatus.OK if data else HTTPStatus.NOT_FOUND
            return ApiAnswer(status, 0.0, data)
        self.used_at = time.monotonic()
        return ApiAnswer(HTTPStatus.OK, 0.0, b"")

    def _ask(self, question: bytes) -> bytes:
        if self._asked_at is not None:
            self._receive(0.0)  # of the question before: whoever asked it tries again
        try:
            self._lane.send(question)
        except (ChildDied, OSError, TooManyHang) as problem:
            raise UsageProblem(f"{self.folder}: who wrote there ended") from problem
        self._asked_at = time.monotonic()
        return self._receive(WRITE_SECONDS)

    def _receive(self, seconds: float) -> bytes:
        asked_at = self._asked_at or 0.0
        until = time.monotonic() + seconds
        try:
            while (frame := self._lane.receive()) is None:
                now = time.monotonic()
                if now >= until:
                    raise ApiProblem(f"{self.folder}: no answer for {now - asked_at:.0f} s")
                time.sleep(_LOOK_SECONDS)
        except (ChildDied, OSError) as problem:
            raise UsageProblem(f"{self.folder}: who wrote there ended") from problem
        self._asked_at = None
        if frame.code:
            raise ApiProblem(f"{self._path}: {os.strerror(frame.code)}")
        if frame.body[:1] != _READ:
            raise ApiProblem(f"{self.folder}: {frame.body.decode('utf-8', 'replace')}")
        return frame.body[1:]

    # --- in the child ---------------------------------------------------------------------

    def _answer(self, question: bytes) -> bytes:
        """``r`` and what was read, else why nothing may be written."""
        if not self._is_owner:
            if words := _be_owner(self.folder):
                return words.encode()
            self._is_owner = True
        if question[:1] == _WRITE:
            self._replace(question[1:])
            return _READ
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return _READ
        with open(fd, "rb") as file:
            return _READ + file.read(_MOST_BYTES - 1)

    def _replace(self, data: bytes) -> None:
        """On the server's disk before it is said to be: the node may end the moment after."""
        part = f"{self.folder}/.{self.node}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(part, flags, _FILE_MODE)
        with open(fd, "wb") as out:
            os.fchmod(fd, _FILE_MODE)
            out.write(data)
            out.flush()
            os.fsync(fd)
        os.rename(part, self._path)


def _begin() -> None:
    go_first()
    be_spared()
    lock()


def _be_owner(folder: str) -> str:
    """From now on this process may do what the folder's owner may; why not, in words."""
    about = os.stat(folder)
    if not stat.S_ISDIR(about.st_mode):
        return "no folder"
    if about.st_mode & _OTHERS_WRITE:
        return "others may write there, and could accuse any job: chmod go-w"
    if about.st_uid and not os.geteuid():
        os.setgroups([])
        os.setresgid(about.st_gid, about.st_gid, about.st_gid)
        os.setresuid(about.st_uid, about.st_uid, about.st_uid)
    keep_only("agent")
    return ""
