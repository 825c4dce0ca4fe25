"""The agent's account in a namespace of a test, with the rights of the plain manifests, and tokens
that are bound to a pod of one node.
"""

import copy

from tests.cluster import custom_resources
from tests.cluster.api_client import ApiClient, Object
from tests.cluster.rendered_manifests import documents
from tests.cluster.workloads import pod_spec

from seawall.cluster.objects.api_group import AGENT_ACCOUNT, NODE_REPORT, path_of

REPORTS = path_of(NODE_REPORT)
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def install(client: ApiClient, space: str) -> None:
    """The kinds, if nobody has made them, the account and its rights; without the fences, which
    name the chart's namespace: ``test_account_rights`` has an agent behind them.
    """
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": AGENT_ACCOUNT}}
    client.create(f"/api/v1/namespaces/{space}/serviceaccounts", account)
    for right in rights(space):
        own = right["metadata"].get("namespace")
        where = f"/namespaces/{own}" if own else ""
        client.create(f"{RBAC}{where}/{right['kind'].lower()}s", right)
    custom_resources.install(client)


def rights(space: str) -> list[Object]:
    """Roles and bindings of the manifests, under a name of that namespace and for its account."""
    found = []
    for document in documents():
        is_right = document["kind"].removeprefix("Cluster") in {"Role", "RoleBinding"}
        if not is_right or document["metadata"]["name"] != AGENT_ACCOUNT:
            continue
        right = copy.deepcopy(document)
        right["metadata"]["name"] = f"agent-{space}"
        if "roleRef" in right:
            right["roleRef"]["name"] = f"agent-{space}"
            for subject in right["subjects"]:
                subject["namespace"] = space
        found.append(right)
    assert sorted(one["kind"] for one in found) == [
        "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
    ], "the manifests give the agent rights under another name"  # fmt: skip
    return found


def token_of(client: ApiClient, space: str, node: str) -> str:
    pods = f"/api/v1/namespaces/{space}/pods"
    # Without the toleration the pod is evicted from a silent node, and its token ends with it.
    spec = {
        **pod_spec("registry.test/agent:1"), "nodeName": node,
        "serviceAccountName": AGENT_ACCOUNT, "tolerations": [{"operator": "Exists"}],
    }  # fmt: skip
    pod = client.create(pods, {"apiVersion": "v1", "kind": "Pod",
                               "metadata": {"name": f"agent-{node}"}, "spec": spec})  # fmt: skip
    meta = pod["metadata"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}
    made = client.create(f"/api/v1/namespaces/{space}/serviceaccounts/{AGENT_ACCOUNT}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"boundObjectRef": bound, "expirationSeconds": 3600}})  # fmt: skip
    return str(made["status"]["token"])
