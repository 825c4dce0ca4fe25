"""What a service account of ours may do, as the API server says, and what whoever has its token is
refused.
"""

import pytest
from tests.cluster import account_rights
from tests.cluster.account_rights import Right
from tests.cluster.api_client import MERGE, ApiClient, ApiError, Object
from tests.cluster.installed_seawall import APPLY, InstalledSeawall
from tests.cluster.rendered_manifests import NAMESPACE

NEVER = [
    ("get", "", "secrets"), ("list", "", "secrets"), ("create", "", "pods/exec"),
    ("get", "", "nodes/proxy"), ("create", "", "serviceaccounts/token"),
    ("impersonate", "", "users"), ("impersonate", "", "serviceaccounts"),
    ("bind", "rbac.authorization.k8s.io", "clusterroles"),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
    ("create", "", "pods"), ("deletecollection", "", "pods"),
    ("patch", "", "pods/ephemeralcontainers"), ("create", "", "pods/eviction"),
    ("delete", "", "nodes"), ("patch", "apps", "deployments"),
    ("update", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("delete", "admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("approve", "seawall.internal", "workloadquarantines"),
    ("update", "seawall.internal", "seawallpolicies"),
    ("create", "seawall.internal", "rescueorders"), ("update", "seawall.internal", "rescueorders"),
    ("patch", "seawall.internal", "rescueorders"), ("delete", "seawall.internal", "rescueorders"),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions"),
]  # fmt: skip
NEVER_WITHOUT_ACTOR = [("delete", "", "pods"), ("patch", "", "pods"), ("patch", "", "nodes"),
                       ("patch", "batch", "jobs")]  # fmt: skip


def refused(client: ApiClient, verb: str, path: str, body: Object | None, kind: str = MERGE) -> str:
    """By a policy or by rights; the server's words."""
    query = {"fieldManager": "thief", "force": "true"} if kind == APPLY else {}
    kind = kind if verb == "PATCH" else "application/json"
    with pytest.raises(ApiError) as answer:
        client.request(verb, path, body, kind=kind, **query)
    assert answer.value.status == 403, answer.value
    return str(answer.value)


def rights_of_accounts(seawall: InstalledSeawall, *accounts: str) -> set[Right]:
    """All that each may do beyond what every account may."""
    common = rights_of(seawall, "default", NAMESPACE)
    found: set[Right] = set()
    for account in accounts:
        everywhere = rights_of(seawall, account, "kube-system") - common
        found |= named(account, "everywhere", everywhere)
        for space, where in (("default", "default"), (NAMESPACE, "its own")):
            found |= named(account, where, rights_of(seawall, account, space) - everywhere - common)
    return found


def named(account: str, where: str, rights: set[Right]) -> set[Right]:
    return {one._replace(account=account, where=where) for one in rights}


def rights_of(seawall: InstalledSeawall, account: str, space: str) -> set[Right]:
    """By the account's own question to the server."""
    with seawall.account(account) as client:
        answer = client.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": space},
        })["status"]  # fmt: skip
    return account_rights.of_rules("", "", answer["resourceRules"])


def may(admin: ApiClient, account: str, verb: str, group: str, resource: str, space: str) -> bool:
    whole, _, part = resource.partition("/")
    user = f"system:serviceaccount:{NAMESPACE}:{account}"
    what = {"verb": verb, "group": group, "resource": whole, "subresource": part,
            "namespace": space}  # fmt: skip
    answer = admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:serviceaccounts", "system:authenticated"],
                 "resourceAttributes": what},
    })  # fmt: skip
    return bool(answer["status"]["allowed"])
