# SPDX-License-Identifier: Apache-2.0
"""``seawall guard metrics``: the guard's numbers and its health over HTTP, until it is ended."""

import signal
from argparse import Namespace
from http import HTTPStatus
from typing import Final, NoReturn

from seawall.cli.guard_status import health
from seawall.guard.config import chosen_path, read
from seawall.guard.metrics_server import MetricsServer, Reply
from seawall.problems import UsageProblem

ADDRESS: Final = "127.0.0.1:9464"
_PORT_MOST: Final = 65_535


def run(arguments: Namespace) -> int:
    """Serve; UsageProblem where there is nothing to serve or no such address."""
    path = chosen_path(arguments.config)
    textfile = read(path).textfile
    if not textfile:
        raise UsageProblem(
            f'{path} names no textfile: write textfile = "/run/seawall/seawall.prom" into it and '
            "reload the guard, which then keeps its metrics there"
        )
    address = address_of(arguments.listen)
    try:
        server = MetricsServer(address, textfile, _health)
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(f"--listen {arguments.listen}: {words}; give another address") from error
    signal.signal(signal.SIGTERM, _end)
    with server:
        host, port = server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        print(f"http://{shown}:{port}/metrics and /healthz", flush=True)
        server.serve_forever()
    return 0


def address_of(text: str) -> tuple[str, int]:
    """``127.0.0.1:9464``, ``[::1]:9464``; UsageProblem."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or not port.isascii() or not port.isdigit() or int(port) > _PORT_MOST:
        raise UsageProblem(f"--listen {text}: expected ADDRESS:PORT, such as {ADDRESS}")
    return host, int(port)


def _health() -> Reply:
    is_well, words = health()
    status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
    return Reply(status, f"{words}\n")


def _end(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)
