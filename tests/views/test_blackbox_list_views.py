"""``blackbox list``: one of a thing is not many."""

from seawall.blackbox.overview import BootSummary, Stretch
from seawall.views.blackbox_list_text import lines
from seawall.views.blackbox_page import BoxPage
from seawall.views.terminal import Paper

HEAD = {"host": {"node": "node-7", "kernel": "6.1.0"}}


def shown(frames: dict[str, int], boots: int = 1) -> str:
    span = Stretch(1_790_000_000.0, 1_790_000_090.0)
    boot = BootSummary("c8d08c31", span, frames, 9000, (), (span,) * 7)
    page = BoxPage("/box", 1 << 26, 0, 0, [boot] * boots, [])
    return "\n".join(lines(HEAD, page, Paper(), whole=False))


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
