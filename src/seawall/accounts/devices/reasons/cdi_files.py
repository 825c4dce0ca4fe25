# SPDX-License-Identifier: Apache-2.0
"""Who writes a CDI file anew, and with which command.

``nvidia-ctk cdi generate`` without ``--output`` prints and writes nothing.  The device plugin
writes files of its own kind when it starts (k8s-device-plugin, internal/cdi: the vendor
``k8s.device-plugin.nvidia.com``), the toolkit's container those of ``management.nvidia.com``
(nvidia-container-toolkit, cmd/nvidia-ctk-installer).  Since toolkit 1.18 the unit
nvidia-cdi-refresh.service writes /var/run/cdi/nvidia.yaml at boot.
"""

import re
from collections.abc import Iterator
from typing import Final

from seawall.host.host import Unread
from seawall.readings.cdi_specs import CdiNode, CdiSpec, CdiSpecs

_BY_PODS: Final = (
    ("k8s.device-plugin.nvidia.com/", "the device plugin's pod"),
    ("management.nvidia.com/", "the pod of the NVIDIA container toolkit"),
)
_TOOLS: Final = (
    (re.compile(r"(?:[a-z0-9.-]+\.)?nvidia\.com/"), "nvidia-ctk"),
    (re.compile(r"(?:[a-z0-9.-]+\.)?amd\.com/"), "amd-ctk"),
)
_PLAIN: Final = re.compile(r"/[A-Za-z0-9_./=@:+-]+\Z")
_REFRESHED: Final = re.compile(r"(?:/var)?/run/cdi/nvidia\.yaml\Z")
REFRESH: Final = "nvidia-cdi-refresh.service"


def writer_of(kind: str) -> str:
    """``the device plugin's pod``; empty where a person or a unit writes it."""
    return next((who for start, who in _BY_PODS if kind.startswith(start)), "")


def command_of(kind: str, source: str) -> str:
    """What is typed; empty where a pod writes it, or no tool is known."""
    tool = next((name for pattern, name in _TOOLS if pattern.match(kind)), "")
    if writer_of(kind) or not tool:
        return ""
    return f"{tool} cdi generate --output={source if _PLAIN.match(source) else 'FILE'}"


def anew(kind: str, source: str) -> str:
    """``write /etc/cdi/nvidia.yaml anew (nvidia-ctk cdi generate --output=...)``."""
    if who := writer_of(kind):
        return f"restart {who}, which writes {source} anew"
    command = command_of(kind, source)
    words = f"write {source} anew{f' ({command})' if command else ''}"
    is_refreshed = bool(_REFRESHED.match(source))
    return f"{words}; from toolkit 1.18 on {REFRESH} does it" if is_refreshed else words


def of_kind(specs: CdiSpecs | Unread, kind: str) -> CdiSpec | None:
    """The first file that tells of it."""
    found = () if isinstance(specs, Unread) else specs.specs
    return next((spec for spec in found if spec.kind == kind), None)


def with_number(specs: CdiSpecs | Unread, path: str, majors: frozenset[int]) -> CdiSpec | None:
    """The first file that has the node with one of these."""
    for spec in () if isinstance(specs, Unread) else specs.specs:
        if any(node.path == path and node.major in majors for node in nodes_of(spec)):
            return spec
    return None


def nodes_of(spec: CdiSpec) -> Iterator[CdiNode]:
    """Those of every device with it."""
    yield from spec.common
    for nodes in spec.devices.values():
        yield from nodes
