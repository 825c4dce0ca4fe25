# SPDX-License-Identifier: Apache-2.0
"""The command that is run after a kill: no shell, its own session, a time limit, no output.

The decision stands as JSON on its standard input.
"""

import os
import signal
from typing import Any, Final, NoReturn

SECONDS: Final = 30.0
STDIN_MOST: Final = 60_000
"""A pipe holds 64 KiB, so nobody waits for the command to read."""
NOT_FOUND: Final = 127
_ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
}  # fmt: skip
_FDS_MOST: Final = 1024


def become(request: dict[str, Any]) -> NoReturn:
    """In the child: exec it, or end with status 127."""
    import shlex  # noqa: PLC0415 - in the child only: the aide stays small

    os.setsid()
    try:
        argv = shlex.split(str(request.get("command", "")))
        ours, theirs = os.pipe()
        os.write(theirs, str(request.get("stdin", "")).encode()[:STDIN_MOST])
        nothing = os.open("/dev/null", os.O_WRONLY)
        os.dup2(ours, 0)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.closerange(3, _FDS_MOST)
        os.chdir("/")
        environment = {**_ENVIRONMENT, "SEAWALL_DECISION": decision_of(request)}
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - no shell: what is wanted
    except (OSError, ValueError, IndexError):
        os._exit(NOT_FOUND)


def decision_of(request: dict[str, Any]) -> str:
    """Its id; nothing that an environment could not hold."""
    return str(request.get("decision", "")).replace("\0", "")[:64]


def problem_of(code: int) -> str:
    """In words; empty when it ended well."""
    if code == 0:
        return ""
    if code == NOT_FOUND:
        return "the command was not found, or could not be run"
    if code < 0:
        return f"the command was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"the command failed with status {code}"
