# SPDX-License-Identifier: Apache-2.0
"""What a kubelet is called on a host: its programs, as ``comm`` has them, and its units.

Beside the layers and without a pattern: the guard holds it in locked memory too.
"""

from typing import Final

KUBELET: Final = "kubelet"
"""k0s and RKE2 start it as a program of its own, with its arguments."""
WITH_KUBELET: Final = frozenset({"k3s", "k3s-server", "k3s-agent", "kubelite", "hyperkube"})
"""Have one in them: K3s, MicroK8s, and Kubernetes up to 1.18 in one file."""
STARTERS: Final = frozenset({"k0s", "rke2"})
"""Start one, and start it again."""
PROGRAMS: Final = frozenset({KUBELET, *WITH_KUBELET, *STARTERS})
UNITS: Final = (
    "kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service",
    "rke2-agent.service", "k0scontroller.service", "k0sworker.service",
    "snap.microk8s.daemon-kubelite.service", "snap.microk8s.daemon-kubelet.service",
    "snap.kubelet.daemon.service",
)  # fmt: skip
RUNTIME_UNITS: Final = ("containerd.service", "docker.service", "crio.service")
