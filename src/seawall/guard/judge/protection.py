# SPDX-License-Identifier: Apache-2.0
"""Reasons against acting on a group that no evidence outweighs, and those that proof outweighs.

The node's owner protects: by ``protect``, by where the host put it, by what the host gave it.  A
name or a priority that a tenant may write down (``role_claims``) takes a group out of the order
only: who is proved to be the cause goes.

The kubelet gives every Guaranteed pod oom_score_adj -997 (pkg/kubelet/qos/policy.go), and so
does it to those of the class system-node-critical.  What the cgroup tree itself shows to be a
Guaranteed pod comes last in the order; of another pod of the kubelet's it is a claim; elsewhere
root has set it, and it protects.
"""

from collections.abc import Sequence

from seawall.cgroup_paths import user_of
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import GUARANTEED, Group
from seawall.role_claims import claimed_role, is_claimed

ADJ_PROTECTED = -997
ADJ_NEVER = -1000
"""The kernel itself never kills it: only its name, written out in ``unprotect``, lifts that."""


class Protection:
    """The settings' words, and where the guard itself is."""

    __slots__ = ("own", "protect", "scope", "scope_words", "unprotect")

    def __init__(self, settings: Settings, own_cgroup: str = "") -> None:
        self.scope = tuple(path.rstrip("/") for path in settings.scope)
        self.scope_words = " ".join(settings.scope) or "nothing"
        self.own = own_cgroup.rstrip("/")
        self.protect = settings.protect
        self.unprotect = settings.unprotect

    def reason(self, group: Group) -> str:
        """Why ``group`` is never acted on, in words; empty: it may be, if it is proved."""
        path = group.path
        if path in {"", "/"}:
            return "it is the root of all"
        if user_of(path) == 0:
            return "root's own sessions"
        if not self.is_in_scope(path):
            return f"outside the scope ({self.scope_words})"
        if is_within(self.own, path):
            return "the guard itself is in it"
        adj = group.adj
        if matches(self.protect, group):
            return "protected by the configuration"
        if adj is not None and adj <= ADJ_NEVER and not self._is_spelt_out(group):
            return f"oom_score_adj {adj}: the kernel never kills it either"
        if matches(self.unprotect, group):
            return ""
        if group.protected_by and not is_claimed(group.protected_by):
            return f"protected: {group.protected_by}"
        if adj is not None and (
            adj < ADJ_PROTECTED or (adj == ADJ_PROTECTED and not _is_pod_or_guaranteed(group))
        ):
            return f"protected: oom_score_adj {adj}"
        return ""

    def claim(self, group: Group) -> str:
        """Why ``group`` goes only if it is proved, in words; empty: nothing is claimed for it, or
        its owner does not care (``unprotect``).
        """
        if matches(self.unprotect, group):
            return ""
        if is_claimed(group.protected_by):
            return group.protected_by
        if group.adj == ADJ_PROTECTED and group.pod and group.class_rank != GUARANTEED:
            return claimed_role("priority class", f"oom_score_adj {group.adj}")
        return ""

    def bar(self, group: Group) -> str:
        """Why ``group`` is not acted on without proof; empty: it may be."""
        return self.reason(group) or self.claim(group)

    def _is_spelt_out(self, group: Group) -> bool:
        """It or its pod, whole and by name: neither a namespace nor a slice."""
        pod = group.name.rpartition("/")[0] if group.name.count("/") > 1 else group.name
        names = {group.name, pod, group.path}
        if group.pod:
            names.add(group.path.rpartition("/")[0])
        return any(word in names and "*" not in word for word in self.unprotect)

    def is_in_scope(self, path: str) -> bool:
        """Inside one of the subtrees of the settings; ``/`` is all."""
        return any(is_within(path, root) for root in self.scope)


def _is_pod_or_guaranteed(group: Group) -> bool:
    """Of the kubelet's, by its cgroup."""
    return bool(group.pod) or group.class_rank == GUARANTEED


def is_within(path: str, root: str) -> bool:
    """``path`` is ``root`` or below it; neither ends with a slash, ``""`` is the root of all."""
    if not path:
        return False
    return not root or path == root or (path.startswith(root) and path[len(root)] == "/")


def matches(words: Sequence[str], group: Group) -> bool:
    """Its name or its path is one of ``words``."""
    return any(is_meant(word, group.name) or is_meant(word, group.path) for word in words)


def is_meant(word: str, text: str) -> bool:
    """``*`` in ``word`` stands for any characters, slashes too.  Without one what lies below is
    meant too: ``shop/web`` is the pod, so its containers.
    """
    first, *others = word.split("*")
    if not others:
        below = word.rstrip("/")
        return text == below or text.startswith(f"{below}/")
    last = others.pop()
    at, end = len(first), len(text) - len(last)
    if end < at or not text.startswith(first) or not text.endswith(last):
        return False
    for part in others:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True
