# SPDX-License-Identifier: Apache-2.0
"""The probe ``gpu_query_inside``: what the driver tells a container, by the host's own libraries.

The reading child looks at one process of it, and starts an interpreter that becomes such a process
(entry.py).  A container that holds it up costs that interpreter alone.
"""

import json
import os
from typing import Final

from seawall.host.device_access.apart import ask_apart, problem
from seawall.host.device_access.device_cgroup import JoinError, own_hierarchy
from seawall.host.device_access.process_handle import ProcessHandle, process_handle
from seawall.host.expendable import unread_for
from seawall.host.gpu_inside.cgroup_room import refuse_without_room
from seawall.host.gpu_inside.fresh import Fresh
from seawall.host.gpu_inside.own_libraries import own_libraries
from seawall.host.gpu_inside.standing import standing_of
from seawall.host.host import JSON

SECONDS_MOST: Final = 12.0
ENVIRONMENT: Final = (
    b"CUDA_VISIBLE_DEVICES", b"NVIDIA_VISIBLE_DEVICES", b"CUDA_MPS_PIPE_DIRECTORY",
)  # fmt: skip
"""Of the container's; others (CUDA_INJECTION64_PATH) would have code loaded."""
_VALUE_MOST: Final = 4096
_LOOK_SECONDS: Final = 1.0


def gpu_query_inside(argument: str) -> JSON:
    """{"uid", "own": own_libraries, a problem, or null where its files are ours, "libraries",
    "nvml", "cuda", "environment", "runtime_version", "left_behind": [pid, ...],
    "problem": [why, words] or null}.

    argument: JSON, [pid, start_ticks, seconds].
    """
    pid, ticks, seconds = json.loads(argument)
    try:
        with process_handle(int(pid)) as process:
            if process.start_ticks() != ticks:
                return problem("vanished", "another process has its number now")
            return _asked(process, min(float(seconds), SECONDS_MOST), int(ticks))
    except JoinError as error:
        return problem(error.why, error.words)
    except OSError as error:
        told = unread_for("", error.errno or 0)
        return problem(told.why, error.strerror or told.detail)


def _asked(process: ProcessHandle, seconds: float, ticks: int) -> JSON:
    hierarchy = own_hierarchy()
    if hierarchy is None:
        raise JoinError("absent", "no cgroup hierarchy with devices is mounted here")
    cgroups = process.read("cgroup")
    refuse_without_room(hierarchy, cgroups)
    standing = standing_of(process.read("status"), process.read("limits"))
    seen = _look(process, ticks)
    told: dict[str, JSON] = {
        "uid": standing.uids[1], "own": seen.get("own"), "nvml": None, "cuda": None,
        "environment": {}, "runtime_version": None, "left_behind": [], "problem": None,
    }  # fmt: skip
    question: dict[str, JSON] = {
        "hierarchy": list(hierarchy),
        "cgroups": os.fsdecode(cgroups),
        "environment": seen.get("environment"),
        "seconds": seconds,
    }
    fresh = Fresh(question, process.fd)
    try:
        is_over = fresh.listen(seconds)
    finally:
        left: list[JSON] = [*fresh.close()]
    told |= {"left_behind": left, "libraries": fresh.words.get("libraries")}
    if process.start_ticks() != ticks or process.read("cgroup") != cgroups:
        return {**told, **problem("vanished", "it ended, or went to another cgroup, meanwhile")}
    return told | _outcome(fresh, seconds, is_over=is_over)


def _look(process: ProcessHandle, ticks: int) -> dict[str, JSON]:
    """What lies in the container, and what it holds in its memory: either may hold up a reader."""

    def look(pid: int) -> JSON:
        with process_handle(pid) as again:
            if again.start_ticks() != ticks:
                return problem("vanished", "another process has its number now")
            environment = _environment(again.read("environ"))
            is_ours = os.path.samefile("/proc/self/ns/mnt", f"/proc/self/fd/{again.fd}/ns/mnt")
            own = None if is_ours else own_libraries(again.inside())
            return {"own": own, "environment": environment}

    (seen,) = ask_apart(
        [process.pid], look, each_seconds=_LOOK_SECONDS, all_seconds=2 * _LOOK_SECONDS
    )
    nothing: dict[str, JSON] = {"own": seen, "environment": {}}
    return seen if isinstance(seen, dict) and "own" in seen else nothing


def _environment(data: bytes) -> dict[str, JSON]:
    variables = [one.partition(b"=") for one in data.split(b"\0")]
    return {
        os.fsdecode(name): os.fsdecode(value[:_VALUE_MOST])
        for name, _, value in variables
        if name in ENVIRONMENT
    }


def _outcome(fresh: Fresh, seconds: float, *, is_over: bool) -> dict[str, JSON]:
    """What it answered, or why it did not."""
    if "problem" in fresh.words:
        return {"problem": fresh.words["problem"]}
    if not is_over:
        words = f"the driver, or the container, held up whoever asked for more than {seconds:.1f} s"
        return problem("no_answer", words)
    libraries = fresh.words.get("libraries")
    if libraries is None:
        return problem("failed", "whoever asked ended while it loaded this host's libraries")
    if not any(one["path"] for one in libraries.values()):
        return {}
    try:
        answer = json.loads(fresh.answer)
    except (ValueError, RecursionError):
        return problem("failed", _end_words(fresh.words.get("ended")))
    if not isinstance(answer, dict):
        return problem("malformed", "whoever asked was taken over there")
    if "problem" in answer:
        return {"problem": answer["problem"]}
    return {name: answer[name] for name in ("nvml", "cuda", "environment") if name in answer}


def _end_words(ended: object) -> str:
    match ended:
        case [False, int(number)]:
            return f"whoever asked was ended there by signal {number}"
        case [True, int(status)]:
            return f"whoever asked ended there with status {status}"
    return "whoever asked was ended before it answered"
