"""Whose queues data lies in, of real sockets: a client that never reads beside a busy server."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.cgroups import Cgroup, cgroup, missing

from seawall.host.host import JSON
from seawall.host.live import LiveHost

MIB = 1 << 20
FRAMER = Path(__file__).parents[1] / "end_to_end/queue_filler.py"
SOURCES = Path(__file__).parents[2] / "src"

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]


def asked(protocols: str) -> dict[str, Any]:
    with contextlib.closing(LiveHost()) as host:
        answer: JSON | object = host.ask("socket_queues", protocols)
    assert isinstance(answer, dict), answer
    return answer


def held_by(answer: dict[str, Any], group: Cgroup) -> int:
    """Bytes in queues of sockets that this cgroup alone holds."""
    name = group.path.name
    return sum(
        row[4] + row[5] for row in answer["rows"]
        if len(row[0]) == 1 and any(line.endswith("/" + name) for line in row[0][0])
    )  # fmt: skip


@contextlib.contextmanager
def run(group: Cgroup, *arguments: object, before: tuple[str, ...] = ()) -> Iterator[str]:
    """What it says first; in ``group`` before it opens a socket."""
    with subprocess.Popen(
        [*before, sys.executable, str(FRAMER), *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            group.add(process.pid)
            assert process.stdin
            assert process.stdout
            process.stdin.write("go\n")
            process.stdin.flush()
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture
def groups() -> Iterator[tuple[Cgroup, Cgroup]]:
    with contextlib.ExitStack() as stack:
        server, client = (
            stack.enter_context(cgroup(f"seawall-{name}-{os.getpid()}", 200 * MIB))
            for name in ("server", "client")
        )
        yield server, client


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_the_client_that_never_reads_holds_it(protocol: str, groups: tuple[Cgroup, Cgroup]) -> None:
    server, client = groups
    with run(server, protocol, "server") as port, run(client, protocol, "client", port, 300):
        deadline = time.monotonic() + 20
        while held_by(answer := asked(protocol), client) < 40 * MIB:
            assert time.monotonic() < deadline, answer
            time.sleep(0.3)
        # Of TCP the server keeps what it could not send.
        assert protocol == "tcp" or held_by(answer, server) < MIB
    assert held_by(asked(protocol), client) == 0


def test_a_namespace_with_many_sockets_hides_no_other(groups: tuple[Cgroup, Cgroup]) -> None:
    """19,000 of one tenant in a network of its own take more time than there is."""
    server, crowd = groups
    with (
        run(crowd, "udp", "crowd", 19_000, before=("unshare", "-n")),
        run(server, "udp", "self", 300) as port,
    ):
        assert port
        began = time.monotonic()
        answer = asked("udp")
        assert time.monotonic() - began < 3.0
        assert held_by(answer, server) >= 20 * MIB


def test_an_ordinary_user_says_what_he_does_not_see() -> None:
    script = (
        "import json, os\nfrom seawall.host.socket_queue_probe import socket_queues\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(json.dumps(socket_queues('tcp,udp')))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(SOURCES)}, check=True,
        capture_output=True,
    )  # fmt: skip
    answer = json.loads(ran.stdout)
    assert answer["processes_left_out"] > 0
