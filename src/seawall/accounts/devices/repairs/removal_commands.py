# SPDX-License-Identifier: Apache-2.0
"""Commands that make a pod or a container go away, as a person types them.

A name that is none of Kubernetes' (RFC 1123) is not put into a command: files of this node told
it, and anything may stand in them.
"""

import re
import shlex
from typing import Final

from seawall.accounts.workloads import Workload

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\Z")


def delete_pod(workload: Workload) -> str:
    """The command; empty where the pod's name is not known."""
    return delete_named(workload.namespace or "", workload.pod or "")


def delete_named(namespace: str, pod: str) -> str:
    """The same for a pod that is no workload any more."""
    is_known = _NAME.match(namespace) and _NAME.match(pod)
    return f"kubectl delete pod -n {namespace} {pod}" if is_known else ""


def docker(one: Workload, verb: str) -> str:
    """By its id, which nobody can choose."""
    known = one.container_id if one.runtime in (None, "docker", "podman") else None
    program = "podman" if one.runtime == "podman" else "docker"
    return f"{program} {verb} {shlex.quote(known[:12])}" if known else ""
