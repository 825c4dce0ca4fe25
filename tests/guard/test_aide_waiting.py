"""More at once than the aide begins at once: who waits, what is lost, and that it is told."""

import json
import os
import select
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.guard.aides import answer, below, lives, started, until
from tests.guard.telling import CGROUP, POD_UID, groups, lines_of, node, outcome, verdict
from tests.guard.test_tell_teller import ENFORCE, Heard, opened

from seawall.guard import aide_process
from seawall.guard.tell import waiting_requests
from seawall.guard.tell.child import LIMITS
from seawall.guard.tell.failures import Failures

CONTAINERS = 6
SLOW = 0.3


def pod(kubelet: Path) -> tuple[list[dict[str, Any]], list[Path]]:
    """A request for each of its containers, and the file that it means."""
    asked, files = [], []
    for number in range(CONTAINERS):
        container = f"{number:064x}"
        file = kubelet / f"kubelet/pods/{POD_UID}/containers/c{number}/0a1b2c3d"
        file.parent.mkdir(parents=True)
        file.touch()
        config = {"mounts": [{"source": str(file)}]}
        (kubelet / f"{container}.json").write_text(json.dumps(config))
        cgroup = CGROUP.rpartition("-")[0] + f"-{container}.scope"
        asked.append({"do": "termination_message", "cgroup": cgroup, "words": f"killed c{number}",
                      "decision": "d-1"})  # fmt: skip
        files.append(file)
    return asked, files


def test_each_of_six_containers_gets_its_message_from_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    from seawall.guard.tell import termination

    write = termination.write
    slow: Any = lambda *given: time.sleep(SLOW) or write(*given)  # noqa: E731 - in the aide only
    monkeypatch.setattr(termination, "write", slow)
    asked, files = pod(tmp_path)
    places = {"kubelet": (f"{tmp_path}/kubelet",), "configs": (f"{tmp_path}/{{id}}.json",)}
    with started(**places, roots=("",)) as aide:
        for request in asked:
            assert aide.send(request)
        until(lambda: all(file.read_text() for file in files), "six messages")
    assert [file.read_text() for file in files] == [f"killed c{n}\n" for n in range(CONTAINERS)]


def command(folder: Path, number: int) -> str:
    """Ends when the test says so."""
    script = f"touch {folder}/began.{number}; while ! test -e {folder}/go; do sleep 0.05; done"
    return f"/bin/sh -c '{script}'"


def begun(folder: Path) -> int:
    return len(list(folder.glob("began.*")))


def test_a_fifth_command_waits_for_a_place_and_holds_nobody_up(tmp_path: Path) -> None:
    most = LIMITS["run"][0]
    with started() as aide:
        for number in range(most + 2):
            assert aide.send({"do": "run", "command": command(tmp_path, number), "decision": "d"})
        until(lambda: begun(tmp_path) == most, "as many as there are places")
        assert answer(aide, {"do": "ping"})["did"] == "ping"
        assert begun(tmp_path) == most
        assert aide.take("run") is None, "nothing has ended, and nothing was refused"
        (tmp_path / "go").touch()
        until(lambda: begun(tmp_path) == most + 2, "those that waited")


def test_what_does_not_fit_is_told_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the success of all the others does not hide it."""
    monkeypatch.setattr(waiting_requests, "MOST", 2)
    most = LIMITS["run"][0]
    with started() as aide:
        for number in range(most + 2 + 3):
            assert aide.send({"do": "run", "command": command(tmp_path, number), "decision": "d"})
        answer(aide, {"do": "ping"})
        (tmp_path / "go").touch()
        until(lambda: begun(tmp_path) == most + 2, "those that have a place or wait for one")
        until(lambda: not below(aide.pid), "all have ended")
        answer(aide, {"do": "ping"})  # behind their answers
        found = aide.take("run")
    assert found is not None
    problem = f"{most} of these still run, 2 wait: not started"
    assert (found["problem"], found["failed"]) == (problem, 3)
    assert begun(tmp_path) == most + 2
    words = f"run_after_kill of d: {problem} (the last of 3 that failed)"
    assert Failures().learn("run", found) == words


def test_where_no_place_will_be_free_again_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seawall.guard.tell import errands
    from seawall.guard.tell.child import Child

    ours, theirs = (fd for fd in os.pipe2(os.O_NONBLOCK))
    told: list[dict[str, Any]] = []
    ends = socket.socketpair()
    desk = errands.Desk(ends[0], errands.Errands())
    monkeypatch.setattr(
        errands.Desk, "answer", lambda _desk, kind, decision, words: told.append(words)
    )
    monkeypatch.setattr(desk.spares, "prepare", lambda: None)
    for _ in range(LIMITS["run"][0]):
        desk.children.append(Child("run", 0, ours, "d"))
    desk.take({"do": "run", "command": "true"})
    assert (len(desk.waiting), told) == (1, [])
    for child in desk.children:
        child.is_given_up = True
    desk.tend()
    desk.take({"do": "run", "command": "true"})
    assert [words["problem"] for words in told] == ["4 of these do not end: not started"] * 2
    assert len(desk.waiting) == 0
    for end in ends:
        end.close()
    os.close(ours)
    os.close(theirs)


def test_who_waits_when_the_guard_ends_is_told_of(tmp_path: Path) -> None:
    ours, log = os.pipe()
    before = os.dup(2)
    os.dup2(log, 2)
    try:
        aide = aide_process.start()
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(log)
    for number in range(LIMITS["run"][0] + 1):
        aide.send({"do": "run", "command": command(tmp_path, number)})
    answer(aide, {"do": "ping"})
    pid = aide.pid
    aide.close()
    until(lambda: not lives(pid), "it ends")
    (tmp_path / "go").touch()  # nobody ends a command that runs
    assert select.select([ours], [], [], 5)[0]
    assert os.read(ours, 1000) == b"seawall guard's aide: 1 errands were not begun: it ends\n"
    os.close(ours)


def test_a_failure_is_kept_until_it_is_taken(tmp_path: Path) -> None:
    with started() as aide:
        for number, code in enumerate((0, 3, 0, 0)):
            script = f"touch {tmp_path}/began.{number}; exit {code}"
            assert aide.send({"do": "run", "command": f"/bin/sh -c '{script}'"})
            until(lambda wanted=number + 1: begun(tmp_path) == wanted, "it has begun")
            until(lambda: not below(aide.pid), "it has ended")
        answer(aide, {"do": "ping"})
        found = aide.take("run")
        assert found is not None
        assert found["problem"] == "the command failed with status 3"
        assert aide.take("run") is None
        assert answer(aide, {"do": "run", "command": "true"})["problem"] == ""


class Full(Heard):
    """There, and takes nothing that is to be done after a kill."""

    def send(self, request: dict[str, Any]) -> bool:
        super().send(request)
        return request["do"] not in ("termination_message", "run")


def test_what_the_aide_does_not_take_is_told(tmp_path: Path) -> None:
    for teller in opened(tmp_path, Full(), ENFORCE._replace(run_after_kill="/bin/true")):
        teller.verdict(verdict())
        teller.outcome(outcome())
        said = [line["sentence"] for line in lines_of(tmp_path / "decisions.jsonl")][2:]
        why = "of 5eed0000-0001: its aide has too much to do: shop/cart/worker"
        assert said == [f"no termination message {why}", f"run_after_kill {why}"]
        teller.status(node(), groups(), "short", {})
        assert not set(said) - set(teller.problems)
