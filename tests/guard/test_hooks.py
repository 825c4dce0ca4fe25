"""run_on_decision: whoever wants to know is told of every decision, and never holds the guard up.

The programs of packaging/hooks are run as the guard runs them, against a server of this host.
"""

import json
import shlex
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.guard.telling import BOOT, node, verdict
from tests.guard.test_reload import until
from tests.guard.test_tell_teller import Heard

from seawall.guard import aide_process
from seawall.guard.aide import Aide
from seawall.guard.settings import Settings
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller
from seawall.guard.tell.waiting_requests import MOST, WaitingRequests
from seawall.guard.verdict import POLICY_IS_REPORT, Verdict

NOTIFY = Path(__file__).parents[2] / "packaging/hooks/notify.py"
EVIL = 'shop/<!channel>&"}\x1b]0;x\n/worker'


class Server(HTTPServer):
    """Keeps what it is told."""

    def __init__(self, status: int = 200, where: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.where = status, where
        self.posts: list[tuple[str, dict[str, str], Any]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posts.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        if self.server.where:
            self.send_header("Location", self.server.where)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture
def aide() -> Iterator[Aide]:
    found = aide_process.start()
    yield found
    found.close()


def teller_of(folder: Path, aide: Any, command: str, mode: str = "observe") -> Teller:
    settings = Settings(mode=mode, run_on_decision=command)  # type: ignore[arg-type]
    paths = Paths(str(folder), kmsg=str(folder / "kmsg"), pmsg=str(folder / "pmsg"))
    made = Teller(settings, paths, BOOT, aide)
    made.open()
    return made


def notify(*words: str) -> str:
    return shlex.join([sys.executable, str(NOTIFY), *words, "--node", "node-7"])


def report(refused: str = POLICY_IS_REPORT, sentence: str = "it is over") -> Verdict:
    return Verdict(
        "5eed0000-0003", 1.0, "over_limit", True, 5, 0.0, (), (), refused, sentence
    )  # fmt: skip


def told(server: Server, aide: Aide, folder: Path, command: str, said: Verdict) -> Any:
    """What the server is told of it."""
    made = teller_of(folder, aide, command)
    made.verdict(said)
    until(lambda: server.posts)
    made.close()
    ((path, headers, body),) = server.posts
    return path, headers, body


def test_each_kind_of_decision_is_handed_on_with_its_outcome(tmp_path: Path) -> None:
    heard = Heard()
    made = teller_of(tmp_path, heard, "/usr/bin/hook", "enforce")
    refused = report("protected: CNI")._replace(decision="5eed0000-0004")
    for said in (verdict(), report(), refused):
        made.verdict(said)
    requests = heard.asked("hook")
    assert [one["how"] for one in requests] == ["acted", "reported", "refused"]
    lines = [json.loads(one["stdin"]) for one in requests]
    assert [line["decision"] for line in lines] == [one["decision"] for one in requests]
    assert all(line["schema"] == "seawall.decision/1" for line in lines)
    assert lines[0]["orders"]
    assert lines[0]["ranking"] == [], "who was looked at is long, and stands in decisions.jsonl"
    assert heard.asked("run") == [], "nobody was killed yet"
    made.close()


def test_a_webhook(server: Server, aide: Aide, tmp_path: Path) -> None:
    command = notify("webhook", "--url", f"{server.url}/in?x=1")
    path, headers, body = told(server, aide, tmp_path, command, verdict())
    assert (path, headers["Content-Type"]) == ("/in?x=1", "application/json")
    assert (body["how"], body["node"], body["trigger"]) == ("observed", "node-7", "node_short")
    assert body["sentence"] == verdict().sentence


def test_slack_whose_address_is_a_secret(server: Server, aide: Aide, tmp_path: Path) -> None:
    secret = tmp_path / "slack.url"
    secret.write_text(f"{server.url}/services/T0/B0/x\n")
    command = notify("slack", "--url-file", str(secret))
    path, _, body = told(server, aide, tmp_path, command, report(sentence=f"{EVIL} is over"))
    assert path == "/services/T0/B0/x"
    assert set(body) == {"text"}
    assert body["text"].startswith("node-7: seawall guard reports: shop/&lt;!channel&gt;&amp;")
    assert body["text"].endswith("(5eed0000-0003)")
    assert not set("<>\x1b\n") & set(body["text"])


def test_pagerduty(server: Server, aide: Aide, tmp_path: Path) -> None:
    """Events API v2: what its enqueue wants, and one alert for all steps of a decision."""
    (tmp_path / "key").write_text("R0UTING\n")
    command = notify(
        "pagerduty", "--url", f"{server.url}/v2/enqueue", "--key-file", f"{tmp_path}/key"
    )
    said = verdict()._replace(sentence="x" * 5000)
    path, _, body = told(server, aide, tmp_path, command, said)
    assert (path, body["routing_key"], body["event_action"]) == (
        "/v2/enqueue", "R0UTING", "trigger",
    )  # fmt: skip
    assert body["dedup_key"] == f"seawall-{said.decision}"
    payload = body["payload"]
    assert len(payload["summary"]) <= 1024
    assert payload["source"] == "node-7"
    assert payload["severity"] in {"critical", "error", "warning", "info"}


def test_a_kubernetes_event(server: Server, aide: Aide, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    command = notify("event", "--url", server.url, "--token-file", f"{tmp_path}/token")
    path, headers, body = told(server, aide, tmp_path, command, report())
    assert path == "/api/v1/namespaces/default/events"
    assert headers["Authorization"] == "Bearer t0ken"
    assert body["involvedObject"] == {"kind": "Node", "name": "node-7", "uid": "node-7"}
    assert (body["reason"], body["type"]) == ("SeawallReported", "Normal")
    assert len(body["message"]) <= 1024
    assert body["metadata"]["namespace"] == "default"
    assert body["firstTimestamp"].endswith("Z")


def test_what_is_not_wanted_is_not_told(server: Server, aide: Aide, tmp_path: Path) -> None:
    command = notify("webhook", "--url", server.url, "--only", "acted,observed")
    made = teller_of(tmp_path, aide, command)
    made.verdict(report())
    made.verdict(verdict())
    until(lambda: server.posts)
    time.sleep(0.3)
    made.close()
    assert [body["how"] for _, _, body in server.posts] == ["observed"]


def failure_of(aide: Aide, folder: Path, command: str) -> list[str]:
    made = teller_of(folder, aide, command)
    made.verdict(report())

    def ended() -> bool:
        made.is_due = True
        made.status(node(), {}, "peace", {})
        return bool(made.failures.words)

    until(ended)
    made.close()
    return made.failures.words


def test_who_refuses_is_told_of_in_the_status(aide: Aide, tmp_path: Path) -> None:
    server, other = Server(503), Server()
    assert failure_of(aide, tmp_path, notify("webhook", "--url", server.url)) == [
        "run_on_decision of 5eed0000-0003: the command failed with status 1"
    ]
    # No token goes where an answer leads.
    server.status, server.where = 302, other.url
    (tmp_path / "token").write_text("t0ken")
    command = notify("event", "--url", server.url, "--token-file", f"{tmp_path}/token")
    assert failure_of(aide, tmp_path, command)
    assert other.posts == []
    for one in (server, other):
        one.shutdown()
        one.server_close()


def test_who_never_answers_holds_nobody_up(aide: Aide, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        made = teller_of(tmp_path, aide, notify("webhook", "--url", url, "--timeout", "1.5"))
        began = time.monotonic()
        for number in range(3):
            made.verdict(report()._replace(decision=f"5eed0000-{number:04d}"))
        assert time.monotonic() - began < 0.5
        ran = tmp_path / "ran"
        aide.send({"do": "run", "command": f"/usr/bin/touch {ran}", "decision": "d", "stdin": ""})
        until(ran.exists)
        assert time.monotonic() - began < 1.5, "what tells of a kill has places of its own"
        made.close()


def test_many_reports_leave_room_for_what_tells_of_a_kill() -> None:
    waiting = WaitingRequests()
    assert all(waiting.put("hook", {"n": n}) for n in range(MOST))
    assert not waiting.put("hook", {})
    assert waiting.put("run", {})
    assert waiting.put("termination_message", {})
