"""An admission webhook on loopback that refuses, as an owner's own may."""

import http.server
import json
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.api_client import ApiClient, Object

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
WORDS = "not in this namespace, says its owner"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(review["request"]["userInfo"]["username"])  # type: ignore[attr-defined]
        time.sleep(self.server.seconds)  # type: ignore[attr-defined]
        answer = {"uid": review["request"]["uid"], "allowed": bool(self.server.seconds),  # type: ignore[attr-defined]
                  "status": {"code": 403, "message": WORDS}}  # fmt: skip
        body = json.dumps({**review, "response": answer, "request": None}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class RefusingWebhook:
    """``with RefusingWebhook(client, folder, space, "jobs", "batch")``: updates of these are
    refused; ``folder`` is the plane's, with its certificate.

    user:        a part of the name of who is asked about
    seconds:     it takes so long for each, and then refuses nothing
    operations:  other ones than updates
    """

    def __init__(
        self, client: ApiClient, folder: Path, space: str, resource: str, group: str,
        user: str = "seawall-actor", seconds: float = 0.0,
        operations: Sequence[str] = ("UPDATE",),
    ) -> None:  # fmt: skip
        self.operations = list(operations)
        self.client, self.space, self.resource, self.group = client, space, resource, group
        self.name, self.user = f"refuses-{space}", user
        self.authority = (folder / "tls.crt").read_bytes()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.seen = []  # type: ignore[attr-defined]
        self.server.seconds = seconds  # type: ignore[attr-defined]
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    @property
    def seen(self) -> list[str]:
        """Who asked, in order."""
        return self.server.seen  # type: ignore[attr-defined,no-any-return]

    def __enter__(self) -> "RefusingWebhook":  # noqa: PYI034 - Self is of 3.11
        self.thread.start()
        rule = {"apiGroups": [self.group], "apiVersions": ["*"], "operations": self.operations,
                "resources": [self.resource]}  # fmt: skip
        port = self.server.server_address[1]
        labels = {"matchLabels": {"kubernetes.io/metadata.name": self.space}}
        hook: Object = {
            "name": "refuses.seawall.test", "rules": [rule], "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "namespaceSelector": labels,
            "matchConditions": [{"name": "not-the-core", "expression":
                                 f"request.userInfo.username.contains('{self.user}')"}],
            "clientConfig": {"url": f"https://127.0.0.1:{port}/",
                             "caBundle": b64encode(self.authority).decode()},
        }  # fmt: skip
        self.client.create(WEBHOOKS, {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": self.name},
            "webhooks": [hook],
        })  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self.client.delete(f"{WEBHOOKS}/{self.name}")
        self.server.shutdown()
        self.server.server_close()
