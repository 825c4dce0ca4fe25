"""A device plugin's pod and what a kubelet and an API server would do to pods: with real runc."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tests.containers.gpu_node import Container, Wanted, config_of
from tests.containers.node import Node, make_bundle, new_id, remove_cgroups

PLUGINS = "/var/lib/kubelet/device-plugins"


class Pod:
    """One pod with one container; a container that ends can be followed by another."""

    def __init__(self, node: Node, folder: Path, name: str, uid: str) -> None:
        self.node, self._folder, self.name, self.uid = node, folder, name, uid
        self.made: list[Container] = []

    def start(
        self, wanted: Wanted, *, has_folder: bool = True, is_systemds: bool = False
    ) -> Container:
        """A new container of the same pod, as the kubelet's cgroup driver would place it."""
        key = new_id()
        cgroup = f"/kubepods/besteffort/pod{self.uid}/{key}"
        if is_systemds:
            pod = f"kubepods-pod{self.uid.replace('-', '_')}.slice"
            cgroup = f"/kubepods.slice/{pod}/cri-containerd-{key}.scope"
        config = config_of(wanted, cgroup)
        if has_folder:
            config["mounts"].append(
                {"destination": PLUGINS, "type": "bind", "source": PLUGINS, "options": ["rbind"]}
            )
        bundle = make_bundle(self._folder / key, config)
        pid = self.node.start_pod(self.name, self.uid, key, bundle)
        self.made.append(Container(self.name, key, self.uid, cgroup, pid))
        return self.made[-1]

    def is_running(self) -> bool:
        """Its newest container."""
        ran = self.node.run("runc", "state", self.made[-1].key)
        return ran.status == 0 and json.loads(ran.text)["status"] == "running"

    def end(self) -> None:
        """All of its containers."""
        for one in self.made:
            self.node.run("runc", "delete", "-f", one.key)
        time.sleep(0.1)
        remove_cgroups(*(one.cgroup for one in self.made))


@contextlib.contextmanager
def kubelet(pod: Pod, wanted: Wanted) -> Iterator[None]:
    """restartPolicy Always: what ends is started again, as another container."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            if not pod.is_running():
                pod.node.run("runc", "delete", pod.made[-1].key)
                pod.start(wanted)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Api(HTTPServer):
    """Answers for one pod as an API server does: GET, and DELETE by uid."""

    def __init__(self, path: str, pod: dict[str, Any], delete: Callable[[], object]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.path, self.pod, self.delete = path, pod, delete
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        self.server.asked.append(f"GET {self.path}")
        known = self.path == self.server.path
        self._answer(200 if known else 404, self.server.pod if known else {"kind": "Status"})

    def do_DELETE(self) -> None:
        assert self.headers["Transfer-Encoding"] == "chunked", "kubectl does not know its length"
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        body = json.loads(data)
        self.server.asked.append(f"DELETE {self.path}")
        if body["preconditions"]["uid"] != self.server.pod["metadata"]["uid"]:
            self._answer(409, {"kind": "Status", "message": "the UID in the precondition"})
            return
        self._answer(200, self.server.pod)
        self.server.delete()

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def serving(api: Api, kubeconfig: Path) -> Iterator[None]:
    """Until the end of the block; kubeconfig: where to write how it is reached."""
    address = f"http://127.0.0.1:{api.server_address[1]}"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1", "kind": "Config", "current-context": "here",
                "clusters": [{"name": "here", "cluster": {"server": address}}],
                "users": [{"name": "me", "user": {}}],
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            }
        )
    )  # fmt: skip
    thread = threading.Thread(target=api.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        api.shutdown()
        thread.join()
        api.server_close()
