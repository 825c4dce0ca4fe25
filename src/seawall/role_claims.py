# SPDX-License-Identifier: Apache-2.0
"""Roles that a workload only claims: by a name or a priority that any tenant may write down.

Of Kubernetes a tenant chooses the namespace's name, where he may make namespaces, and since 1.17
``priorityClassName: system-node-critical`` in every namespace that no quota keeps it from
(plugin/pkg/admission/priority looks at no namespace; pkg/kubelet/qos/policy.go makes
oom_score_adj -997 of it).  Such a role spares in the order; who is proved to be the cause it does
not protect.  The guard is told roles as words, live and in the black box: these begin in one way.
"""

from typing import Final

_BEGINNING: Final = "only by its "
NOT_NAMED: Final = "its name is not known yet"
"""A container's files come some seconds after its cgroup, and its name may be a protected one."""
NOT_SEEN: Final = "its role could not be read yet"
"""The disk did not answer: it may be a CSI driver."""


def claimed_role(by: str, role: str) -> str:
    """The words of a role that stands only ``by`` its namespace or its priority class."""
    return f"{_BEGINNING}{by}: {role}"


def is_claimed(role: str) -> bool:
    """Whether these words of a role are a claim and no more."""
    return role.startswith(_BEGINNING)
