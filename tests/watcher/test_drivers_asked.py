"""What lies behind another process's mmap_lock is asked for only when there is a reason to."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from tests.accounts.test_claims_properties import ledger
from tests.watcher.test_claim_rows import MIB, Pods, rings_of

from seawall.host.host import JSON
from seawall.watcher import deferred_host
from seawall.watcher.claim_rows import ClaimRows
from seawall.watcher.deferred_host import DeferredHost
from seawall.watcher.guard_endpoint import GuardEndpoint
from seawall.watcher.guard_feed import GuardFeed
from seawall.watcher.watcher_reader import Question

RESIDUAL = 4000 * MIB
HOLDER = {"pid": 7, "start_ticks": 1, "devices": [["nvidia", 195, 0, 1, [3]]], "dmabufs": []}
ANSWERS: dict[str, JSON] = {
    "packet_rings": rings_of(0),
    "driver_files": {"processes": [HOLDER], "left_out": 0},  # type: ignore[dict-item]
    "driver_mappings": {"processes": [], "left_out": []},
}
DRIVERS = {"driver_files", "driver_mappings"}


class Noted:
    """In the asker's place: answers at once, and knows what it was asked."""

    is_free = True

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self._told = 0

    def ask(self, question: Question, _: float) -> bool:
        self.asked.append(question)
        return True

    def take(self) -> tuple[Question, JSON] | None:
        if self._told == len(self.asked):
            return None
        self._told += 1
        asked = self.asked[-1]
        return asked, ANSWERS[asked.probe]

    def close(self) -> None:
        """There is no child."""


class Scene:
    """A feed whose residual was ``RESIDUAL`` at its least."""

    def __init__(self) -> None:
        self.guard, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.feed, self.noted = GuardFeed(GuardEndpoint(end.detach())), Noted()
        feed = self.feed
        feed._host = DeferredHost(feed._live, self.noted)  # type: ignore[arg-type]
        feed._claiming = ClaimRows(feed._host, Pods())
        feed._residual.see(1.0, RESIDUAL)

    def probes(self, grown: int) -> set[str]:
        """That are asked while the residual is so much more."""
        self.feed._learning.looks.ledger = ledger(RESIDUAL + grown)
        for _ in range(6):
            self.feed._tell_claims()
            self.feed._host.go_on()
        return {question.probe for question in self.noted.asked}

    def close(self) -> None:
        self.feed.close()
        self.guard.close()


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(deferred_host, "REST_SECONDS", 0.0)
    made = Scene()
    yield made
    made.close()


def test_in_peace_nothing_asks_what_drivers_have_mapped(scene: Scene) -> None:
    """However much there is of it: only what has come since is a reason."""
    assert scene.probes(grown=0) == {"packet_rings"}
    assert scene.probes(grown=256 * MIB - 1) == {"packet_rings"}
    assert scene.probes(grown=256 * MIB) == {"packet_rings", *DRIVERS}


def test_while_the_watcher_is_fast_they_are_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the rings are wanted again after every answer."""
    seconds = [100.0]
    monkeypatch.setattr(deferred_host, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    noted = Noted()
    host = DeferredHost(Live(), noted)  # type: ignore[arg-type]
    for _ in range(200):
        seconds[0] += 0.1
        host.refresh(0.0)
        for probe in ("packet_rings", *sorted(DRIVERS)):
            host.ask(probe)
        host.go_on()
    asked = [question.probe for question in noted.asked]
    assert asked.count("driver_files") == asked.count("driver_mappings") == 2, "each ten seconds"
    assert asked.count("packet_rings") > 20


class Live:
    """A host of which nothing else is asked."""
