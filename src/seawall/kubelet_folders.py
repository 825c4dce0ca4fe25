# SPDX-License-Identifier: Apache-2.0
"""Where kubelets keep their files, and which of their folders only daemons of the node are given.

The folder itself, not what lies in it: volumes of every pod lie in ``pods``, and what the kubelet
publishes of volumes in ``plugins/kubernetes.io``.
"""

import re
from typing import Final

ROOTS: Final = (
    "/var/lib/kubelet", "/var/lib/k0s/kubelet", "/var/snap/microk8s/common/var/lib/kubelet",
)  # fmt: skip
"""The kubelet's own default, k0s, MicroK8s."""

# A kubelet with another --root-dir, or whose root is a link (the runtime writes down where a link
# leads to), is known by the shape: /data/kubelet/plugins.  Who could make that up?  Below ``pods``
# whoever makes a pod: /var/lib/kubelet/pods/UID/volume-subpaths/VOLUME/CONTAINER/0 has two names
# of his; so nothing below ``pods`` counts.  Elsewhere a source is a hostPath: who may name any
# may name /var/lib/kubelet as well, and has the node.  There is left who may mount below one
# prefix alone (an admission policy, a provisioner that makes host folders of a claim's names): he
# can be spared in this way, and no more.  The bare root is therefore believed of ROOTS only.
_ELSEWHERE: Final = r"/(?:(?!pods/)[A-Za-z0-9_-][A-Za-z0-9._-]*/){0,4}kubelet"
_DAEMONS: Final = r"device-plugins|plugins_registry|plugins(?:/[^/]+)?|pods"
FOLDER: Final = re.compile(
    rf"(?P<root>(?P<own>{'|'.join(ROOTS)})|{_ELSEWHERE})(?:/(?P<name>{_DAEMONS})|(?(own)|(?!)))/?\Z"
)
"""``root``, and ``name`` of the folder in it, or None: the root itself."""
