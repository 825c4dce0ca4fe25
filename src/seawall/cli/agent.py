# SPDX-License-Identifier: Apache-2.0
"""``seawall agent``: tells what guard and black box say of this node, until it ends; to the API
server, or on a node of Slurm to a folder that all nodes share (``--slurm``).

No ``Verb``: it becomes the agent's process, or prints one document (``--last-death``).
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import Final, NoReturn

from seawall.problems import UsageProblem

WANTED: Final = ()
ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
BLACKBOX: Final = "/var/lib/seawall/blackbox"
FOLDER: Final = "/run/seawall"
STATE: Final = "/var/lib/seawall/orders"
_NAME_MOST: Final = 253
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.")
_SLURM_LETTERS: Final = _LETTERS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ_")


def add_arguments(parser: ArgumentParser) -> None:
    """Who is told, who this node is, what is read."""
    parser.add_argument(
        "--slurm", action="store_true",
        help="write into the folder that [slurm] evidence of slurm.toml names (docs/slurm.md)",
    )  # fmt: skip
    parser.add_argument(
        "--config", metavar="FILE", help="with --slurm; default /etc/seawall/slurm.toml"
    )
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
    parser.add_argument(
        "--state-folder", metavar="FOLDER", default=STATE,
        help="where the list of pods in quarantine is kept; default %(default)s",
    )  # fmt: skip
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help="serve /metrics and /healthz")
    parser.add_argument(
        "--last-death", action="store_true",
        help="print what the black box tells of the boot before, as it is sent, and end",
    )  # fmt: skip


def run(arguments: Namespace) -> int:
    """Of ``--last-death`` alone; else it becomes the agent.  UsageProblem where it cannot begin."""
    if arguments.last_death:
        return _print_last_death(arguments.blackbox)
    return _become_agent(arguments)


def _become_agent(arguments: Namespace) -> NoReturn:
    from seawall.cli.guard_metrics import address_of  # noqa: PLC0415 - not for --help
    from seawall.guard import entry  # noqa: PLC0415 - likewise

    told = _of_slurm(arguments) if arguments.slurm else _of_cluster(arguments)
    node, url, ca, token, evidence = told
    address, port = address_of(arguments.listen) if arguments.listen else ("", 0)
    words = [node, url, ca, token, arguments.run_folder, arguments.blackbox, address, str(port),
             arguments.state_folder, evidence]  # fmt: skip
    # Another process of it: what the command line imported takes 5 MB.
    argv = entry.agent_argv(words)
    sys.stderr.flush()
    os.execve(argv[0], argv, entry.ENVIRONMENT)  # noqa: S606 - our own file


def _of_slurm(arguments: Namespace) -> tuple[str, ...]:
    """Node and folder; the API server's three are empty."""
    from seawall.cli.node_look import NAMES  # noqa: PLC0415 - not for Kubernetes
    from seawall.cli.slurm_file import PATH, host_name, load  # noqa: PLC0415 - likewise

    node = arguments.node_name or os.environ.get("SLURMD_NODENAME") or host_name()
    if len(node) > _NAME_MOST or not node[:1].isalnum() or not set(node) <= _SLURM_LETTERS:
        raise UsageProblem(f"--node-name {node[:100]}: no name of a node of Slurm")
    folder = load(arguments.config, node, NAMES).evidence
    if not folder:
        path = arguments.config or PATH
        raise UsageProblem(f'{path}: where do records go? [slurm] evidence = "/shared/folder"')
    return node, "", "", "", folder


def _of_cluster(arguments: Namespace) -> tuple[str, ...]:
    """Node, API server, and what is needed to believe it and to be believed."""
    try:
        from seawall.agent.api_connection import server_of  # noqa: PLC0415 - not for --help
    except ModuleNotFoundError as error:
        raise UsageProblem(
            f"no Python module {error.name}, so no TLS: run the agent from a package or the image"
        ) from error
    node, url = _node(arguments.node_name), arguments.server or _cluster()
    ca, token = arguments.ca or f"{ACCOUNT}/ca.crt", arguments.token_file or f"{ACCOUNT}/token"
    server_of(url, ca, token, node)
    for option, path in (("--ca", ca), ("--token-file", token)):
        _must_open(option, path)
    return node, url, ca, token, ""


def _node(named: str | None) -> str:
    node = named or os.environ.get("NODE_NAME", "")
    if not node:
        raise UsageProblem("which node is this? give --node-name, or NODE_NAME in the environment")
    if len(node) > _NAME_MOST or not set(node) <= _LETTERS or not node[0].isalnum():
        raise UsageProblem(f"--node-name {node[:100]}: no name of a node (lower case, digits, - .)")
    return node


def _cluster() -> str:
    """Of the pod that this is in."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    if not host:
        raise UsageProblem(
            "where is the API server? outside a pod give --server https://HOST:PORT, --ca and "
            "--token-file"
        )
    port = (
        os.environ.get("KUBERNETES_SERVICE_PORT_HTTPS")
        or os.environ.get("KUBERNETES_SERVICE_PORT")
        or "443"
    )
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _must_open(option: str, path: str) -> None:
    try:
        with open(path, "rb"):
            return
    except OSError as error:
        raise UsageProblem(f"{option} {path}: {error.strerror}") from error


def _print_last_death(blackbox: str) -> int:
    import json  # noqa: PLC0415 - this form alone

    from seawall.sources.box_last_boot import last_death_of  # noqa: PLC0415 - likewise

    found = last_death_of(blackbox)
    if "problem" in found:
        raise UsageProblem(f"{blackbox}: {found['problem']}")
    print(json.dumps(found, indent=1))
    return 0
