# SPDX-License-Identifier: Apache-2.0
"""Lines of logs that tell why a device cannot be had, and the little of them that is kept.

A log holds whatever anybody printed: names, addresses, keys.  What matches nothing here never
leaves the reading child, and of what matches only the fields below do.

The kubelet (klog).  ``Pod admission denied`` with the pod's uid: kubelet.go, since 1.33
allocation_manager.go; before it the recorder's own lines at -v=3 (``Event occurred``, and up to
1.19 ``Event(v1.ObjectReference{...})``).  Its reasons: cm/devicemanager/manager.go,
devicesToAllocate (the first two by kubernetes#116376, 2023).  NVIDIA's device plugin:
internal/rm/health.go and internal/plugin/server.go, 1.0.0-beta5 to 0.20.  The kernel module:
``NVRM: Xid``.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LINE_MOST_BYTES: Final = 16 << 10
"""What is longer is no line of these."""

_POD: Final = rb"([a-z0-9][-a-z0-9]{0,62})/([a-z0-9][-a-z0-9.]{0,252})"
_UID: Final = rb"([0-9a-fA-F-]{8,64})"
_RESOURCE: Final = rb"([A-Za-z0-9][A-Za-z0-9.-]{0,252}/[A-Za-z0-9][A-Za-z0-9._-]{0,62})"
_DEVICE: Final = rb"([A-Za-z0-9][A-Za-z0-9_.:/@-]{0,127})"
HINT: Final = re.compile(
    rb"UnexpectedAdmissionError|registration request from device plugin|SyncLoop (?:DELETE|REMOVE)"
    rb"|Starting kubelet main sync loop|marked unhealthy|XidCriticalError: "
    rb"|ll devices as unhealthy|Registered device plugin for|NVRM: Xid \("
)
"""Every line that is kept has one of these in it."""

# I0410 10:39:02.913704    9529 kubelet.go:2357] ; k3s prints no thread.
KLOG: Final = re.compile(
    rb"(?:[a-z]+ )?[IWEF](\d{4} \d\d:\d\d:\d\d(?:\.\d{1,9})?) +(?:\d{1,10} +)?"
    rb"[\w./-]{1,80}:\d{1,6}\] "
)
_DENIED: Final = re.compile(
    rb'"Pod admission denied" podUID="' + _UID + rb'" pod="' + _POD
    + rb'" reason="UnexpectedAdmissionError" message="(.*)'
)  # fmt: skip
_OCCURRED: Final = re.compile(
    rb'"Event occurred" object="' + _POD + rb'"(?: [A-Za-z]{1,20}="[^"\\]{0,120}")*?'
    rb' reason="UnexpectedAdmissionError" message="(.*)'
)
_EVENT: Final = re.compile(
    rb'Event\(v1\.ObjectReference\{Kind:"Pod", Namespace:"([a-z0-9-]{1,63})", '
    rb'Name:"([a-z0-9.-]{1,253})", UID:"' + _UID + rb'"[^}]{0,200}\}\): type: \'Warning\' '
    rb"reason: 'UnexpectedAdmissionError' (.*)"
)
_WHY: Final = (
    ("no_healthy", rb"no healthy devices present; cannot allocate unhealthy devices "),
    ("unregistered", rb"cannot allocate unregistered device "),
    ("not_healthy_any_more",
     rb"previously allocated devices are no longer healthy; cannot allocate unhealthy devices "),
    ("too_few", rb"requested number of devices unavailable for "),
)  # fmt: skip
_REASONS: Final = tuple(
    (
        word,
        re.compile(
            rb"(?:Pod )?(?:Allocate|Update plugin resources) failed due to " + text + _RESOURCE
        ),
    )
    for word, text in _WHY
)
_GONE: Final = re.compile(
    rb'"SyncLoop (?:DELETE|REMOVE)" source="[a-z]{1,10}" pods=\[([^\]\\]{1,8000})\]'
)
_GONE_POD: Final = re.compile(rb'"?' + _POD + rb'"?(?:,|\s|\Z)')
_STARTED: Final = re.compile(rb'"?Starting kubelet main sync loop')
_ASKED: Final = re.compile(
    rb'"?Got registration request from device plugin with resource(?: name|" resourceName=)'
    rb' ?"' + _RESOURCE + rb'"'
)
# The plugin's log package of before 0.14 prints 2020/08/10 19:09:42.
GO_LOG: Final = re.compile(rb"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d ")
_XID: Final = re.compile(
    rb"XidCriticalError: Xid=(\d{1,6})(?: on Device=" + _DEVICE
    + rb"[;,] (?:marking device as|the device will go) unhealthy|, All devices will go unhealthy)"
)  # fmt: skip
_MARKED: Final = re.compile(
    rb"'" + _RESOURCE + rb"' device marked unhealthy: " + _DEVICE + rb"\s*\Z"
)
_ALL: Final = re.compile(
    rb"(?:Error waiting for event|Failed to determine uuid for event) ?.{0,300}?"
    rb"; ?[Mm]arking all devices as unhealthy"
)
_SERVED: Final = re.compile(rb"Registered device plugin for '" + _RESOURCE + rb"' with Kubelet")
_KERNEL: Final = re.compile(
    rb"NVRM: Xid \(PCI:([0-9a-fA-F]{4,8}(?::[0-9a-fA-F]{2}){2})(?:\.\d)?\): (\d{1,6}),"
)


class DeviceLogEvent(NamedTuple):
    """What one line told; a field that it has not is empty."""

    what: str
    """``refused``, ``gone``, ``started``, ``registered``, ``marked``, ``xid``, ``lost`` (the
    plugin lost sight of all its devices), ``kernel_xid``."""
    at: float
    """Unix seconds."""
    namespace: str = ""
    pod: str = ""
    uid: str = ""
    resource: str = ""
    device: str = ""
    """As the plugin calls it; of ``kernel_xid`` its PCI address, ``0000:3b:00``."""
    xid: int | None = None
    why: str = ""
    """Of ``refused``: ``no_healthy``, ``unregistered``, ``not_healthy_any_more``, ``too_few``."""


def of_kubelet(text: bytes, at: float) -> Iterator[DeviceLogEvent]:
    """Of a line's text, klog's head taken away."""
    if found := _DENIED.match(text):
        uid, namespace, pod, message = _words(found)
        yield from _refused(DeviceLogEvent("refused", at, namespace, pod, uid), message)
    elif found := _OCCURRED.match(text):
        namespace, pod, message = _words(found)
        yield from _refused(DeviceLogEvent("refused", at, namespace, pod), message)
    elif found := _EVENT.match(text):
        namespace, pod, uid, message = _words(found)
        yield from _refused(DeviceLogEvent("refused", at, namespace, pod, uid), message)
    elif found := _GONE.match(text):
        for one in _GONE_POD.finditer(found[1]):
            namespace, pod = _words(one)
            yield DeviceLogEvent("gone", at, namespace, pod)
    elif found := _ASKED.match(text):
        yield DeviceLogEvent("registered", at, resource=_words(found)[0])
    elif _STARTED.match(text):
        yield DeviceLogEvent("started", at)


def _refused(event: DeviceLogEvent, message: str) -> Iterator[DeviceLogEvent]:
    """Only where the message names a device plugin's resource."""
    for word, pattern in _REASONS:
        if found := pattern.match(message.encode("ascii")):
            resource = found[1].decode("ascii").rstrip(".")
            yield event._replace(resource=resource, why=word)
            return


def of_plugin(text: bytes, at: float) -> Iterator[DeviceLogEvent]:
    """Of a line of NVIDIA's device plugin, and of those that were made from it."""
    if found := _MARKED.match(text):
        resource, device = _words(found)
        yield DeviceLogEvent("marked", at, resource=resource, device=device)
    elif found := _XID.match(text):
        yield DeviceLogEvent("xid", at, device=(found[2] or b"").decode("ascii"), xid=int(found[1]))
    elif found := _SERVED.match(text):
        yield DeviceLogEvent("registered", at, resource=_words(found)[0])
    elif _ALL.match(text):
        yield DeviceLogEvent("lost", at)


def of_kernel(text: bytes, at: float) -> Iterator[DeviceLogEvent]:
    """Of a record of the kernel's log."""
    if found := _KERNEL.match(text):
        address = found[1].decode("ascii").lower()
        domain, _, rest = address.partition(":")
        yield DeviceLogEvent("kernel_xid", at, device=f"{domain[-4:]}:{rest}", xid=int(found[2]))


def _words(found: re.Match[bytes]) -> list[str]:
    return [
        (group or b"").decode("ascii", "replace").replace("\ufffd", "?") for group in found.groups()
    ]
