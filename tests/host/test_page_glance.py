"""Looks that do not wait: marks that settle frames, pieces that are asked once, known names."""

import os
from pathlib import Path

import pytest

from seawall.host.page_trace import frame_flags, glance
from seawall.host.page_trace.frame_ledger import FrameGroup, FrameLedger
from seawall.host.page_trace.glance import FrameExaminer, Settling
from seawall.host.page_trace.symbol_table import SymbolTable
from seawall.host.page_trace.symbols import Symbols
from seawall.host.page_trace.tasks import Tasks
from seawall.host.page_trace.traced_frames import TracedFrames

KALLSYMS = """\
ffffffff81000000 T _stext
ffffffff81000100 t packet_set_ring.isra.0
ffffffff81000200 T __alloc_pages_noprof
ffffffff81000200 D no_text
ffffffffc0000000 t nv_alloc_pages\t[nvidia]
ffffffff81000180 t late_one
"""


def test_marks_settle_with_time() -> None:
    settling = Settling(0.5)
    assert settling.before(10.0) == 0
    settling.mark(10.0, 3)
    settling.mark(10.2, 4)
    assert [settling.before(now) for now in (10.4, 10.5, 10.69, 10.7)] == [0, 3, 3, 4]
    assert settling.before(99.0) == 4
    settling.forget()
    assert settling.before(99.0) == 0


class Pages:
    """/proc/kpageflags and kpagecgroup as files, and a ledger with one group."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flags, self.cgroups = folder / "flags", folder / "cgroups"
        self.write({})
        monkeypatch.setattr(frame_flags, "FLAGS_PATH", str(self.flags))
        monkeypatch.setattr(frame_flags, "CGROUPS_PATH", str(self.cgroups))
        self.frames = TracedFrames(1 << 20)
        self.ledger = FrameLedger(Tasks.__new__(Tasks), self.frames)
        self.ledger.groups += [FrameGroup(0, 0, is_compound=False, stretch=s) for s in (0, 5)]
        self.asked = 0
        piece = glance.piece

        def counted(*args: object) -> object:
            self.asked += 1
            return piece(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(glance, "piece", counted)

    def write(self, flags: dict[int, int]) -> None:
        words = b"".join(flags.get(n, 0).to_bytes(8, "little") for n in range(4096))
        self.flags.write_bytes(words)
        self.cgroups.write_bytes(bytes(4096 * 8))

    def look(self, looker: FrameExaminer, settled: int) -> dict[int, int]:
        looker.trust(self.ledger, settled)
        found = looker.examine(self.frames, lambda _: False)
        return {group: one.frames for group, one in found.items()}


def test_a_piece_is_asked_again_only_when_something_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages, looker = Pages(tmp_path, monkeypatch), FrameExaminer()
    for frame in (0, 4, 1000):
        pages.frames.take(frame, 2, 1)
    assert pages.look(looker, settled=1) == {1: 12}
    assert (pages.look(looker, settled=1), pages.asked) == ({1: 12}, 2)
    # The kernel uses one for its slab now: only whoever asks again can see that.
    pages.write({4: 1 << 7})
    assert (pages.look(looker, settled=1), pages.asked) == ({1: 12}, 2)
    pages.frames.free(0, 2)
    assert (pages.look(looker, settled=1), pages.asked) == ({1: 7}, 3)


def test_young_frames_and_those_of_a_gap_are_asked_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages, looker = Pages(tmp_path, monkeypatch), FrameExaminer()
    pages.frames.take(8, 1, 2)  # of stretch 5
    for asked in (1, 2):
        assert (pages.look(looker, settled=5), pages.asked) == ({2: 2}, asked)
    assert (pages.look(looker, settled=6), pages.asked) == ({2: 2}, 3)
    assert (pages.look(looker, settled=6), pages.asked) == ({2: 2}, 3)
    pages.ledger.mistrust()
    assert (pages.look(looker, settled=6), pages.asked) == ({2: 2}, 4)
    pages.write({8: 1 << 10})
    pages.ledger.pause()
    assert pages.look(looker, settled=0) == {2: 1}


def test_symbol_table_say_what_symbols_say(tmp_path: Path) -> None:
    kallsyms, modules = tmp_path / "kallsyms", tmp_path / "modules"
    kallsyms.write_text(KALLSYMS)
    modules.write_text("nvidia 1 0 - Live 0x0\n")
    stacks = [(0xFFFFFFFF81000210, 0xFFFFFFFF81000150), (0xFFFFFFFFC0000001,), (0x10,)]
    known = SymbolTable(str(kallsyms), str(modules))
    told = known.stacks(stacks)
    assert told == [["packet_set_ring"], ["nv_alloc_pages"], ["0x10"]]
    assert told == Symbols(str(kallsyms)).stacks(stacks)
    assert known.stacks([(0xFFFFFFFF81000181,)]) == [["late_one"]]


def test_symbol_table_are_read_again_with_other_modules(tmp_path: Path) -> None:
    kallsyms, modules = tmp_path / "kallsyms", tmp_path / "modules"
    kallsyms.write_text(KALLSYMS)
    modules.write_text("nvidia 1 0 - Live 0x0\n")
    known = SymbolTable(str(kallsyms), str(modules))
    kallsyms.write_text(KALLSYMS.replace("nv_alloc_pages\t[nvidia]", "other\t[other]"))
    assert not known.refresh()
    modules.write_text("other 1 0 - Live 0x0\n")
    assert known.refresh()
    assert known.stacks([(0xFFFFFFFFC0000001,)]) == [["other"]]


@pytest.mark.parametrize("text", ["", "0000000000000000 T hidden\n", None])
def test_hidden_addresses_are_no_names(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "kallsyms").write_text(text)
    known = SymbolTable(str(tmp_path / "kallsyms"), os.devnull)
    assert known.is_hidden
    assert known.stacks([(1,)]) == [[]]
