# SPDX-License-Identifier: Apache-2.0
"""Uncounted memory that grows, live, from a bundle and a black box: critical while it goes on with
less than a minute left, never once a load has ended.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from tests.blackbox.box_maker import END, Plot, World, small_box

from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.scene import Middle, TopicWindow
from seawall.blackbox.moments import choose, passes_until
from seawall.blackbox.reader import Box
from seawall.cli.blackbox_export import chosen
from seawall.cli.source_options import open_source
from seawall.findings.finding import Finding, Judged
from seawall.findings.policy import Policy
from seawall.findings.rule import load_rules
from seawall.findings.rule_schedule import RuleSchedule
from seawall.host.bundle import BundleHost
from seawall.host.bundle_writer import write_bundle
from seawall.host.host import JSON, READ_LIMIT_BYTES, Unread
from seawall.host.live import LiveHost
from seawall.readings.meminfo import Meminfo
from seawall.sources.box_source import box_source
from seawall.sources.source import Source

RULE = next(rule for rule in load_rules() if rule.id == "SW102")
LOAD_SECONDS, LOAD_ENDS = 30.0, 12.0


def leak(before_end: float) -> float:
    """Half a minute at 2 % of the node a second, and no end."""
    return 0.1 + 0.02 * max(0.0, 40.0 - before_end)


def model_load(before_end: float) -> float:
    """60 % of the node in 30 s, over twelve seconds before the end."""
    going = min(max(LOAD_SECONDS + LOAD_ENDS - before_end, 0.0), LOAD_SECONDS)
    return 0.1 + 0.6 * going / LOAD_SECONDS


def all_judged(source: Source) -> list[Judged]:
    return list(RuleSchedule(source, [RULE], Policy(), time.monotonic, audit=False).everything())


def judged(path: Path, at: str) -> Finding:
    [item] = all_judged(box_source(str(path), at))
    return item.finding


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("leak") / "blackbox"
    small_box(path, uncounted_share=leak)
    return path


@pytest.mark.parametrize("at", ["-0.3s", "-4s", "-9s"])
def test_what_goes_on_is_critical(leaking: Path, at: str) -> None:
    finding = judged(leaking, at)
    assert (finding.verdict, finding.severity) == ("fires", "critical")
    assert "memory is gone in" in finding.headline


def test_the_middle_is_of_that_time(leaking: Path) -> None:
    scene = box_source(str(leaking), "-0.3s").later_scene()
    window, middle = scene.get(TopicWindow[Ledger]), scene.get(Middle[Ledger])
    assert isinstance(window, TopicWindow)
    assert isinstance(middle, Middle)
    assert 0.4 * window.seconds < middle.seconds < 0.6 * window.seconds
    near = scene.get(TopicWindow[Meminfo])
    assert isinstance(near, TopicWindow)
    rate = 0.02 * near.later.mem_total
    grown = middle.value.residual_bytes - window.earlier.residual_bytes
    assert grown / middle.seconds == pytest.approx(rate, rel=0.05)
    assert near.seconds < window.seconds


def test_an_export_tells_the_same(leaking: Path, tmp_path: Path) -> None:
    """With as few passes as fit, the middle one is among them."""
    passes = passes_until(Box.open(str(leaking)), END)
    whole = choose(passes)
    few = choose(chosen(passes))
    assert (few.near_middle, few.whole_middle) == (whole.near_middle, whole.whole_middle)
    assert few.whole_middle is not None


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("load") / "blackbox"
    small_box(path, uncounted_share=model_load)
    return path


@pytest.mark.parametrize("at", ["-9.5s", "-8s", "-6s", "-4s", "-2s", "-0.3s"])
def test_a_model_load_that_stopped_is_at_most_a_warning(loaded: Path, at: str) -> None:
    finding = judged(loaded, at)
    assert (finding.verdict, finding.severity) in OVER


OVER = {("fires", "warning"), ("quiet", "info")}


def test_both_halves_of_a_minute_grew_and_it_is_over(tmp_path: Path) -> None:
    """In peace whole passes are a minute apart and light ones ten seconds: a load that ends six
    seconds before the last of them is in both halves, and in the newest readings.
    """
    told = small_box(tmp_path / "first")
    *_, until = [t for of, t, _ in told.passes if of == "full" and t < END - 150]

    def load(before_end: float) -> float:
        going = min(max(END - before_end - until + 36.0, 0.0), LOAD_SECONDS)
        return 0.1 + 0.85 * going / LOAD_SECONDS

    small_box(tmp_path / "blackbox", uncounted_share=load)
    finding = judged(tmp_path / "blackbox", f"@{until + 0.2:.1f}")
    assert "memory is gone in" in finding.headline
    assert (finding.verdict, finding.severity) == ("fires", "warning")


@pytest.mark.parametrize(
    ("seconds", "severity"), [((0, 3, 6), "critical"), ((0, 1, 3, 6), "critical"),
                              ((0, 6), "warning"), ((0, 1, 6), "warning")],
)  # fmt: skip
def test_of_a_bundle_the_pass_nearest_to_the_middle_counts(
    tmp_path: Path, seconds: tuple[int, ...], severity: str
) -> None:
    """Two passes have none; one in the first sixth of the window tells nothing of its halves."""
    world = World(Plot(uncounted_share=leak))
    rounds = [world.round("full", END - 8 + after) for after in seconds]
    with (tmp_path / "bundle.tgz").open("wb") as file:
        write_bundle(rounds, {"tool_version": "test"}, file)
    asked = argparse.Namespace(bundle=str(tmp_path / "bundle.tgz"), root=None, at=None, timeout=20)
    [item] = all_judged(open_source(asked))
    assert (item.finding.verdict, item.finding.severity) == ("fires", severity)


@pytest.mark.parametrize(
    ("ends_seconds", "severity"),
    [(-3.0, None), (0.0, None), (1.0, "warning"), (2.5, "warning"), (3.0, "warning"),
     (3.5, "warning"), (9.0, "critical")],
)  # fmt: skip
def test_of_a_bundle_a_load_that_ended_is_at_most_a_warning(
    tmp_path: Path, ends_seconds: float, severity: str | None
) -> None:
    """Passes at 0, 3 and 6 s; a load that still runs, with 15 s left, is no other thing than a
    leak.
    """
    world = World(Plot(uncounted_share=model_load))
    first = END - LOAD_ENDS - ends_seconds
    rounds = [world.round("full", first + after) for after in (0, 3, 6)]
    with (tmp_path / "bundle.tgz").open("wb") as file:
        write_bundle(rounds, {"tool_version": "test"}, file)
    asked = argparse.Namespace(bundle=str(tmp_path / "bundle.tgz"), root=None, at=None, timeout=20)
    [item] = all_judged(open_source(asked))
    fired = ("quiet", "info") if severity is None else ("fires", severity)
    assert (item.finding.verdict, item.finding.severity) == fired


class WorldNow:
    """The machine of a plot while the clock goes on, from ``before_end`` seconds before its end."""

    def __init__(self, plot: Plot, before_end: float) -> None:
        self._world = World(plot)
        self._offset = plot.end - before_end - time.monotonic()

    def _host(self) -> BundleHost:
        now = self._offset + time.monotonic()
        return BundleHost(self._world.round("full", now), "not of this plot")

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        return self._host().read(path, limit_bytes)

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        return self._host().read_each(paths)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        return self._host().names(path)

    def link(self, path: str) -> str | Unread:
        return self._host().link(path)

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        return self._host().ask(probe, argument)


def judged_live(plot: Plot, before_end: float) -> Finding:
    """By the two moments for which ``why`` waits on a live machine, and the one between them."""
    host = cast("LiveHost", WorldNow(plot, before_end))
    [item] = all_judged(Source(host, None, live=host))
    return item.finding


def test_live_what_goes_on_with_less_than_a_minute_left_is_critical() -> None:
    finding = judged_live(Plot(uncounted_share=leak), 20.0)
    assert (finding.verdict, finding.severity) == ("fires", "critical")
    assert "memory is gone in" in finding.headline


@pytest.mark.parametrize("ends_seconds", [-1.0, 0.3, 0.8])
def test_live_a_load_that_ended_is_at_most_a_warning(ends_seconds: float) -> None:
    """So many seconds after the first look; 60 % of the node in 30 s."""
    finding = judged_live(Plot(uncounted_share=model_load), LOAD_ENDS + ends_seconds)
    assert (finding.verdict, finding.severity) in OVER


def test_live_a_minute_and_more_is_no_matter_of_seconds() -> None:
    """1 % of the node a second, and all but a tenth of it left."""
    finding = judged_live(Plot(uncounted_share=lambda before: 0.1 + 0.01 * (30 - before)), 28.0)
    assert (finding.verdict, finding.severity) == ("fires", "warning")
