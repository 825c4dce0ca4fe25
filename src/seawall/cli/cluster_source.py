# SPDX-License-Identifier: Apache-2.0
"""Where the verbs of ``seawall cluster`` read: a cluster by its kubeconfig, or a dump of it."""

import json
import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from seawall.cli.verb import Head, Shown, Verb
from seawall.cluster.objects.api_group import (
    API_VERSION,
    CUSTOM_KINDS,
    NODE_DEATH,
    RESCUE_ORDER,
    path_of,
)
from seawall.cluster.pages.cluster_reading import (
    ACTOR_LEASE,
    LEASE,
    OBSERVER_LEASE,
    ClusterReading,
    cluster_reading,
)
from seawall.findings.blindness import NotSeen
from seawall.host.input_file import open_input
from seawall.problems import UsageProblem

if TYPE_CHECKING:
    from seawall.cluster.kube.kube_client import ClusterAccess

BYTES_MOST: Final = 256 << 20
_DUMP: Final = "kubectl get nd,wq,seawallpolicies,nodereports,leases -A -o json"
_MESSAGE_MOST: Final = 200


class ClusterVerb(Verb[Shown]):
    """A verb that reads the cluster's objects; its text says by itself where it read."""

    is_framed = False

    def reading(self) -> ClusterReading:
        """UsageProblem: nothing can be read there."""
        return read_cluster(self.arguments)

    def head(self, _page: Shown) -> Head:
        return {}

    def document(self, _top: Head, page: Shown) -> Head:
        """It is of no host."""
        from importlib import import_module  # noqa: PLC0415 - JSON alone

        module, _, name = self.document_table.partition(":")
        whole: Head = getattr(import_module(module), name).alone(page)
        return whole


def read_cluster(arguments: Namespace) -> ClusterReading:
    """From ``--from FILE`` or the cluster that the kubeconfig names; UsageProblem."""
    if arguments.dump is not None:
        if arguments.context is not None:
            raise UsageProblem("--context is of a kubeconfig; leave it out with --from")
        return read_dump(arguments.dump)
    try:
        return _read_api(arguments)
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] == "seawall":
            raise
        raise UsageProblem(
            f"no Python module {problem.name}: a cluster is asked with the extra: pip install "
            f"'seawall[cluster]'; without: {_DUMP} > FILE, and --from FILE"
        ) from None


# --- a file ------------------------------------------------------------------------------


def read_dump(path: str) -> ClusterReading:
    """A List of the API's, one object, or several of these one behind the other."""
    value = read_json(path, f"a List: {_DUMP}")
    objects = _objects_of(value)
    kinds = {one.get("kind") for one in objects if isinstance(one, dict)}
    ours = {kind.kind for kind in CUSTOM_KINDS}
    if objects and not kinds & ours:
        names = ", ".join(sorted(str(kind)[:40] for kind in kinds)[:3])
        raise UsageProblem(f"{path}: expected NodeDeath and its like, found {names}: {_DUMP}")
    missing = {}
    if LEASE not in kinds:
        words = "the file holds no Lease of the observer"
        missing[LEASE] = NotSeen("whether anybody watches", words, _DUMP)
    return cluster_reading(objects, path, None, missing)


def read_json(path: str, wanted: str) -> Any:
    """UsageProblem: what was expected, and where."""
    try:
        with open_input(path, wanted) as file:
            data = file.read(BYTES_MOST + 1)
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror or error}; expected {wanted}") from error
    if len(data) > BYTES_MOST:
        raise UsageProblem(f"{path}: more than {BYTES_MOST >> 20} MiB")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"{path}: no JSON ({_short(error)}); expected {wanted}") from error


def _objects_of(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return [value]
    items = value.get("items")
    if not isinstance(items, list):
        return [value] if "kind" in value else []
    kind = value.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and kind != "List":
        items = [_with_kind(one, kind.removesuffix("List")) for one in items]
    return items


def _with_kind(one: Any, kind: str) -> Any:
    """In a list of one kind the API's own items do not say theirs."""
    return {"kind": kind, **one} if isinstance(one, dict) else one


# --- a cluster ----------------------------------------------------------------------------


def _read_api(arguments: Namespace) -> ClusterReading:
    """The kinds of ours and the leases of observer and actor."""
    from seawall.cluster.kube.kube_client import (  # noqa: PLC0415 - an extra
        KubeClient,
        KubeProblem,
        KubeRefusal,
        server_version,
    )

    access = cluster_access(arguments)
    where = arguments.context or access.server
    objects: list[Any] = []
    missing: dict[str, NotSeen] = {}
    try:
        client = KubeClient(access, user_agent="seawall")
        client.get(path_of(NODE_DEATH), {"limit": 1}, seconds=arguments.seconds)
        for kind, plural, path, query in _LISTS:
            try:
                items = client.items(path, query)
            except KubeRefusal as refusal:
                missing[kind] = NotSeen(plural, _short(refusal), f"get and list {plural}")
            else:
                objects += [_with_kind(one, kind) for one in items]
        now = client.server_seconds()
        version = server_version(client)
    except KubeRefusal as refusal:
        raise UsageProblem(_refusal_words(where, refusal.status, refusal)) from None
    except KubeProblem as problem:
        raise UsageProblem(f"{where}: {_short(problem)}") from None
    return cluster_reading(objects, where, now, missing, version)


_LISTS: Final = (
    *((one.kind, one.plural, path_of(one), None) for one in CUSTOM_KINDS if one != RESCUE_ORDER),
    (LEASE, "leases", "/apis/coordination.k8s.io/v1/leases",
     {"fieldSelector": f"metadata.name={OBSERVER_LEASE}"}),
    (LEASE, "leases", "/apis/coordination.k8s.io/v1/leases",
     {"fieldSelector": f"metadata.name={ACTOR_LEASE}"}),
)  # fmt: skip
"""Kind, plural, path and query."""


def cluster_access(arguments: Namespace) -> "ClusterAccess":
    """As kubectl finds it: what is named, else $KUBECONFIG, ~/.kube/config, the pod's account."""
    import ssl  # noqa: PLC0415, F401 - what the self-contained file lacks is said at once

    from seawall.cluster.kube.kube_client import ClusterAccess, KubeProblem  # noqa: PLC0415
    from seawall.cluster.kube.kubeconfig_access import kubeconfig_access  # noqa: PLC0415 - an extra

    names = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    usual = next(filter(None, names), os.path.expanduser("~/.kube/config"))
    path = arguments.kubeconfig or usual
    if arguments.kubeconfig is None and arguments.context is None and not os.path.exists(path):
        try:
            return ClusterAccess.in_cluster()
        except KubeProblem:
            raise UsageProblem(
                f"{path} is not there: give --kubeconfig FILE, or a dump with --from FILE"
            ) from None
    return kubeconfig_access(path, arguments.context)


def _refusal_words(where: str, status: int, refusal: Exception) -> str:
    if status == 404:
        return f"{where} has no {API_VERSION}: Seawall is not installed there (docs/cluster.md)"
    if status in (401, 403):
        return f"{where}: you may not list {NODE_DEATH.plural}: {_short(refusal)}"
    return f"{where}: {_short(refusal)}"


def _short(words: object) -> str:
    return " ".join(str(words).split())[:_MESSAGE_MOST]
