"""``blackbox list``: one of a thing is not many."""

from seawall.blackbox.overview import BootSummary, Stretch
from seawall.views.blackbox_list_text import lines
from seawall.views.blackbox_page import BoxEvent, BoxPage
from seawall.views.terminal import Console

HEAD = {"host": {"node": "node-7", "kernel": "6.1.0"}}


def shown(frames: dict[str, int], boots: int = 1) -> str:
    span = Stretch(1_790_000_000.0, 1_790_000_090.0)
    boot = BootSummary("c8d08c31", span, frames, 9000, (), (span,) * 7)
    page = BoxPage("/box", 1 << 26, 0, 0, [boot] * boots, [])
    return "\n".join(lines(HEAD, page, Console(), whole=False))


def test_one_of_each() -> None:
    text = shown({"tick": 1, "round": 1, "line": 1, "mind": 1}, boots=11)
    assert "1 tick, 1 pass, 1 line, 1 mind;" in text
    assert "1 boot before these: --whole" in text
    assert "every tick: 1 time before these: --whole" in text
    assert "64.0 MiB, 1 frame\n" in shown({"mind": 1})


def test_many_of_each() -> None:
    text = shown({"tick": 1200, "round": 2, "line": 3, "mind": 2}, boots=12)
    assert "1,200 ticks, 2 passes, 3 lines, 2 minds;" in text
    assert "2 boots before these: --whole" in text
    assert "frames\n" in text


def event(seconds: float, kind: str, words: str, decision: str = "") -> BoxEvent:
    return BoxEvent(seconds, "boot", 1, kind, decision, words)


def killed(seconds: float, pid: int, name: str) -> BoxEvent:
    line = f"Out of memory: Killed process {pid} ({name}) total-vm:9kB, anon-rss:8kB"
    return event(seconds, "kernel", line)


def told(events: list[BoxEvent], *, whole: bool = False) -> str:
    boots = [BootSummary("b" * 36, Stretch(0.0, 90.0), {"tick": 9}, 9, (), ())]
    page = BoxPage("/box", 9, 0, 0, boots, events)
    return "\n".join(lines(HEAD, page, Console(width=80), whole=whole))


def test_kills_that_follow_one_another_are_one_line() -> None:
    burst = [
        event(10.0, "kernel", "python3 invoked oom-killer: gfp_mask=0xcc0, order=0"),
        killed(10.2, 4, "python3"), killed(11.0, 5, "login"), killed(12.0, 6, "bash"),
        killed(14.0, 7, "bash"), killed(15.0, 8, "agetty"),
    ]  # fmt: skip
    text = " ".join(
        told([*burst, event(16.0, "verdict", "kill it", "1a-1"), killed(500.0, 9, "hog")]).split()
    )
    assert "kernel: 5 OOM kills in 5 s: python3, login, bash and 1 more" in text
    assert "invoked oom-killer" not in text
    assert "1a-1: kill it" in text
    assert "Killed process 9 (hog)" in text, "a single line stays what it is"
    assert "invoked oom-killer" in told(burst, whole=True)
    assert "OOM kill" not in told(
        [event(1.0, "kernel", "oom_reaper: x"), event(2.0, "kernel", "y")]
    )
