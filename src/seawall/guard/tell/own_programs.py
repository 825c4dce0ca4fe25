# SPDX-License-Identifier: Apache-2.0
"""Programs of our own that the aide starts for a guard that runs: the reader of the
configuration, and a watcher or a recorder in the place of one that ended.
"""

import os
from typing import Any, NoReturn


def read_config(request: dict[str, Any]) -> dict[str, Any]:
    """The guard's file, for a guard that must not read TOML itself."""
    from seawall.guard import config, handed  # noqa: PLC0415 - in this child only
    from seawall.problems import UsageProblem  # noqa: PLC0415

    try:
        return {"settings": handed.to_json(config.read(str(request.get("path"))))}
    except UsageProblem as problem:
        return {"problem": str(problem)[:2000]}


def become_companion(kind: str, fds: list[int], request: dict[str, Any]) -> NoReturn:
    """In the child: exec a watcher or a recorder with its end of the pair."""
    from seawall.guard.entry import recorder_argv, watcher_argv  # noqa: PLC0415 - only here

    fd = fds[int(request.get("number", -1))]
    os.set_inheritable(fd, True)
    if kind == "recorder":
        argv = recorder_argv(fd, str(request.get("path")), int(request.get("size", 0)))
    else:
        argv = watcher_argv(fd)
    os.execv(argv[0], argv)  # noqa: S606 - no shell: what is wanted


def give_away(fds: list[int], request: dict[str, Any]) -> None:
    """The aide's copy of that end would hide that it ended."""
    number = int(request.get("number", -1))
    os.close(fds[number])
    fds[number] = -1
