"""A real Docker engine in the node of the tests."""

import shutil
import time
from pathlib import Path

import pytest
from tests.containers import node as nodes
from tests.containers.node import Node, remove_cgroups


def program(name: str) -> str | None:
    """Debian's own first: a client alone may lie elsewhere."""
    return next((p for p in (f"/usr/bin/{name}", f"/usr/sbin/{name}") if Path(p).exists()),
                shutil.which(name))  # fmt: skip


class Engine:
    """dockerd without network, in the node's own mount namespace, data in a test folder."""

    def __init__(self, node: Node, folder: Path) -> None:
        for name in ("dockerd", "docker"):
            if program(name) is None:
                pytest.skip(f"{name} is missing: apt-get install docker.io")
        self.node, self.folder = node, folder
        self._socket = f"unix:///run/seawall-docker-{node.pid}.sock"
        self.keys: list[str] = []
        """Of containers whose cgroups have to go."""

    def begin(self) -> None:
        place = self.folder
        self.node.need(
            "sh", "-c",
            f"PATH=$PATH:/usr/sbin:/sbin {program('dockerd')} --iptables=false --ip6tables=false"
            f" --ip-forward=false --bridge=none --data-root {place}/data --exec-root /run/docker"
            f" --pidfile /run/docker.pid --host {self._socket} --storage-driver vfs"
            f" --exec-opt native.cgroupdriver=cgroupfs >{place}/log 2>&1 </dev/null &",
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while self.docker("version").status:
            if time.monotonic() > deadline:
                log = (place / "log").read_text()[-1500:]
                pytest.skip(f"dockerd does not start here (a privileged host would do): {log}")
            time.sleep(0.2)

    def docker(self, *words: str) -> nodes.Ran:
        return self.node.run(str(program("docker")), "--host", self._socket, *words)

    def need(self, *words: str) -> str:
        """What it printed; it must succeed."""
        ran = self.docker(*words)
        assert ran.status == 0, ran.text + ran.err
        return ran.text

    def end(self) -> None:
        for key in self.keys:
            self.docker("rm", "-f", key)
        self.node.run("sh", "-c", "kill $(cat /run/docker.pid)")
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            if self.node.run("sh", "-c", "test -e /run/docker.pid").status:
                break
            time.sleep(0.1)
        remove_cgroups(*(f"/docker/{key}" for key in self.keys), "/docker/buildkit", "/docker")
