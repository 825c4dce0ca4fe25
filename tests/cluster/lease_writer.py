"""A leader that writes as fast as it can while it leads, for tests that kill and stop it.

``python -m tests.cluster.lease_writer SERVER CA TOKEN IDENTITY``: writes the ConfigMap ``IDENTITY``
in ``default``, and a line on stdout when it begins to lead and when it was not let write.
"""

import sys
import threading
import time

from seawall.cluster.kube.kube_client import (
    ClusterAccess,
    KubeClient,
    KubeProblem,
    LostLeadership,
)
from seawall.cluster.kube.leader_lease import LeaderLease

PATH = "/api/v1/namespaces/default/configmaps"


def main(server: str, ca_file: str, token: str, identity: str) -> None:
    access = ClusterAccess(server, ca_file, token=token)
    lease = LeaderLease(KubeClient(access), "default", "writers", identity)
    threading.Thread(target=lease.run, daemon=True).start()
    client = KubeClient(access)
    while True:
        if not lease.holds():
            time.sleep(0.01)
            continue
        term = lease.term
        print("leads", term, flush=True)
        client.fence = lambda term=term: lease.holds(term)
        write(client, identity, term)


def write(client: KubeClient, identity: str, term: int) -> None:
    """Never looks whether it leads: the fence does."""
    number = 0
    while True:
        number += 1
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": identity},
                "data": {"term": str(term), "number": str(number)}}  # fmt: skip
        try:
            client.apply(f"{PATH}/{identity}", body, manager="writer", seconds=5.0)
        except LostLeadership:
            print("fenced", term, flush=True)
            return
        except KubeProblem as problem:
            print("failed", problem, flush=True)
            time.sleep(0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
