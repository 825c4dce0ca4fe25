# SPDX-License-Identifier: Apache-2.0
"""What ran on a node that died: its pods, whose they are, and on how many nodes that runs.

All is asked after the death, in at most 45 requests; nothing is watched.  What could not be seen
is said, and a workload whose spread is not known counts for nothing: too few nodes would accuse it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from seawall.cluster.judge.node_death import BoundWorkload, NodeLoads, WorkloadKey
from seawall.cluster.judge.workload_keys import keys_of, stable_name
from seawall.cluster.kube.kube_client import JSON, KubeProblem, KubeRequests, Query
from seawall.cluster.objects.node_death_object import WORKLOADS_MOST, DeathWorkload
from seawall.cluster.observer.pod_rows import NodePod, PodPage, pod_page
from seawall.cluster.observer.request_budget import NoRequestLeft, RequestBudget
from seawall.cluster.observer.root_owners import RootOwner, RootOwners
from seawall.cluster.observer.stratum_loads import StratumLoads, tenant_pods

REQUESTS_MOST: Final = 45
NODE_PAGES_MOST: Final = 2
NAMESPACE_PAGES_MOST: Final = 10
NAMESPACES_MOST: Final = 15
PAGE_PODS: Final = 500
KEEP_SECONDS: Final = 60.0
COMMON_SHARE: Final = 0.30
COMMON_WORKLOADS: Final = 3
"""An image that so many workloads carry, and 30 % of the pods that were seen, is a sidecar."""
NAME_LEVELS: Final = 2
"""Keys of this level and below are the owner's, whose counter speaks for them."""
_PODS: Final = "/api/v1/pods"
_ENDED: Final = ("Succeeded", "Failed")


class PodRequests(KubeRequests, Protocol):
    """What is asked of the API; ``KubeClient`` is it."""

    def raw(self, path: str, query: Query | None = None, *, accept: str = JSON) -> bytes:
        """An answer's bytes."""


@dataclass(frozen=True, slots=True)
class DeadNodeLook:
    """What was seen of one dead node."""

    workloads: tuple[DeathWorkload, ...]
    pods: Mapping[str, NodePod]
    """By uid: what a policy of admission can compare stands there."""
    loads: NodeLoads | None
    """None: it could not be seen."""
    unseen: tuple[str, ...]
    requests: int


class _NamespacePods:
    """The pods of one namespace that live, each with its family of direct owner."""

    __slots__ = ("is_whole", "pods", "until_seconds")

    def __init__(self, pods: tuple[NodePod, ...], until_seconds: float, *, is_whole: bool) -> None:
        self.pods = pods
        self.until_seconds = until_seconds
        self.is_whole = is_whole


class DeadNodeWorkloads:
    """Looks into one death after the other; lists of namespaces hold for a minute."""

    def __init__(self, client: PodRequests, steady_seconds: Callable[[], float]) -> None:
        self._client = client
        self._steady_seconds = steady_seconds
        self._owners = RootOwners(client, steady_seconds)
        self._namespaces: dict[str, _NamespacePods] = {}
        self._loads = StratumLoads(steady_seconds)

    def look(
        self, node: str, dead_nodes: Collection[str], protected_namespaces: Collection[str] = (),
        living: Collection[str] = (),
    ) -> DeadNodeLook:  # fmt: skip
        """What is asked after one death.

        dead_nodes:  their pods run nowhere, and count for no spread
        living:      nodes of its stratum; some are asked how busy they are
        """
        budget = RequestBudget(REQUESTS_MOST)
        unseen: list[str] = []
        try:
            pods = self._pods_of(node, budget, unseen)
        except (KubeProblem, ValueError) as problem:
            unseen.append(f"pods of node {node}: {problem}")
            return DeadNodeLook((), {}, None, tuple(unseen), budget.used)
        tenants = [pod for pod in pods if not pod.is_static]
        # Those that may be suspects first: the requests may not be enough for all.
        tenants.sort(key=lambda pod: (pod.namespace in protected_namespaces, pod.uid))
        roots = self._owners.roots_of(tenants, budget, unseen)
        lists = self._lists(tenants, budget, unseen, protected_namespaces)
        common = _common_digests([pods, *(one.pods for one in lists.values())])
        rows = [_with_root(pod, roots.get(pod.uid)) for pod in pods]
        keys = {pod.uid: keys_of(pod.identity, common) for pod in rows if not pod.is_static}
        spread = _Spread(node, frozenset(dead_nodes) - {node}, common)
        for pod in rows:
            if not pod.is_static:
                spread.want(pod, keys[pod.uid])
        for listed in lists.values():
            spread.count(listed.pods)
        whole = {name for name, listed in lists.items() if listed.is_whole}
        partial = [pod for pod in rows if pod.namespace in lists.keys() - whole]
        counters = self._counters(partial, roots, budget, unseen)
        workloads = []
        for pod in rows[:WORKLOADS_MOST]:
            root = roots.get(pod.uid)
            counted = keys.get(pod.uid, ())
            least = 0
            if pod.namespace not in whole:
                least = counters.get(root.uid, 0) if root else 0
                counted = tuple(key for key in counted if least and key.level <= NAME_LEVELS)
            workloads.append(_workload(pod, root, counted, spread, least))
        if len(rows) > WORKLOADS_MOST:
            unseen.append(f"{len(rows) - WORKLOADS_MOST} of {len(rows)} pods")
        alive = frozenset(living) - frozenset(dead_nodes) - {node}
        loads = None
        if alive:
            loads = self._loads.loads(
                node, tenant_pods(pods), alive, lambda one: self._living_pods(one, budget), unseen
            )
        if budget.used > REQUESTS_MOST:
            raise AssertionError(f"{budget.used} requests for one death")
        by_uid = {pod.uid: pod for pod in rows}
        words = tuple(dict.fromkeys(unseen))
        return DeadNodeLook(tuple(workloads), by_uid, loads, words, budget.used)

    def _pods_of(self, node: str, budget: RequestBudget, unseen: list[str]) -> list[NodePod]:
        """That ran when it died: what had ended before took no part, unless it was evicted."""
        pods: list[NodePod] = []
        position = ""
        for _ in range(NODE_PAGES_MOST):
            page = self._page(_PODS, budget, position, fieldSelector=f"spec.nodeName={node}")
            pods += (
                pod
                for pod in page.pods
                if pod.phase not in _ENDED or (pod.phase == "Failed" and pod.is_disrupted)
            )
            position = page.position
            if not position:
                return pods
        unseen.append(f"pods of node {node} beyond {NODE_PAGES_MOST * PAGE_PODS}")
        return pods

    def _living_pods(self, node: str, budget: RequestBudget) -> list[NodePod]:
        page = self._page(_PODS, budget, "", fieldSelector=f"spec.nodeName={node}")
        return [pod for pod in page.pods if pod.phase not in _ENDED and not pod.is_ending]

    def _lists(
        self, tenants: Iterable[NodePod], budget: RequestBudget, unseen: list[str],
        protected: Collection[str],
    ) -> dict[str, _NamespacePods]:  # fmt: skip
        """Of protected namespaces none: nothing there can count."""
        names = [
            name
            for name in dict.fromkeys(pod.namespace for pod in tenants)
            if name not in protected
        ]
        if len(names) > NAMESPACES_MOST:
            unseen.append(f"{len(names) - NAMESPACES_MOST} of {len(names)} namespaces")
        lists: dict[str, _NamespacePods] = {}
        for number, name in enumerate(names[:NAMESPACES_MOST]):
            others = min(len(names), NAMESPACES_MOST) - number - 1
            try:
                lists[name] = self._namespace(name, budget, budget.left - others)
            except NoRequestLeft:
                unseen.append(f"namespace {name}: no request is left")
            except (KubeProblem, ValueError) as problem:
                unseen.append(f"namespace {name}: {problem}")
        return lists

    def _namespace(self, name: str, budget: RequestBudget, pages_most: int) -> _NamespacePods:
        now = self._steady_seconds()
        kept = self._namespaces.get(name)
        if kept is not None and kept.until_seconds > now:
            return kept
        self._namespaces = {
            other: one for other, one in self._namespaces.items() if one.until_seconds > now
        }
        pods: list[NodePod] = []
        position = ""
        for _ in range(min(NAMESPACE_PAGES_MOST, max(pages_most, 1))):
            page = self._page(f"/api/v1/namespaces/{name}/pods", budget, position)
            pods += (pod for pod in page.pods if pod.node and pod.phase not in _ENDED)
            position = page.position
            if not position:
                break
        found = _NamespacePods(tuple(pods), now + KEEP_SECONDS, is_whole=not position)
        self._namespaces[name] = found
        return found

    def _counters(
        self, pods: Iterable[NodePod], roots: Mapping[str, RootOwner], budget: RequestBudget,
        unseen: list[str],
    ) -> dict[str, int]:  # fmt: skip
        """Of namespaces that are too large to list, by uid of the root owner."""
        counters: dict[str, int] = {}
        tried: set[str] = set()
        for pod in pods:
            root = roots.get(pod.uid)
            if root is None or root.uid in tried:
                continue
            tried.add(root.uid)
            what = f"on how many nodes {root.kind} {pod.namespace}/{root.name} runs"
            try:
                counter = self._owners.counter_of(pod.namespace, root, budget)
            except NoRequestLeft:
                unseen.append(f"{what}: no request is left")
            except KubeProblem as problem:
                unseen.append(f"{what}: {problem}")
            else:
                if counter is None:
                    unseen.append(f"{what}: it has no counter, its namespace too many pods")
                else:
                    counters[root.uid] = max(counter, 1)
        return counters

    def _page(self, path: str, budget: RequestBudget, position: str, **query: str) -> PodPage:
        budget.take()
        more = {"continue": position} if position else {}
        return pod_page(self._client.raw(path, {"limit": PAGE_PODS, **query, **more}))


class _Spread:
    """On how many nodes each key runs."""

    def __init__(self, node: str, dead: frozenset[str], common: frozenset[str]) -> None:
        self._node, self._dead, self._common = node, dead, common
        self._nodes: dict[WorkloadKey, set[str]] = {}
        self._families: dict[tuple[str, str, str], set[WorkloadKey]] = {}

    def want(self, pod: NodePod, keys: Iterable[WorkloadKey]) -> None:
        """These are to be counted; a pod is of a key of names when its direct owner is such a one.

        A Job of tomorrow has another name and hash, and the same CronJob above it.
        """
        for key in keys:
            self._nodes.setdefault(key, {self._node})
            if key.level <= NAME_LEVELS:
                self._families.setdefault(_family(pod), set()).add(key)

    def count(self, pods: Iterable[NodePod]) -> None:
        """All of one namespace."""
        for pod in pods:
            if pod.is_ending or pod.is_static or pod.node in self._dead:
                continue
            for key in self._families.get(_family(pod), ()):
                self._nodes[key].add(pod.node)
            for key in keys_of(pod.identity, self._common):
                if key in self._nodes:
                    self._nodes[key].add(pod.node)

    def nodes(self, key: WorkloadKey) -> int:
        return len(self._nodes[key])


def _family(pod: NodePod) -> tuple[str, str, str]:
    owner = pod.owner
    if owner is None:
        return pod.namespace, "Pod", stable_name(pod.name)
    return pod.namespace, owner.kind, stable_name(owner.name)


def _with_root(pod: NodePod, root: RootOwner | None) -> NodePod:
    if root is None:
        return pod
    identity = replace(pod.identity, root_owner_uid=root.uid, root_owner_name=root.name)
    return replace(pod, identity=identity)


def _workload(
    pod: NodePod,
    root: RootOwner | None,
    keys: tuple[WorkloadKey, ...],
    spread: _Spread,
    least: int,
) -> DeathWorkload:
    """``keys``: those whose spread is known; ``least``: what the owner's counter says."""
    nodes = tuple(max(spread.nodes(key), least) for key in keys)
    bound = BoundWorkload(pod.uid, keys, nodes, pod.namespace, pod.is_static)
    if root is None:
        return DeathWorkload(bound, pod.name)
    return DeathWorkload(bound, pod.name, root.kind, root.name, root.uid)


def _common_digests(groups: Iterable[Iterable[NodePod]]) -> frozenset[str]:
    """Of sidecars, by all pods that were seen at this death."""
    workloads: dict[str, set[tuple[str, str, str]]] = {}
    carriers: dict[str, int] = {}
    seen: set[str] = set()
    for pod in (pod for group in groups for pod in group):
        if pod.uid in seen or pod.is_static:
            continue
        seen.add(pod.uid)
        for digest in set(pod.identity.image_digests):
            workloads.setdefault(digest, set()).add(_family(pod))
            carriers[digest] = carriers.get(digest, 0) + 1
    return frozenset(
        digest
        for digest, families in workloads.items()
        if len(families) >= COMMON_WORKLOADS and carriers[digest] >= COMMON_SHARE * len(seen)
    )
