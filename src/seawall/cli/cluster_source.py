# SPDX-License-Identifier: Apache-2.0
"""Where the verbs of ``seawall cluster`` read: a dump."""

import json
from argparse import Namespace
from typing import Any, Final

from seawall.cli.verb import Head, Shown, Verb
from seawall.cluster.objects.api_group import CUSTOM_KINDS
from seawall.cluster.pages.cluster_reading import (
    LEASE,
    ClusterReading,
    cluster_reading,
)
from seawall.findings.blindness import NotSeen
from seawall.host.input_file import open_input
from seawall.problems import UsageProblem

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
        return read_dump(arguments.dump)
    raise UsageProblem(f"give a dump: {_DUMP} > FILE, and --from FILE")


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


def _short(words: object) -> str:
    return " ".join(str(words).split())[:_MESSAGE_MOST]
