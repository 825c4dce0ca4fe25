# SPDX-License-Identifier: Apache-2.0
"""Programs of our own that the aide starts for a guard that runs: the reader of the
configuration, and a watcher or a recorder in the place of one that ended.
"""

import os
import stat
import time
from typing import Any, Final, NoReturn

from seawall.guard.handover import REPLACED

FILES_SECONDS: Final = 50.0
"""So long one that is to come waits for our files, which an upgrade takes away for a moment; less
than ``companions.SILENT_SECONDS``.
"""
_AGAIN_SECONDS: Final = 0.5
_CONFIG_MOST: Final = 256 << 10
_WRONG: Final = 2
"""The status of a reader that found what is wrong with the file."""
_PLAIN: Final = (b'mode="observe"', b"mode='observe'")
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def become_reader(request: dict[str, Any], answers: int) -> NoReturn:
    """In the child: say in a line of its own what ``mode`` is in plain, then exec a fresh
    interpreter that reads the file, for a guard that must not read TOML itself.  Never by a module
    that is imported here: our files may be another version's than what is in memory.
    """
    from seawall.guard.entry import config_argv  # noqa: PLC0415 - in memory since the start

    path = str(request.get("path"))
    os.write(answers, b"observe\n" if is_observe_in_plain(path) else b"\n")
    os.dup2(answers, 1)
    argv = config_argv(path)
    os.execv(argv[0], argv)  # noqa: S606 - no shell: what is wanted


def is_observe_in_plain(path: str) -> bool:
    """Whether one of its lines says so, whatever else it says and whoever understands that.  What
    others may write is nobody's word.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(fd)
            is_ours = found.st_uid in (0, os.geteuid()) and not found.st_mode & _OTHERS_MAY_WRITE
            text = os.read(fd, _CONFIG_MOST) if is_ours else b""
        finally:
            os.close(fd)
    except OSError:
        return False
    lines = (line.partition(b"#")[0] for line in text.splitlines())
    return any(line.translate(None, b" \t\r\xef\xbb\xbf") in _PLAIN for line in lines)


def config_answer(said: bytes, code: int, late: str) -> dict[str, Any]:
    """What a reading has come to; ``late``: that it took too long."""
    mode, _, text = said.decode("utf-8", "replace").partition("\n")
    words = text.strip()
    answer = {"mode": mode} if mode else {}
    if code == 0 and words and not late:
        return {**answer, "settings": words}
    if code == _WRONG and words and not late:
        return {**answer, "problem": words[:2000]}
    why = late or f"its reader failed with status {code}"
    return {**answer, "problem": f"{why}; perhaps {REPLACED}"}


def become_companion(kind: str, fds: list[int], request: dict[str, Any]) -> NoReturn:
    """In the child: exec a watcher or a recorder with its end of the pair."""
    from seawall.guard.entry import recorder_argv, watcher_argv  # noqa: PLC0415 - only here

    fd = fds[int(request.get("number", -1))]
    os.set_inheritable(fd, True)
    if kind == "recorder":
        path, size = str(request.get("path")), int(request.get("size", 0))
        argv = recorder_argv(fd, path, size, str(request.get("folder")))
    else:
        argv = watcher_argv(fd)
    _wait_for(argv[3])  # behind python -I -S
    os.execv(argv[0], argv)  # noqa: S606 - no shell: what is wanted


def _wait_for(path: str) -> None:
    until = time.monotonic() + FILES_SECONDS
    while not os.path.exists(path) and time.monotonic() < until:
        time.sleep(_AGAIN_SECONDS)


def give_away(fds: list[int], request: dict[str, Any]) -> None:
    """The aide's copy of that end would hide that it ended."""
    number = int(request.get("number", -1))
    os.close(fds[number])
    fds[number] = -1
