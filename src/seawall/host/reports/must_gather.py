# SPDX-License-Identifier: Apache-2.0
"""``oc adm must-gather``: logs of services of the nodes and the cluster's objects; no /proc.

The layout of github.com/openshift/must-gather: below one folder named after the image
``timestamp``, ``host_service_logs/ROLE/*_service.log``, ``nodes/NODE/*``,
``cluster-scoped-resources/core/nodes/NODE.yaml``, ``namespaces/``.
"""

import re
from typing import Final

from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.reports.report_host import SupportReport, date_in, files_in

_MARKS: Final = frozenset({"host_service_logs/", "cluster-scoped-resources/"})
_NODES: Final = "/cluster-scoped-resources/core/nodes"
_IMAGES_MOST: Final = 16
_VERSION: Final = re.compile(rb"^\s+kernelVersion: (\S{1,200})$", re.MULTILINE)
_MACHINE: Final = re.compile(rb"^\s+architecture: (\w{1,20})$", re.MULTILINE)


def report_of(tree: LiveHost) -> SupportReport | None:
    """The must-gather report that this tree is; None for a tree of another tool."""
    home = _home(tree)
    if home is None:
        return None
    nodes = files_in(tree, f"{home}{_NODES}", r".+\.yaml")
    alone = nodes[0] if len(nodes) == 1 else None  # of several, none is the node of the report
    node = tree.read(alone) if alone else b""
    text = node if isinstance(node, bytes) else b""
    version, machine = _VERSION.search(text), _MACHINE.search(text)
    return SupportReport(
        tool="a must-gather",
        node_name=alone.rpartition("/")[2][: -len(".yaml")] if alone else None,
        release=version[1].decode("ascii", "replace") if version else None,
        machine=machine[1].decode() if machine else None,
        taken_at_unix_seconds=date_in(tree, (f"{home}/timestamp",)),
        kernel_logs=tuple(_logs(tree, home)),
    )


def _home(tree: LiveHost) -> str | None:
    """The root, or the folder of the image's name in it."""
    names = tree.names("/")
    if isinstance(names, Unread):
        return None
    if _MARKS & set(names):
        return ""
    for name in [name for name in names if name.endswith("/")][:_IMAGES_MOST]:
        inside = tree.names(f"/{name[:-1]}")
        if not isinstance(inside, Unread) and _MARKS & set(inside):
            return f"/{name[:-1]}"
    return None


def _logs(tree: LiveHost, home: str) -> list[str]:
    found: list[str] = []
    for folder in (f"{home}/nodes", f"{home}/host_service_logs"):
        names = tree.names(folder)
        for name in () if isinstance(names, Unread) else names:
            if name.endswith("/"):
                pattern = r"(.*_)?(dmesg|kernel|.*kubelet.*|.*journal.*)(\.log|\.gz)*"
                found += files_in(tree, f"{folder}/{name[:-1]}", pattern)
    return sorted(found, key=lambda path: "dmesg" not in path and "kernel" not in path)
