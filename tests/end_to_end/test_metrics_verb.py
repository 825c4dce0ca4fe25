"""``seawall guard metrics``: scraped by a real Prometheus, and deaf to bad clients."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.end_to_end.verbs import ENVIRONMENT
from tests.end_to_end.warm_verbs import seawall
from tests.guard.test_tell_metrics import VALUES

from seawall.guard.metrics_server import OLD_SECONDS, metrics_reply
from seawall.guard.tell.textfile import render

QUERY = "/api/v1/query?query=seawall_guard_headroom_bytes"


@pytest.fixture
def textfile(tmp_path: Path) -> Path:
    path = tmp_path / "seawall.prom"
    path.write_text(render(VALUES))
    return path


@pytest.fixture
def config(tmp_path: Path, textfile: Path) -> Path:
    path = tmp_path / "guard.toml"
    path.write_text(f'textfile = "{textfile}"\n')
    path.chmod(0o600)
    return path


@pytest.fixture
def address(config: Path) -> Iterator[str]:
    """Of a server that was started as a unit starts it."""
    command = [sys.executable, "-m", "seawall", "guard", "metrics", "--config", str(config),
               "--listen", "127.0.0.1:0"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as server:
        assert server.stdout is not None
        found = re.fullmatch(r"http://([\d.:]+)/metrics and /healthz\n", server.stdout.readline())
        assert found is not None
        try:
            yield found[1]
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(10) == 0


def get(address: str, path: str, method: str = "GET") -> tuple[int, str, str]:
    """Status, type, text."""
    request = urllib.request.Request(f"http://{address}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, reply.headers["Content-Type"], reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def test_the_textfile_as_prometheus_takes_it(address: str, textfile: Path) -> None:
    status, kind, text = get(address, "/metrics")
    assert (status, text) == (200, textfile.read_text())
    assert kind.startswith("text/plain; version=0.0.4")
    assert get(address, "/metrics", "HEAD")[::2] == (200, "")
    promtool = shutil.which("promtool")
    if promtool is not None:
        done = subprocess.run([promtool, "check", "metrics"], input=text, text=True, check=False,
                              capture_output=True)  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_other_paths_and_methods(address: str) -> None:
    assert get(address, "/")[0] == 404
    assert get(address, "/metrics/../../etc/passwd")[0] == 404
    assert get(address, "/metrics", "POST")[0] == 501


def test_without_a_guard_it_is_not_well(address: str) -> None:
    status, _, words = get(address, "/healthz")
    if "A guard runs" in words:
        pytest.skip("a guard runs on this machine")
    assert status == 503
    assert re.search(r"[Nn]o guard runs|could not be seen", words), words


def test_a_silent_client_keeps_nobody_waiting(address: str) -> None:
    host, _, port = address.partition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(8)]
    try:
        began = time.monotonic()
        assert get(address, "/metrics")[0] == 200
        assert time.monotonic() - began < 4
    finally:
        for one in silent:
            one.close()


def test_noise_ends_nothing(address: str) -> None:
    host, _, port = address.partition(":")
    for noise in (b"\xff\x00" * 2000, b"GET " + b"/" * 100_000, b"GET /metrics HTTP/9.9\r\n\r\n"):
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(noise)
    assert get(address, "/metrics")[0] == 200


@pytest.mark.system
def test_a_real_prometheus_scrapes_it(address: str, tmp_path: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus: apt-get install --no-install-recommends prometheus")
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: seawall, static_configs: [{{targets: ['{address}']}}]}}]\n"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        own = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [program, f"--config.file={config}", f"--web.listen-address={own}",
               f"--storage.tsdb.path={tmp_path}/data", "--log.level=error"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            until = time.monotonic() + 60
            rows: list[object] = []
            while not rows:
                assert time.monotonic() < until, "nothing was scraped"
                time.sleep(0.5)
                try:
                    found = json.loads(get(own, QUERY)[2])
                except (OSError, ValueError):
                    continue
                rows = found["data"]["result"] if found.get("status") == "success" else []
            assert float(rows[0]["value"][1]) == VALUES["headroom_bytes"]  # type: ignore[index]
        finally:
            running.terminate()


# --- without a server ----------------------------------------------------------------------


def test_old_metrics_are_no_metrics(textfile: Path) -> None:
    written = textfile.stat().st_mtime
    assert metrics_reply(str(textfile), written + OLD_SECONDS - 1).status == HTTPStatus.OK
    old = metrics_reply(str(textfile), written + OLD_SECONDS + 1)
    assert old.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "2 min ago" in old.text


def test_a_textfile_that_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/hostname")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2 << 20)
    for name in ("absent", "pipe", "link", "large", "."):
        reply = metrics_reply(str(tmp_path / name), 0.0)
        assert reply.status == HTTPStatus.SERVICE_UNAVAILABLE, name
        assert str(tmp_path) in reply.text


@pytest.mark.parametrize("listen", ["", "9464", "127.0.0.1", "127.0.0.1:x", "1::2:9464", "h:99999"])
def test_an_address_that_is_none(config: Path, listen: str) -> None:
    ran = seawall("guard", "metrics", "--config", str(config), "--listen", listen)
    assert ran.status == 2
    assert b"expected ADDRESS:PORT" in ran.err


def test_an_address_that_is_taken(config: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = seawall("guard", "metrics", "--config", str(config), "--listen", listen)
    assert ran.status == 2
    assert b"in use" in ran.err


def test_a_guard_that_keeps_no_metrics(tmp_path: Path) -> None:
    config = tmp_path / "guard.toml"
    config.write_text("")
    config.chmod(0o600)
    ran = seawall("guard", "metrics", "--config", str(config))
    assert ran.status == 2
    assert b"names no textfile" in ran.err
