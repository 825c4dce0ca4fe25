# SPDX-License-Identifier: Apache-2.0
"""Whose a pod is in the end: up the chain of controllers, by metadata alone.

ReplicaSet to Deployment, Job to CronJob, JobSet, Workflow or PyTorchJob: of no kind but the core's
own is anything known beforehand, the API server is asked what it calls them.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from seawall.cluster.kube.kube_client import METADATA_ONLY, KubeProblem, KubeRefusal, KubeRequests
from seawall.cluster.observer.pod_rows import NodePod, OwnerReference, owner_of
from seawall.cluster.observer.request_budget import NoRequestLeft, RequestBudget

CHAINS_MOST: Final = 15
STEPS_MOST: Final = 6
KEEP_SECONDS: Final = 600.0
KINDS_KEEP_SECONDS: Final = 3600.0
_ENTRIES_MOST: Final = 4096
_PLURALS: Final = {
    ("apps/v1", "ReplicaSet"): "replicasets", ("apps/v1", "Deployment"): "deployments",
    ("apps/v1", "StatefulSet"): "statefulsets", ("apps/v1", "DaemonSet"): "daemonsets",
    ("batch/v1", "Job"): "jobs", ("batch/v1", "CronJob"): "cronjobs",
    ("v1", "ReplicationController"): "replicationcontrollers", ("v1", "Pod"): "pods",
}  # fmt: skip
_TOPMOST: Final = frozenset({("apps/v1", "DaemonSet"), ("batch/v1", "CronJob")})
"""What stands above these is an operator or nothing: no request is spent on it."""

_COUNTERS: Final = (
    "replicas", "parallelism", "active", "desiredNumberScheduled", "currentNumberScheduled",
)  # fmt: skip


class RootOwner(NamedTuple):
    """The top of a chain, as far as it could be seen."""

    kind: str
    name: str
    uid: str
    api_version: str = ""


class _Kept(NamedTuple):
    """An answer and until when it holds."""

    until_seconds: float
    above: OwnerReference | None
    unseen: str


class RootOwners:
    """Asks and remembers: owners for ten minutes, names of kinds for an hour."""

    def __init__(self, client: KubeRequests, steady_seconds: Callable[[], float]) -> None:
        self._client = client
        self._steady_seconds = steady_seconds
        self._above: dict[str, _Kept] = {}
        self._kinds: dict[str, tuple[float, dict[str, str]]] = {}

    def roots_of(
        self, pods: Iterable[NodePod], budget: RequestBudget, unseen: list[str]
    ) -> dict[str, RootOwner]:
        """Root by uid of the pod; what could not be seen is added to ``unseen``."""
        chains: dict[str, RootOwner] = {}
        roots: dict[str, RootOwner] = {}
        left_out = 0
        for pod in pods:
            if pod.owner is None:
                roots[pod.uid] = RootOwner("Pod", pod.name, pod.uid, "v1")
                continue
            uid = pod.owner.uid
            if uid not in chains:
                is_asked = len(chains) < CHAINS_MOST
                left_out += not is_asked
                chains[uid] = self._root(pod.namespace, pod.owner, budget, unseen, is_asked)
            roots[pod.uid] = chains[uid]
        if left_out:
            unseen.append(
                f"owners above {left_out} of {len(chains)} controllers: {CHAINS_MOST} are asked for"
            )
        return roots

    def counter_of(self, namespace: str, root: RootOwner, budget: RequestBudget) -> int | None:
        """How many pods it says it has, an upper bound of the nodes that run it; None: it has no
        such counter.  NoRequestLeft, KubeProblem.
        """
        owner = OwnerReference(root.api_version, root.kind, root.name, root.uid)
        path = self._path(namespace, owner, budget)
        if path is None:
            return None
        budget.take()
        answer = self._client.get(path)
        levels = [answer.get("spec"), answer.get("status")]
        counters = [
            level.get(name) for level in levels if isinstance(level, dict) for name in _COUNTERS
        ]
        return max((one for one in counters if isinstance(one, int)), default=None)

    def _root(
        self, namespace: str, owner: OwnerReference, budget: RequestBudget, unseen: list[str],
        is_asked: bool,  # noqa: FBT001 - a number of the caller's
    ) -> RootOwner:  # fmt: skip
        known = {owner.uid}
        for _ in range(STEPS_MOST if is_asked else 0):
            if (owner.api_version, owner.kind) in _TOPMOST:
                break
            try:
                kept = self._one_above(namespace, owner, budget)
            except NoRequestLeft:
                unseen.append(f"owner of {owner.kind} {namespace}/{owner.name}: no request is left")
                break
            if kept.unseen:
                unseen.append(kept.unseen)
            if kept.above is None or kept.above.uid in known:
                break
            owner = kept.above
            known.add(owner.uid)
        return RootOwner(owner.kind, owner.name, owner.uid, owner.api_version)

    def _one_above(self, namespace: str, owner: OwnerReference, budget: RequestBudget) -> _Kept:
        now = self._steady_seconds()
        kept = self._above.get(owner.uid)
        if kept is not None and kept.until_seconds > now:
            return kept
        above, unseen = None, ""
        what = f"{owner.kind} {namespace}/{owner.name}"
        try:
            path = self._path(namespace, owner, budget)
            if path is None:
                unseen = f"owner of {what}: the API server has no such kind"
            else:
                budget.take()
                answer = self._client.get(path, accept=METADATA_ONLY)
                metadata = answer.get("metadata") or {}
                above = owner_of(metadata.get("ownerReferences"))
                if metadata.get("uid") != owner.uid:
                    above, unseen = None, f"owner of {what}: it is another one by now"
        except KubeRefusal as problem:
            unseen = f"owner of {what}: {problem.status} {problem.reason}"
        except KubeProblem as problem:  # the next death asks again
            return _Kept(now, None, f"owner of {what}: {problem}")
        kept = _Kept(now + KEEP_SECONDS, above, unseen)
        if len(self._above) >= _ENTRIES_MOST:
            self._above.clear()
        self._above[owner.uid] = kept
        return kept

    def _path(self, namespace: str, owner: OwnerReference, budget: RequestBudget) -> str | None:
        """Of an owner, which is in its pod's namespace or in none."""
        version = owner.api_version
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural = _PLURALS.get((version, owner.kind))
        is_namespaced = True
        if plural is None:
            found = self._kinds_of(version, base, budget).get(owner.kind)
            if found is None:
                return None
            is_namespaced, plural = found[0] == "n", found[1:]
        middle = f"/namespaces/{namespace}" if is_namespaced else ""
        return f"{base}{middle}/{plural}/{owner.name}"

    def _kinds_of(self, version: str, base: str, budget: RequestBudget) -> dict[str, str]:
        """By kind: ``n`` (of a namespace) or ``c``, and the name in paths."""
        now = self._steady_seconds()
        until, kinds = self._kinds.get(version, (0.0, {}))
        if until > now:
            return kinds
        budget.take()
        answer = self._client.get(base)
        kinds = {
            str(one["kind"]): ("n" if one.get("namespaced") else "c") + str(one["name"])
            for one in answer.get("resources") or ()
            if "/" not in str(one.get("name", "/")) and one.get("kind")
        }
        if len(self._kinds) >= _ENTRIES_MOST:
            self._kinds.clear()
        self._kinds[version] = (now + KINDS_KEEP_SECONDS, kinds)
        return kinds
