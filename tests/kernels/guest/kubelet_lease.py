"""A kubelet's sign of life: ``kubelet_lease.py HOST PORT CA TOKEN_FILE NODE [ready]`` renews the
node's lease every ten seconds; ``ready``: and says that it is Ready, as a kubelet does when it
comes back.  An ordinary program: nothing of it is locked in memory.
"""

import http.client
import json
import os
import ssl
import sys
import time

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
EVERY_SECONDS, TIMEOUT_SECONDS, PAUSE_SECONDS = 10.0, 10.0, 1.0


def say(text: str) -> None:
    os.write(1, f"kubelet: {text}\n".encode())


def ready(now: float) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    row = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is back",
           "lastHeartbeatTime": stamp}  # fmt: skip
    return json.dumps({"status": {"conditions": [row]}})


def main(host: str, port: str, ca: str, token_file: str, node: str, says: str = "") -> None:
    context = ssl.create_default_context(cafile=ca)
    peer = http.client.HTTPSConnection(host, int(port), timeout=TIMEOUT_SECONDS, context=context)
    with open(token_file) as file:
        headers = {"Authorization": f"Bearer {file.read().strip()}",
                   "Content-Type": "application/merge-patch+json"}  # fmt: skip
    while True:
        began = time.monotonic()
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06}Z"
        body = json.dumps({"spec": {"renewTime": stamp}})
        try:
            peer.request("PATCH", f"{LEASES}/{node}", body, headers)
            answer = peer.getresponse()
            answer.read()
            if says == "ready":
                strategic = {**headers, "Content-Type": "application/strategic-merge-patch+json"}
                peer.request("PATCH", f"/api/v1/nodes/{node}/status", ready(now), strategic)
                peer.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            say(f"lease not renewed: {error!r}")
            peer.close()
            time.sleep(PAUSE_SECONDS)
            continue
        say(f"lease renewed: {answer.status} in {time.monotonic() - began:.2f} s")
        time.sleep(max(PAUSE_SECONDS, EVERY_SECONDS - (time.monotonic() - began)))


if __name__ == "__main__":
    main(*sys.argv[1:])
