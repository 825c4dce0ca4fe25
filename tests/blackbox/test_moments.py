"""From a box to what is known at a moment, and to the windows of its rates."""

from bisect import bisect_right
from pathlib import Path

import pytest
from tests.blackbox.box_maker import DECISION, END, HOG, Told, small_box

from seawall.accounts.scene import TopicWindow
from seawall.blackbox import moments as module
from seawall.blackbox.moments import Pass, choose, overlay_passes, passes_until
from seawall.blackbox.overview import summary
from seawall.blackbox.reader import Box
from seawall.host.host import Unread
from seawall.host.recording import Round
from seawall.problems import BundleProblem, UsageProblem
from seawall.readings.memcg import Memcgs
from seawall.readings.meminfo import Meminfo
from seawall.readings.vmstat import Vmstat
from seawall.sources.box_scene import BoxScene
from seawall.sources.box_source import box_source
from seawall.sources.box_ticks import row_of, ticks_between


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Told]:
    path = tmp_path_factory.mktemp("box") / "blackbox"
    return path, small_box(path)


def truth(told: Told, moment: float) -> Round:
    """What was last answered to each question, among the passes that are in the box."""
    kept = {one.unix_seconds for one in told.frames if one.kind == "round"}
    passes = [(of, t, r) for of, t, r in told.passes if t <= moment and t in kept]
    last_full = max(place for place, (of, *_) in enumerate(passes) if of == "full")
    return overlay_passes(round_ for *_, round_ in passes[last_full:])


@pytest.mark.parametrize("before", [0, 0.35, 7, 22.2, 31, 45, 59.9, 75, 200, 333, 600])
def test_what_is_known_is_what_was_asked_last(box: tuple[Path, Told], before: float) -> None:
    path, told = box
    moments = choose(passes_until(Box.open(str(path)), END - before))
    known = truth(told, END - before)
    assert moments.known == known
    assert moments.base is not None
    assert moments.now.unix_seconds <= END - before


@pytest.mark.parametrize("before", [0, 3, 22.2, 45, 59.9, 75, 200, 333])
def test_windows_are_long_enough_and_of_what_was_asked(
    box: tuple[Path, Told], before: float
) -> None:
    path, _ = box
    moments = choose(passes_until(Box.open(str(path)), END - before))
    assert moments.near is not None
    assert moments.whole is not None
    for earlier, later in (moments.near, moments.whole):
        assert 2 <= later.monotonic_seconds - earlier.monotonic_seconds <= 61
    assert moments.near[1] == moments.now
    assert moments.near[1].monotonic_seconds - moments.near[0].monotonic_seconds < 12
    assert moments.whole[0].is_whole
    assert moments.whole[1] == moments.base


def test_rates_are_those_of_the_machine(box: tuple[Path, Told]) -> None:
    """The counters of the box rise by what their names are long, each second."""
    for at in ("-0.3s", "-37s", "-200s"):
        window = box_source(str(box[0]), at).later_scene().get(TopicWindow[Vmstat])
        assert isinstance(window, TopicWindow)
        gain = window.later.counters["pgmajfault"] - window.earlier.counters["pgmajfault"]
        assert gain / window.seconds == pytest.approx(len("pgmajfault"), rel=0.1)


def test_a_topic_that_a_light_pass_holds_in_part_takes_the_whole_ones(
    box: tuple[Path, Told],
) -> None:
    """Half a minute before the burst: the node's counters are fresh, the cgroups are not."""
    source = box_source(str(box[0]), "-37s")
    scene = source.later_scene()
    assert isinstance(scene, BoxScene)
    vmstat, groups = scene.get(TopicWindow[Vmstat]), scene.get(TopicWindow[Memcgs])
    assert isinstance(vmstat, TopicWindow)
    assert vmstat.seconds < 12
    if isinstance(groups, TopicWindow):  # this machine has cgroups
        assert groups.seconds > 50
    assert any("rates of that are over the 60 s" in note for note in source.notes)


def test_what_is_known_now_is_not_what_a_window_began_with(box: tuple[Path, Told]) -> None:
    meminfo = box_source(str(box[0]), None).later_scene().get(Meminfo)
    assert meminfo.mem_available == 40 << 20


def test_one_pass_gives_no_rate() -> None:
    one = Pass(END, 5.0, "b", True, Round(files={"/proc/vmstat": b"pgfault 1\n"}))
    moments = choose([one])
    assert (moments.near, moments.whole, moments.old_seconds) == (None, None, 0.0)


def test_another_boot_is_no_begin_of_a_window() -> None:
    first = Pass(END - 5, 900.0, "a", True, Round())
    later = Pass(END, 5.0, "b", False, Round(files={"/proc/x": b"1"}))
    moments = choose([first, later])
    assert moments.near is None
    assert moments.base is None
    assert moments.known.files == {"/proc/x": b"1"}


def test_a_gap_is_said(box: tuple[Path, Told], tmp_path: Path) -> None:
    """The last minute of the box is cut out of the middle of a longer one."""
    told = box[1]
    hole = [f for f in told.frames if not END - 300 < f.unix_seconds < END - 120]
    path = tmp_path / "box"
    rewritten(path, told, hole)
    source = box_source(str(path), "-150s")
    assert any("nothing was recorded at" in note for note in source.notes)
    [gap] = summary("b", Box.open(str(path)).heads).gaps
    assert gap.seconds == pytest.approx(180, abs=25)
    assert not any("nothing was" in note for note in box_source(str(path), "-31s").notes)
    # A line that the next recorder wrote of a decision in it is neither a tick nor a pass.
    heads = Box.open(str(path)).heads
    middle = next(h for h in heads if h.unix_seconds >= END - 120)
    late = middle._replace(
        kind="line", unix_seconds=middle.unix_seconds - 90,
        monotonic_seconds=middle.monotonic_seconds - 90,
    )  # fmt: skip
    assert summary("b", [*heads, late]).gaps == (gap,)


def rewritten(path: Path, told: Told, frames: list) -> None:  # type: ignore[type-arg]
    from tests.blackbox.box_maker import MIB, write

    write(Told(told.plot, frames), path, 4 * MIB)


@pytest.mark.parametrize("place", [-1, -30, -200])
def test_a_torn_frame_does_not_harm_those_before_it(
    box: tuple[Path, Told], tmp_path: Path, place: int
) -> None:
    """-1: what a power cut leaves."""
    data = bytearray(box[0].read_bytes())
    whole = Box.open(str(box[0]))
    rounds = [head for head in whole.heads if head.kind == "round"]
    lost = rounds[place]
    data[lost.offset + 70] ^= 0xFF
    path = tmp_path / "torn"
    path.write_bytes(data)
    torn = Box.open(str(path))
    assert torn.torn == 1
    before = choose(passes_until(torn, lost.unix_seconds))
    assert lost.unix_seconds - 0.2 < before.now.unix_seconds < lost.unix_seconds
    assert before.known == truth(box[1], before.now.unix_seconds)


def test_every_tick_of_the_burst_is_a_row(box: tuple[Path, Told]) -> None:
    path, told = box
    ticks = ticks_between(Box.open(str(path)), END - 60, END)
    wanted = [row_of(tick) for tick in told.ticks if tick.unix_seconds >= END - 60]
    assert len(wanted) > 500
    burst_from = told.plot.short_at - 25
    assert [row for row in ticks.rows if row.unix_seconds > burst_from] == [
        row for row in wanted if row.unix_seconds > burst_from
    ]
    assert ticks.lost == 0
    assert [kill.words for kill in ticks.kills] == ["its OOM killer killed 1 process"]
    assert ticks.rows[-1].leader == HOG


def test_names_of_moments(box: tuple[Path, Told]) -> None:
    path, told = box
    times = [tick.unix_seconds for tick in told.ticks]
    decided = times[bisect_right(times, told.plot.short_at + 5)]
    notes = box_source(str(path), DECISION).notes
    assert any(DECISION in note for note in notes)
    tick = told.ticks[-40]
    by_number = box_source(str(path), f"#{tick.number}")
    by_time = box_source(str(path), f"@{tick.unix_seconds:.3f}")
    assert by_number.notes == by_time.notes
    assert abs(decided - told.plot.short_at - 5) < 0.2


def test_more_passes_than_memory_bears_are_refused(
    box: tuple[Path, Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that a forged box asks once costs it nothing to repeat."""
    monkeypatch.setattr(module, "ANSWERS_MOST", 1000)
    with pytest.raises(BundleProblem, match="more than 1,000 answers from 2026-11-23T"):
        passes_until(Box.open(str(box[0])), END)


def test_before_the_first_pass(box: tuple[Path, Told]) -> None:
    with pytest.raises(UsageProblem, match="holds 2026-11-23T"):
        box_source(str(box[0]), "2026-11-22T00:00:00Z")


def test_what_was_never_asked_is_blind_in_the_boxs_words(box: tuple[Path, Told]) -> None:
    answer = box_source(str(box[0]), None).first.host.read("/proc/slabinfo")
    assert isinstance(answer, Unread)
    assert answer.detail == "the black box does not record it"
