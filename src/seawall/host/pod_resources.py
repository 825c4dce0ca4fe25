# SPDX-License-Identifier: Apache-2.0
"""The probe ``pod_resources``: what the kubelet says that it gave to whom.

k8s.io/kubelet pkg/apis/podresources/v1/api.proto, PodResourcesLister (v1 since Kubernetes 1.20):
List, and GetAllocatableResources (since 1.23).  Claims of Dynamic Resource Allocation stand in
``dynamic_resources`` since 1.27.  Both calls change nothing.

Answers {"path", "problem", "devices": [[namespace, pod, container, resource, [id]]],
"claims": [[namespace, pod, container, claim's namespace, claim, driver, device, [CDI name]]],
"allocatable": {resource: [id]} or None}; None where no kubelet has such a socket.  CPUs and memory,
which it tells too, are left out.
"""

import os
from collections.abc import Iterator
from typing import Final

from seawall.formats.protobuf_wire import messages
from seawall.host.grpc_unix.call import Connection
from seawall.host.grpc_unix.grpc_problems import CallProblem, StatusProblem
from seawall.host.grpc_unix.reasons import reason_of
from seawall.host.host import JSON
from seawall.kubelet_folders import ROOTS
from seawall.problems import ParseProblem

SOCKETS: Final = tuple(f"{folder}/pod-resources/kubelet.sock" for folder in ROOTS)
SECONDS: Final = 1.0
_SERVICE: Final = "/v1.PodResourcesLister/"
_WORD_MOST: Final = 512
_ROWS_MOST: Final = 50_000
# Numbers of fields in api.proto.
_POD_RESOURCES = 1  # ListPodResourcesResponse
_NAME, _NAMESPACE, _CONTAINERS = 1, 2, 3  # PodResources
_DEVICES, _DYNAMIC_RESOURCES = 2, 5  # ContainerResources; its name is 1
_RESOURCE_NAME, _DEVICE_IDS = 1, 2  # ContainerDevices
_CLAIM_NAME, _CLAIM_NAMESPACE, _CLAIM_RESOURCES = 2, 3, 4  # DynamicResource
_CDI_DEVICES, _DRIVER_NAME, _DEVICE_NAME = 1, 2, 4  # ClaimResource
_ALLOCATABLE_DEVICES = 1  # AllocatableResourcesResponse


def pod_resources() -> JSON:
    """Of the first kubelet that has the socket."""
    path = next((path for path in SOCKETS if os.path.lexists(path)), None)
    if path is None:
        return None
    told: dict[str, JSON] = {
        "path": path, "problem": None, "devices": [], "claims": [], "allocatable": None,
    }  # fmt: skip
    try:
        with Connection(path, SECONDS) as kubelet:
            told |= _listed(kubelet.call(_SERVICE + "List"))
            told["allocatable"] = _allocatable(kubelet)
    except (CallProblem, OSError, ParseProblem) as problem:
        told["problem"] = reason_of(problem)
    return told


def _allocatable(kubelet: Connection) -> JSON:
    """None: this kubelet does not tell."""
    try:
        answer = kubelet.call(_SERVICE + "GetAllocatableResources")
    except StatusProblem:
        return None
    found: dict[str, list[JSON]] = {}
    for message in messages(answer, _ALLOCATABLE_DEVICES):
        resource, ids = _devices(message)
        found.setdefault(resource, []).extend(ids)
    return dict[str, JSON](found)


def _listed(answer: bytes) -> dict[str, JSON]:
    """Rows of devices and of claims, in the kubelet's order."""
    devices: list[JSON] = []
    claims: list[JSON] = []
    for pod in messages(answer, _POD_RESOURCES):
        who = [_word(pod, _NAMESPACE), _word(pod, _NAME)]
        for container in messages(pod, _CONTAINERS):
            whose = [*who, _word(container, _NAME)]
            for given in messages(container, _DEVICES):
                resource, ids = _devices(given)
                devices.append([*whose, resource, ids])
            for claim in messages(container, _DYNAMIC_RESOURCES):
                claims += ([*whose, *row] for row in _claimed(claim))
        if len(devices) + len(claims) > _ROWS_MOST:
            raise ParseProblem(0, f"at most {_ROWS_MOST} devices of pods")
    return {"devices": devices, "claims": claims}


def _claimed(claim: bytes) -> Iterator[list[JSON]]:
    """One row for each device of a claim."""
    whose: list[JSON] = [_word(claim, _CLAIM_NAMESPACE), _word(claim, _CLAIM_NAME)]
    for device in messages(claim, _CLAIM_RESOURCES):
        names: list[JSON] = [_word(one, _NAME) for one in messages(device, _CDI_DEVICES)]
        yield [*whose, _word(device, _DRIVER_NAME), _word(device, _DEVICE_NAME), names]


def _devices(message: bytes) -> tuple[str, list[JSON]]:
    """Since 1.21 there is a message for each NUMA node."""
    ids: list[JSON] = [_decoded(value) for value in messages(message, _DEVICE_IDS)]
    return _word(message, _RESOURCE_NAME), ids


def _word(message: bytes, wanted: int) -> str:
    """The last of that number decides, as everywhere in protobuf."""
    return _decoded([b"", *messages(message, wanted)][-1])


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")[:_WORD_MOST]
