# SPDX-License-Identifier: Apache-2.0
"""The agent's process: begun by ``guard/entry.py``, with nothing of the command line in memory.

It is first in line for a processor, spared by the OOM killer where that is allowed, its memory is
locked; then it gives up every capability and every way to signal anybody.
"""

import json
import os
import resource
import signal
import stat
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

from seawall import own_process
from seawall.agent.api_connection import ApiConnection, ApiProblem, server_of
from seawall.agent.cluster_orders import ClusterOrders
from seawall.agent.node_agent import NodeAgent
from seawall.agent.order_folder import OrderFolder
from seawall.agent.page_watch import PageWatch, boot_id_here
from seawall.guard import entry
from seawall.guard.order_files import ORDERS
from seawall.guard.tell.plain import plain
from seawall.problems import UsageProblem
from seawall.proc.process_rights import keep_only

USAGE: Final = 2
_DEATH_MOST_BYTES: Final = 256 << 10


class AgentSettings(NamedTuple):
    """What the command line has found out; as words of ``entry.agent_argv``."""

    node: str
    server: str
    """``https://HOST:PORT``."""
    ca_file: str
    token_file: str
    folder: str
    """Of the guard: /run/seawall."""
    blackbox: str
    """Empty: none."""
    address: str
    port: int
    """Of /metrics; 0: none."""
    state: str
    """Folder on the disk that is the agent's: /var/lib/seawall/orders."""
    evidence: str
    """Folder that the nodes of a Slurm cluster share; empty: the API server is told."""


def main(words: list[str]) -> int:
    """Until SIGTERM; 2: it cannot begin."""
    settings = AgentSettings._make([*words[:-3], int(words[-3]), *words[-2:]])
    try:
        _run(settings)
    except UsageProblem as problem:
        say(str(problem))
    return USAGE


def _run(settings: AgentSettings) -> NoReturn:
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    own_process.use_one_heap()
    never_wait_for_log()
    boot = boot_id_here()
    if not boot:
        raise UsageProblem("/proc/sys/kernel/random/boot_id cannot be read: mount /proc")
    watch = PageWatch(settings.folder, boot, time.monotonic())
    agent = _of_slurm(settings, watch) if settings.evidence else _of_cluster(settings, watch)
    serve = _server(settings, agent)
    where = settings.evidence or settings.server
    say(f"node {settings.node}, {where}, {settings.folder}")
    for words in give_up_rights():
        say(words)
    if serve is not None:
        threading.Thread(target=serve, daemon=True).start()
    death = _LastDeath(settings.blackbox)
    while True:
        death.look(agent)
        time.sleep(agent.turn(time.monotonic()))


def _of_cluster(settings: AgentSettings, watch: PageWatch) -> NodeAgent:
    server = server_of(settings.server, settings.ca_file, settings.token_file, settings.node)
    connection = ApiConnection(server)
    run = OrderFolder(f"{settings.folder}/{ORDERS}")
    orders = ClusterOrders(connection, run, OrderFolder(settings.state), watch.boot_id, say)
    return NodeAgent(watch, connection, say, orders=orders)


def _of_slurm(settings: AgentSettings, watch: PageWatch) -> NodeAgent:
    """Its child is forked before rights are given up: it becomes the folder's owner."""
    from seawall.agent.evidence_writer import EvidenceWriter  # noqa: PLC0415 - not in Kubernetes

    writer = EvidenceWriter(settings.evidence, settings.node)
    try:
        writer.prepare()
    except ApiProblem as problem:
        raise UsageProblem(str(problem)) from problem
    return NodeAgent(watch, writer, say)


def _server(settings: AgentSettings, agent: NodeAgent) -> Callable[[], None] | None:
    if not settings.port:
        return None
    from seawall.agent.agent_metrics import AgentServer  # noqa: PLC0415 - where it is wanted

    try:
        return AgentServer((settings.address, settings.port), agent).serve_forever
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(
            f"--listen {settings.address}:{settings.port}: {words}; give another address"
        ) from error


def give_up_rights() -> list[str]:
    """What could not be had of its place, in words: it goes on without."""
    limit = resource.RLIM_INFINITY
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
    except (OSError, ValueError):
        limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    own_process.no_huge_pages()
    own_process.trim()
    own_process.let_go_of_files()
    # Without a limit of its own, what is mapped later could not be had once IPC_LOCK is gone.
    is_endless = limit == resource.RLIM_INFINITY
    refused = (
        ("nice -20", own_process.go_first()),
        ("oom_score_adj -999", own_process.be_spared()),
        ("memory locked", own_process.lock(is_future=is_endless)),
        ("rights given up", keep_only("agent")),
    )
    return [f"not had: {what} ({why})" for what, why in refused if why]


def never_wait_for_log() -> None:
    """A pipe that nobody reads would hold it up; lines that have no room are lost."""
    try:
        kind = os.fstat(2).st_mode
        if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
            os.set_blocking(2, False)
    except OSError:
        return


def say(words: str) -> None:
    """A line on stderr, where that takes one: a full disk behind it is nothing to stop for."""
    try:
        os.write(2, f"seawall agent: {plain(words, 500)}\n".encode())
    except OSError:
        return


def _end(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


class _LastDeath:
    """Read by a child, once: what that imports and unpacks goes with it."""

    def __init__(self, blackbox: str) -> None:
        self._fd = -1
        self._text = bytearray()
        if not blackbox or not os.path.exists(blackbox):
            return
        self._fd, to = os.pipe2(os.O_CLOEXEC)
        try:
            argv = entry.box_argv(blackbox)
            os.posix_spawn(
                argv[0], argv, entry.ENVIRONMENT, file_actions=[(os.POSIX_SPAWN_DUP2, to, 1)]
            )
            os.set_blocking(self._fd, False)
        except OSError as error:
            say(f"{blackbox} is not read: {error.strerror}")
            os.close(self._fd)
            self._fd = -1
        finally:
            os.close(to)

    def look(self, agent: NodeAgent) -> None:
        """What has come by now; when all has, the agent is told."""
        if self._fd < 0:
            return
        try:
            chunk = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._text += chunk
        if chunk and len(self._text) <= _DEATH_MOST_BYTES:
            return
        os.close(self._fd)
        self._fd = -1
        self._tell(agent)

    def _tell(self, agent: NodeAgent) -> None:
        try:
            os.waitpid(-1, os.WNOHANG)
            found = json.loads(self._text)
        except (OSError, ValueError):
            say("the black box was not read: its reader ended early")
            return
        if "problem" in found:
            say(f"the black box tells nothing of a boot before: {found['problem']}")
        else:  # a clean end too: a node that was silent for so long is dead to the cluster
            say(f"boot {found['bootID'][:8]} ended at {found['at']}: {found['ended']}")
            agent.died_before(found)
        self._text = bytearray()
