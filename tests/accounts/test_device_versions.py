"""What versions of runc and systemd do to devices, and what is only said with doubt."""

import pytest
from tests.accounts.device_worlds import changed, only, spec, unit, versions, workload

from tests.accounts.device_worlds import CGROUPFS, HOOK, SYSTEMD, World  # isort: skip
from tests.accounts.test_device_diagnosis import (
    ALLOWED,
    GIVEN,
    LINKS,
    RELOADED,
    diagnosis,
    healthy,
    under_systemd,
)

from seawall.accounts.devices.reasons.versions import (
    UNKNOWN,
    VersionVerdict,
    always_reloads,
    rewrites_on_update,
    skips_links,
)
from seawall.host.host import Unread
from seawall.readings.scope_devices import ScopeDevices, UnitDevices

OLD, NEW = "runc version 1.1.5", "runc version 1.3.0"


@pytest.mark.parametrize(("said", "systemd", "says"), [
    ("runc version 1.1.2", 252, "no"), ("runc version 1.1.3", 252, "yes"),
    ("runc version 1.1.6", 252, "yes"), ("runc version 1.1.7", 252, "no"),
    ("runc version 1.1.7-rc.1", 252, "yes"), ("runc version 1.1.5+ds1", 252, "maybe"),
    ("runc version 1.1.4-0ubuntu1~22.04.3", 249, "maybe"), ("crun version 1.1.5", 252, "no"),
    (NEW, 239, "yes"), (NEW, 240, "no"), (NEW, None, "unknown"), (OLD, None, "yes"),
    ("runc version 1.1.5+dev", 252, "yes"), ("something else", 252, "unknown"),
])  # fmt: skip
def test_f4(said: str, systemd: int | None, says: str) -> None:
    assert skips_links(versions(said, systemd=systemd)).says == says


@pytest.mark.parametrize(("said", "reloads", "rewrites"), [
    ("runc version 1.2.4", "yes", "no"), ("runc version 1.2.5", "no", "no"),
    ("runc version 1.0.0-rc93", "yes", "yes"), ("runc version 1.0.0", "yes", "no"),
    ("crun version 0.9", "no", "no"),
])  # fmt: skip
def test_f5_and_f6(said: str, reloads: str, rewrites: str) -> None:
    assert always_reloads(versions(said)).says == reloads
    assert rewrites_on_update(versions(said)).says == rewrites
    assert always_reloads(versions(said, systemd=229)).says == "no"


def test_of_several_it_is_only_sure_where_the_bundle_names_one() -> None:
    both = versions(OLD, NEW)
    assert skips_links(both) == VersionVerdict("maybe", "runc 1.1.5 (there is runc 1.3.0 too)")
    for told, says in (("/usr/bin/0", "yes"), ("/usr/bin/1", "no")):
        named = type(both)(runtimes=both.runtimes, bundle_paths=(told,), systemd=252,
                           systemd_text="252", units_loaded=None)  # fmt: skip
        assert skips_links(named).says == says
    assert skips_links(Unread("x", "no_answer")) == UNKNOWN


def test_f4_names_the_runc_that_did_it_and_no_innocent() -> None:
    world = under_systemd(scopes=unit("char-pts rwm"), kernel=RELOADED)
    found = diagnosis(changed(world, versions=versions(OLD)))
    assert found.mode == "F4"
    assert "Here: runc 1.1.5." in found.cause
    assert "Here:" not in diagnosis(world).cause
    innocent = diagnosis(changed(world, versions=versions(NEW)))
    assert innocent.mode == "F3"
    assert "runc" not in innocent.cause


def test_before_the_reload_the_words_are_as_sure_as_the_versions() -> None:
    world = under_systemd(scopes=unit("char-pts rwm"))
    said = {
        key: changed(world, versions=found).table().about_to_break[0].why
        for key, found in {"old": versions(OLD), "new": versions(NEW),
                           "ds": versions("runc version 1.1.5+ds1")}.items()
    }  # fmt: skip
    assert "is missing, and runc 1.1.5 leaves out such rules" in said["old"]
    assert "makes units that systemd always wants to reload" in said["old"]
    assert "runc 1.1.5+ds1 (its distribution may have mended that)" in said["ds"]
    assert "runc" not in said["new"]


def test_links_that_are_missing_are_told_before_anything_is_started() -> None:
    """Those of now had them when they were started: systemd knows of their devices."""
    world = under_systemd(versions=versions(OLD))
    found = world.table().about_to_break
    assert [(one.workload, one.device) for one in found] == [(None, path) for path in GIVEN]
    assert "/dev/char/195:255 is missing, and runc 1.1.5" in found[0].why
    assert {one.when for one in found} == {"the next container that is started with it"}
    assert not changed(world, links=LINKS).table().about_to_break
    assert not changed(world, versions=versions(NEW)).table().about_to_break
    assert not healthy(versions=versions(OLD)).table().about_to_break, "systemd has no say"


def test_an_update_takes_away_only_where_runc_is_so_old() -> None:
    without = tuple(path for path in GIVEN if "uvm" not in path)
    by_hand = healthy(specs=spec(only(*without)))
    assert [one.when for one in by_hand.table().about_to_break] == [
        "the next update of the container"
    ]
    new = changed(by_hand, versions=versions(OLD)).table().about_to_break
    assert [one.when for one in new] == ["the next start of the container"]
    old = changed(by_hand, versions=versions("runc version 1.0.0-rc93")).table().about_to_break
    assert [one.when for one in old] == ["the next update of the container"]


def hooked(cgroup: str, **told: object) -> World:
    """NVIDIA's legacy way: a hook makes nodes and rules, and the config tells nothing."""
    environment = {"NVIDIA_VISIBLE_DEVICES": "all"}
    return World(**({
        "cgroup": cgroup, "workload": workload(cgroup), "own": only(*GIVEN), "kernel": ALLOWED,
        "specs": spec({}, hooks=(HOOK,), environment=environment),
    } | told))  # type: ignore[arg-type]  # fmt: skip


def test_what_a_hook_gave_is_about_to_be_taken_away() -> None:
    systemd = hooked(SYSTEMD, scopes=unit("char-pts rwm"), versions=versions(OLD))
    assert systemd.container().diagnosis is None
    found = systemd.table().about_to_break
    assert {one.when for one in found} == {"the next daemon-reload"}
    assert "nvidia-container-runtime-hook gives it at start" in found[0].why
    assert not hooked(CGROUPFS, versions=versions(OLD)).table().about_to_break
    rewriting = hooked(CGROUPFS, versions=versions("runc version 1.0.0-rc10"))
    assert {one.when for one in rewriting.table().about_to_break} == {
        "the next update of the container"}  # fmt: skip


def test_f6_does_not_blame_a_runc_that_leaves_devices_alone() -> None:
    cause = diagnosis(healthy(kernel=RELOADED, versions=versions(NEW))).cause
    assert "an update of the container by runc 1.3.0 does not" in cause
    old = diagnosis(healthy(kernel=RELOADED, versions=versions("runc version 1.0.0-rc93"))).cause
    assert "(here: runc 1.0.0-rc93)" in old


def test_a_slice_whose_rules_lack_it_is_named_and_no_reload_is_blamed() -> None:
    """Somebody's drop-in for kubepods.slice: nothing was lost, it was never allowed."""
    closed = UnitDevices("closed", (), ("/etc/systemd/system/kubepods.slice.d/10-no.conf",))
    mine = unit("/dev/char/195:255 rw", "/dev/char/237:0 rw", "/dev/char/195:1 rw")
    scopes = ScopeDevices({**mine.by_unit, "kubepods.slice": closed}, True)
    one = under_systemd(scopes=scopes, kernel=RELOADED).container()
    assert one.diagnosis is not None
    assert one.diagnosis.mode == "unnamed"
    (uvm,) = [row for row in one.devices if row.path == "/dev/nvidia-uvm"]
    assert uvm.broken_at == "systemd"
    assert uvm.layers["systemd"].why.startswith("kubepods.slice, which cri-containerd-")
