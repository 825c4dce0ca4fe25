"""What each account of ours may do, as docs/permissions.md has it: one table, held to the manifests
and to what an API server answers.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[2] / "docs/permissions.md"
ACTOR_HEADING = "### The actor"
_ROW = re.compile(r"^\| `(seawall-\w+)` \| (everywhere|default|its own) \| (.+?) \| (.+?) \|")
_WORD = re.compile(r"`([^`]+)`")


class Right(NamedTuple):
    """One verb on one kind of things."""

    account: str
    where: str
    """``everywhere``, ``default`` or ``its own`` (namespace)."""
    verb: str
    resource: str
    """``nodes/status``, ``leases.coordination.k8s.io``, with ``=NAME`` where it is one object."""


def told(*, with_actor: bool = False) -> set[Right]:
    """By the page; what the actor's install adds stands under a heading of its own."""
    found = set()
    text = PAGE.read_text()
    before, mark, _ = text.partition(ACTOR_HEADING)
    assert mark, f"{PAGE.name} has no {ACTOR_HEADING}"
    for line in (text if with_actor else before).splitlines():
        if row := _ROW.match(line):
            account, where, verbs, resources = row.groups()
            found |= {
                Right(account, where, verb, resource)
                for verb in _WORD.findall(verbs)
                for resource in _WORD.findall(resources)
            }
    return found


def of_rules(account: str, where: str, rules: Iterable[dict[str, Any]]) -> set[Right]:
    """Of a role's rules, or of a SelfSubjectRulesReview's."""
    return {
        Right(account, where, verb, named(resource, group, name))
        for rule in rules
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", [])
        for resource in rule.get("resources", [])
        for name in rule.get("resourceNames") or [""]
    }


def named(resource: str, group: str, name: str) -> str:
    kind, slash, part = resource.partition("/")
    whole = f"{kind}.{group}{slash}{part}" if group else resource
    return f"{whole}={name}" if name else whole


def of_manifests(documents: list[dict[str, Any]], namespace: str) -> set[Right]:
    """Of all roles that are bound to an account."""
    roles = {(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")): one
             for one in documents if one["kind"] in {"Role", "ClusterRole"}}  # fmt: skip
    found = set()
    for binding in documents:
        if binding["kind"] in {"RoleBinding", "ClusterRoleBinding"}:
            space = binding["metadata"].get("namespace")
            kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
            role = roles[kind, name, space if kind == "Role" else None]
            where = {None: "everywhere", "default": "default", namespace: "its own"}[space]
            for subject in binding["subjects"]:
                assert (subject["kind"], subject["namespace"]) == ("ServiceAccount", namespace)
                found |= of_rules(subject["name"], where, role["rules"])
    return found
