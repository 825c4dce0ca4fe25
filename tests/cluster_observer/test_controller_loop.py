"""A controller ends when it is told to, at whatever line the signal comes."""

import itertools
import sys
import threading
from types import FrameType
from typing import Any, cast

from seawall.cluster.kube.controller_loop import ControllerLoop
from seawall.cluster.kube.kube_client import KubeClient
from seawall.cluster.kube.leader_lease import LeaderLease
from seawall.cluster.kube.list_watch import ObjectEvent, ObjectEventKind

END_SECONDS = 20.0


class IdleLease:
    """Contends for nothing."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def run(self) -> None:
        self.ended.wait()

    def stop(self) -> None:
        self.ended.set()


class IdleLoop(ControllerLoop):
    """Its rounds take what nobody tells."""

    ROUND_SECONDS = BATCH_SECONDS = 0.001

    def turn(self) -> None:
        synced: ObjectEvent[Any] = ObjectEvent(ObjectEventKind.SYNCED, 0.0)
        self._queue.sink("nodes", lambda _: None)(synced)
        self._take_events()

    def _watch_all(self) -> None:
        """Nothing."""


def interrupted_at(line: int, turns: list[bool]) -> bool:
    """Whether it ended; ``stop`` is called at the n-th line that its thread runs in a round, as a
    signal's handler is.
    """
    loop = IdleLoop(cast("KubeClient", None), cast("LeaderLease", IdleLease()))
    numbers = itertools.count()
    is_in_round = False

    def look(frame: FrameType, event: str, _: object) -> Any:
        nonlocal is_in_round
        is_in_round = is_in_round or frame.f_code.co_name == "turn"
        if is_in_round and event == "line" and next(numbers) == line:
            turns.append(True)
            loop.stop()
        return look

    def run() -> None:
        sys.settrace(look)
        try:
            loop.run()
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(END_SECONDS)
    return not thread.is_alive()


def test_a_stop_at_any_line_of_a_round_ends_the_loop() -> None:
    """Of an Event that a round waits for, some lines hold the lock that ``set`` wants."""
    stops: list[bool] = []
    assert all(interrupted_at(line, stops) for line in range(60))
    assert len(stops) == 60
