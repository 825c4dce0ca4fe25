# SPDX-License-Identifier: Apache-2.0
"""The probe ``cri``: what container runtimes themselves have on record of containers' devices.

Kubernetes' Container Runtime Interface, cri-api's pkg/apis/runtime/v1/api.proto (v1 since
Kubernetes 1.23; v1alpha2 before has the same numbers for all that is asked here): Version,
ListContainers of those that run, and ContainerStatus with ``verbose``, whose ``info`` is JSON of
the runtime's own (containerd internal/cri/server/container_status.go, cri-o
server/container_status.go).  These three change nothing.

Asks {"ids": [...]}; answers {"sockets": [{"path", "problem", "runtime": [name, version],
"containers": {id: {"problem", "spec", ...}}}]} of the sockets that are there.  What is kept of a
container is told in ``cri_sieve.py``; nothing else leaves.
"""

import json
import os
import re
import stat
import time
from collections.abc import Iterator
from typing import Final

from seawall.formats.protobuf_wire import field, fields, messages
from seawall.host.cri_sieve import container_facts
from seawall.host.grpc_unix.call import Connection
from seawall.host.grpc_unix.grpc_problems import CallProblem, StatusProblem
from seawall.host.grpc_unix.reasons import reason_of
from seawall.host.host import JSON
from seawall.problems import ParseProblem

SOCKETS: Final = (
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/cri-dockerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/k0s/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
)
CRICTL: Final = "/etc/crictl.yaml"
SECONDS: Final = 2.0
"""For all sockets together."""
SOCKET_SECONDS: Final = 1.5
_SERVICES: Final = ("/runtime.v1.RuntimeService/", "/runtime.v1alpha2.RuntimeService/")
_UNIMPLEMENTED: Final = 12
_CRICTL_BYTES_MOST: Final = 64 << 10
_ENDPOINT: Final = re.compile(
    rb"""^runtime-endpoint:\s*["']?(?:unix://)?(/[^\s"'#]+)""", re.MULTILINE
)
_ANSWER_BYTES_MOST: Final = 12 << 20
_WORDS_MOST: Final = 128
# Numbers of fields in api.proto.
_RUNTIME_NAME, _RUNTIME_VERSION = 2, 3  # VersionResponse
_FILTER, _STATE = 1, 2  # ListContainersRequest; ContainerFilter
_IS_RUNNING: Final = b"\x08\x01"  # ContainerStateValue: CONTAINER_RUNNING
_CONTAINERS, _ID = 1, 1  # ListContainersResponse; Container, ContainerStatusRequest
_IS_VERBOSE: Final = b"\x10\x01"  # ContainerStatusRequest.verbose
_INFO = 2  # ContainerStatusResponse, a map: key 1, value 2


def cri(argument: str) -> JSON:
    """See the module's text; {"sockets": []} where no runtime is."""
    asked = json.loads(argument) if argument else {}
    ids = [one for one in asked.get("ids", ()) if isinstance(one, str)]
    until = time.monotonic() + SECONDS
    return {"sockets": [_socket(path, ids, until) for path in _sockets()]}


def _sockets() -> Iterator[str]:
    """Each once: /var/run is /run, and crictl.yaml mostly names one of these."""
    seen = set()
    for path in (*SOCKETS, *_crictl()):
        try:
            found = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError:
            yield path  # there and not to be had: that is told
            continue
        if (found.st_dev, found.st_ino) not in seen:
            seen.add((found.st_dev, found.st_ino))
            yield path


def _crictl() -> list[str]:
    """The endpoint of crictl's config, if it is a unix socket."""
    try:
        fd = os.open(CRICTL, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return []
        text = os.read(fd, _CRICTL_BYTES_MOST)
    except OSError:
        return []
    finally:
        os.close(fd)
    match = _ENDPOINT.search(text)
    return [os.fsdecode(match[1])] if match else []


def _socket(path: str, ids: list[str], until: float) -> JSON:
    told: dict[str, JSON] = {"path": path, "problem": None, "runtime": None, "containers": {}}
    left = min(SOCKET_SECONDS, until - time.monotonic())
    if left <= 0:
        told["problem"] = ["not_reached", "others took all the time"]
        return told
    try:
        with Connection(path, left) as runtime:
            service, told["runtime"] = _version(runtime)
            if ids:
                told["containers"] = _containers(runtime, service, ids)
    except (CallProblem, OSError, ParseProblem) as problem:
        told["problem"] = reason_of(problem)
    return told


def _version(runtime: Connection) -> tuple[str, JSON]:
    """The service that it has, and [name, version]."""
    service = _SERVICES[0]
    try:
        answer = runtime.call(service + "Version")
    except StatusProblem as problem:
        if problem.code != _UNIMPLEMENTED:
            raise
        service = _SERVICES[1]
        answer = runtime.call(service + "Version")
    found = dict(fields(answer))
    return service, [_text(found.get(_RUNTIME_NAME)), _text(found.get(_RUNTIME_VERSION))]


def _text(value: int | bytes | None) -> str:
    return value.decode("utf-8", "replace")[:_WORDS_MOST] if isinstance(value, bytes) else ""


def _containers(runtime: Connection, service: str, ids: list[str]) -> JSON:
    """Of those that this runtime has and that were asked for."""
    running = _running(runtime, service)
    told: dict[str, JSON] = {}
    size = 0
    for key in ids:
        if key.encode() not in running:
            continue
        if size > _ANSWER_BYTES_MOST:
            told[key] = {"problem": ["too_big", "others filled the answer"]}
            continue
        question = field(_ID, key.encode()) + _IS_VERBOSE
        try:
            info = _info(runtime.call(service + "ContainerStatus", question))
            size += len(info)
            told[key] = container_facts(info)
        except (StatusProblem, ParseProblem) as problem:
            told[key] = {"problem": reason_of(problem)}
        except (CallProblem, OSError) as problem:
            # The connection is of no more use; what was told so far is.
            told |= {rest: {"problem": reason_of(problem)} for rest in ids[ids.index(key) :]}
            break
    return told


def _running(runtime: Connection, service: str) -> set[bytes]:
    """Ids of the containers that this runtime says are running (ListContainers)."""
    question = field(_FILTER, field(_STATE, _IS_RUNNING))
    answer = runtime.call(service + "ListContainers", question)
    return {key for row in messages(answer, _CONTAINERS) for key in messages(row, _ID)}


def _info(answer: bytes) -> bytes:
    """The value under ``info``; empty: it tells nothing beyond the status."""
    for value in messages(answer, _INFO):
        entry = dict(fields(value))
        text = entry.get(2)
        if entry.get(1) == b"info" and isinstance(text, bytes):
            return text
    return b""
