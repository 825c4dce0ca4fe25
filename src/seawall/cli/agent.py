# SPDX-License-Identifier: Apache-2.0
"""``seawall agent``: tells the API server what guard and black box say of this node, until it ends.

No ``Verb``: it runs for life, and with ``--last-death`` prints one document.
"""

import os
import resource
import signal
import stat
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from seawall.problems import UsageProblem

if TYPE_CHECKING:
    from seawall.agent.api_connection import ApiServer
    from seawall.agent.node_agent import NodeAgent

WANTED: Final = ()
ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
BLACKBOX: Final = "/var/lib/seawall/blackbox"
FOLDER: Final = "/run/seawall"
_NAME_MOST: Final = 253
_DEATH_MOST_BYTES: Final = 256 << 10


def add_arguments(parser: ArgumentParser) -> None:
    """Where the API server is, who this node is, what is read."""
    parser.add_argument("--node-name", metavar="NAME", help="default $NODE_NAME")
    parser.add_argument(
        "--server", metavar="URL", help="of the API server; default: the cluster that the pod is in"
    )
    parser.add_argument("--ca", metavar="FILE", help="whom to believe; default: of the account")
    parser.add_argument("--token-file", metavar="FILE", help="default: of the account")
    parser.add_argument(
        "--run-folder", metavar="FOLDER", default=FOLDER, help="of the guard; default %(default)s"
    )
    parser.add_argument(
        "--blackbox", metavar="FILE", default=BLACKBOX,
        help="read once, at the start; empty: none; default %(default)s",
    )  # fmt: skip
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help="serve /metrics and /healthz there")
    parser.add_argument(
        "--last-death", action="store_true",
        help="print what the black box tells of the boot before, as it is sent, and end",
    )  # fmt: skip


def run(arguments: Namespace) -> int:
    """Until SIGTERM; UsageProblem where it cannot begin."""
    if arguments.last_death:
        return _print_last_death(arguments.blackbox)
    from seawall.agent.api_connection import ApiConnection  # noqa: PLC0415 - not for --help
    from seawall.agent.node_agent import NodeAgent  # noqa: PLC0415 - likewise
    from seawall.agent.page_watch import PageWatch, boot_id_here  # noqa: PLC0415 - likewise
    from seawall.own_process import use_one_heap  # noqa: PLC0415 - likewise
    from seawall.proc.own_name import take_name  # noqa: PLC0415 - likewise

    server = _server(arguments)
    boot = boot_id_here()
    if not boot:
        raise UsageProblem("/proc/sys/kernel/random/boot_id cannot be read: mount /proc")
    use_one_heap()
    take_name("seawall-agent")
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _never_wait_for_log()
    death = _LastDeath(arguments.blackbox)
    watch = PageWatch(arguments.run_folder, boot, time.monotonic())
    agent = NodeAgent(watch, ApiConnection(server), _say)
    listener = _listener(arguments.listen, agent)
    _say(f"node {server.node}, https://{server.host}:{server.port}, {arguments.run_folder}")
    for words in _give_up_rights():
        _say(words)
    if listener is not None:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
    while True:
        death.look(agent)
        time.sleep(agent.turn(time.monotonic()))


# --- where and who ------------------------------------------------------------------------------


def _server(arguments: Namespace) -> "ApiServer":
    from seawall.agent.api_connection import server_of  # noqa: PLC0415 - as in run

    node = arguments.node_name or os.environ.get("NODE_NAME", "")
    if not node:
        raise UsageProblem("which node is this? give --node-name, or NODE_NAME in the environment")
    letters = set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    if len(node) > _NAME_MOST or not set(node) <= letters or not node[0].isalnum():
        raise UsageProblem(f"--node-name {node[:100]}: no name of a node (lower case, digits, - .)")
    url = arguments.server
    if not url:
        host, port = (
            os.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT_HTTPS")
        )
        if not host:
            raise UsageProblem(
                "where is the API server? outside a pod give --server https://HOST:PORT, --ca and "
                "--token-file"
            )
        host = f"[{host}]" if ":" in host else host
        url = f"https://{host}:{port or os.environ.get('KUBERNETES_SERVICE_PORT', '443')}"
    ca, token = arguments.ca or f"{ACCOUNT}/ca.crt", arguments.token_file or f"{ACCOUNT}/token"
    for option, path in (("--ca", ca), ("--token-file", token)):
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise UsageProblem(f"{option} {path}: {error.strerror}") from error
    return server_of(url, ca, token, node)


def _listener(listen: str | None, agent: "NodeAgent") -> Any:
    if not listen:
        return None
    from seawall.agent.agent_metrics import AgentServer  # noqa: PLC0415 - where it is wanted
    from seawall.cli.guard_metrics import address_of  # noqa: PLC0415 - likewise

    address = address_of(listen)
    try:
        return AgentServer(address, agent)
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(f"--listen {listen}: {words}; give another address") from error


# --- the process --------------------------------------------------------------------------------


def _give_up_rights() -> list[str]:
    """First in line, spared, locked; then without any capability, unable to signal.  What could
    not be had, in words: it goes on without.
    """
    from seawall import own_process  # noqa: PLC0415 - as in run
    from seawall.proc.process_rights import keep_only  # noqa: PLC0415 - likewise

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
        ("its memory locked", own_process.lock(is_future=is_endless)),
        ("no rights", keep_only("agent")),
    )
    return [f"{what}: {why}" for what, why in refused if why]


def _never_wait_for_log() -> None:
    """A pipe that nobody reads would hold it up; lines that have no room are lost."""
    try:
        kind = os.fstat(2).st_mode
        if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
            os.set_blocking(2, False)
    except OSError:
        return


def _say(words: str) -> None:
    """A line on stderr, where that takes one."""
    from seawall.guard.tell.plain import plain  # noqa: PLC0415 - as in run

    try:
        os.write(2, f"seawall agent: {plain(words, 500)}\n".encode())
    except OSError:
        return


def _end(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


# --- the boot before ----------------------------------------------------------------------------


class _LastDeath:
    """Read by a child: what that imports and unpacks goes with it."""

    def __init__(self, blackbox: str) -> None:
        from seawall.proc.forked_child import ForkedChild  # noqa: PLC0415 - as in run

        self._child: ForkedChild | None = None
        self._text = bytearray()
        if not blackbox or not os.path.exists(blackbox):
            return
        try:
            self._child = ForkedChild(
                lambda fd: _write_last_death(blackbox, fd), name="seawall-boxread"
            )
            os.set_blocking(self._child.fd, False)
        except OSError as error:
            _say(f"{blackbox} is not read: {error.strerror}")

    def look(self, agent: "NodeAgent") -> None:
        """What has come by now; when all has, the agent is told."""
        child = self._child
        if child is None:
            return
        try:
            chunk = os.read(child.fd, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._text += chunk
        if chunk and len(self._text) <= _DEATH_MOST_BYTES:
            return
        self._child = None
        os.close(child.fd)
        child.fd = -1
        self._tell(agent)

    def _tell(self, agent: "NodeAgent") -> None:
        import json  # noqa: PLC0415 - as in run

        from seawall.agent.last_death import is_worth_telling  # noqa: PLC0415 - where a box is

        try:
            found = json.loads(self._text)
        except ValueError:
            _say("the black box was not read: its reader ended early")
            return
        if "problem" in found:
            _say(f"the black box tells nothing of the boot before: {found['problem']}")
        elif is_worth_telling(found):
            _say(f"boot {found['bootID'][:8]} ended at {found['at']}: {found['ended']}")
            agent.died_before(found)


def _write_last_death(blackbox: str, fd: int) -> None:
    """In the child: ``lastDeath`` as JSON, or ``problem``."""
    import json  # noqa: PLC0415 - in the child

    from seawall.proc.process_rights import keep_only  # noqa: PLC0415 - likewise

    signal.alarm(120)
    keep_only("agent")
    data = memoryview(json.dumps(_last_death_of(blackbox)).encode())
    while data:
        data = data[os.write(fd, data) :]


def _last_death_of(blackbox: str) -> dict[str, Any]:
    from seawall.agent.last_death import last_death  # noqa: PLC0415 - the child, and --last-death
    from seawall.agent.page_watch import boot_id_here  # noqa: PLC0415 - likewise
    from seawall.blackbox.reader import Box  # noqa: PLC0415 - likewise
    from seawall.sources.box_last_boot import last_boot  # noqa: PLC0415 - likewise

    try:
        boot = last_boot(Box.open(blackbox), boot_id_here(), _booted())
    except UsageProblem as problem:
        return {"problem": str(problem)}
    return {"problem": "it holds no other boot"} if boot is None else last_death(boot)


def _booted() -> float | None:
    """When the running kernel began, Unix seconds by today's clock (/proc/stat btime)."""
    try:
        with open("/proc/stat", "rb") as file:
            rows = [line.split() for line in file if line.startswith(b"btime ")]
        return float(rows[0][1])
    except (OSError, ValueError, IndexError):
        return None


def _print_last_death(blackbox: str) -> int:
    import json  # noqa: PLC0415 - this form alone

    found = _last_death_of(blackbox)
    if "problem" in found:
        raise UsageProblem(f"{blackbox}: {found['problem']}")
    json.dump(found, sys.stdout, indent=1)
    print()
    return 0
