"""A node whose clock was wrong: its record ends with what it wrote last."""

from pathlib import Path

import pytest
from tests.blackbox.boxes import NO_MERCY

from seawall.blackbox.frame import Frame, seal_frame
from seawall.blackbox.moments import Pass, boot_at, passes_until
from seawall.blackbox.reader import Box
from seawall.blackbox.ring import RingFile
from seawall.cli.main import main
from seawall.host.bundle import open_bundle
from seawall.host.recording import Round
from seawall.recorder.frame_chain import FrameChain
from seawall.sources.box_source import box_source, export_source, span_of

FIRST, LAST = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
NTP = 1_795_600_000.0
"""When the first boot's clock was set."""
HOUR, DAY = 3600.0, 86_400.0
RTCS = [30 * DAY, HOUR, -30 * DAY, -HOUR, 0.0]


class Making:
    """A box, frame by frame."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._ring = RingFile.open(self.path, 1 << 20, share_most=NO_MERCY)
        self._chain = FrameChain(is_peace=True)

    def run(self, boot: str, unix: float, monotonic: float, passes: int) -> None:
        """One every ten seconds, the first of them a key."""
        self._chain = FrameChain(is_peace=True)
        for number in range(passes):
            now, up = unix + 10 * number, monotonic + 10 * number
            round_ = Round()
            round_.probes["now", ""] = {"unix_seconds": now, "monotonic_seconds": up}
            round_.files["/proc/uptime"] = f"{up:.2f} 1.00\n".encode()
            waiting = self._chain.round(round_, "full", 1)
            frame = Frame(self._ring.next_sequence, waiting.kind, now, up, boot, 1, {})
            self._ring.write(seal_frame(frame, waiting.payload))

    def close(self) -> str:
        self._ring.close()
        return self.path


def two_boots(tmp_path: Path, ahead: float) -> str:
    """The first begins with a wrong RTC and is set right a minute later; the second dies."""
    made = Making(tmp_path / "box")
    made.run(FIRST, NTP - 60 + ahead, 20.0, 6)
    made.run(FIRST, NTP, 80.0, 6)
    made.run(LAST, NTP + HOUR - 60, 20.0, 12)
    return made.close()


def now(path: str, at: str | None) -> Pass:
    return box_source(path, at).moments.now


@pytest.mark.parametrize("ahead", RTCS)
@pytest.mark.parametrize(
    ("at", "uptime"), [(None, 130), ("-10s", 120), ("-90s", 40), ("-110s", 20)]
)
def test_the_end_is_of_the_boot_that_wrote_last(
    tmp_path: Path, ahead: float, at: str | None, uptime: int
) -> None:
    path = two_boots(tmp_path, ahead)
    found = now(path, at)
    assert (found.boot_id, found.monotonic_seconds) == (LAST, uptime)
    assert not any("nothing was recorded" in note for note in box_source(path, at).notes)
    assert main(["why", "--from", path]) in (0, 1, 3)


@pytest.mark.parametrize("ahead", RTCS)
def test_what_lies_before_that_boot_is_of_the_one_before(tmp_path: Path, ahead: float) -> None:
    found = now(two_boots(tmp_path, ahead), "-3620s")
    assert (found.boot_id, found.unix_seconds) == (FIRST, NTP + 30)


@pytest.mark.parametrize("ahead", [30 * DAY, -30 * DAY])
def test_a_time_as_the_clock_showed_it(tmp_path: Path, ahead: float) -> None:
    """Before it was set and behind that, in one boot; and in the other one."""
    path = two_boots(tmp_path, ahead)
    for unix, boot, uptime in (
        (NTP - 60 + ahead + 20, FIRST, 40), (NTP + 20, FIRST, 100), (NTP + HOUR - 10, LAST, 70),
    ):  # fmt: skip
        found = now(path, f"@{unix:.0f}")
        assert (found.unix_seconds, found.boot_id, found.monotonic_seconds) == (unix, boot, uptime)


def test_a_clock_that_was_set_back_in_the_last_boot(tmp_path: Path) -> None:
    made = Making(tmp_path / "box")
    made.run(LAST, NTP + 30 * DAY, 20.0, 6)
    made.run(LAST, NTP, 80.0, 6)
    path = made.close()
    assert now(path, None).monotonic_seconds == 130
    assert now(path, "-30s").monotonic_seconds == 100
    assert now(path, "-80s").monotonic_seconds == 50, "the clock showed the next month then"
    box = Box.open(path)
    assert span_of(box).end_unix_seconds == NTP + 50
    assert [one.monotonic_seconds for one in passes_until(box, NTP + 20)][-1] == 100
    out = str(tmp_path / "out.tar.gz")
    assert main(["blackbox", "export", path, "--for", "200", "-o", out]) == 0
    assert export_source(open_bundle(out), out, None).moments.now.monotonic_seconds == 130


def test_the_same_of_an_export(tmp_path: Path) -> None:
    path, out = two_boots(tmp_path, 30 * DAY), str(tmp_path / "out.tar.gz")
    assert main(["blackbox", "export", path, "-o", out]) == 0
    for at, uptime in ((None, 130), ("-10s", 120)):
        found = export_source(open_bundle(out), out, at).moments.now
        assert (found.boot_id, found.monotonic_seconds) == (LAST, uptime)


def test_of_two_that_recorded_a_moment_the_later_one_counts(tmp_path: Path) -> None:
    box = Box.open(two_boots(tmp_path, HOUR + 4))  # an RTC of another time zone
    for seconds in range(0, 110, 7):
        boot = boot_at(box, NTP + HOUR - 60 + seconds)
        assert boot is not None
        assert boot.boot_id == LAST
