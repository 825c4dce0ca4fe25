"""guard check --suggest-scope, and an empty scope that is shouted wherever one looks."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.guard.telling import BOOT, group, node
from tests.views.test_guard_line import changed, text

from seawall.guard.config import parse
from seawall.guard.explain import ExplainedWorkload
from seawall.guard.judge.protection import Protection
from seawall.guard.scope_suggestion import lines, suggestions_of
from seawall.guard.settings import Settings
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller
from seawall.guard.tick_facts import Group

ID = "ab" * 32
OTHER = "c" * 64
UID = "3f0c9a4e-0b1d-4c61-9f4e-2d8a1c6b7e50"
UNDER = UID.replace("-", "_")
SLICES = f"kubepods-burstable.slice/kubepods-burstable-pod{UNDER}.slice/cri-containerd-{ID}.scope"
SSHD = ("/system.slice/ssh.service", "sshd (unit ssh.service)")
APP = ("/system.slice/app.service", "")


def seen(*rows: str | tuple[str, str]) -> list[ExplainedWorkload]:
    pairs = [row if isinstance(row, tuple) else (row, "") for row in rows]
    return [ExplainedWorkload(path, path, role, "") for path, role in pairs]


@pytest.mark.parametrize(
    ("paths", "scope"),
    [
        pytest.param([f"/kubepods.slice/{SLICES}"], ["/kubepods.slice"], id="systemd driver"),
        pytest.param([f"/kubepods/burstable/pod{UID}/{ID}"], ["/kubepods"], id="cgroupfs driver"),
        pytest.param([f"/kubepods/pod{UID}/{ID}", f"/kubepods/besteffort/pod{UID}/{ID}"],
                     ["/kubepods"], id="Guaranteed and BestEffort"),
        pytest.param([f"/kubelet.slice/kubelet-kubepods.slice/kubelet-{SLICES}"],
                     ["/kubelet.slice/kubelet-kubepods.slice"], id="kind"),
        pytest.param([f"/docker/{ID}"], ["/docker"], id="docker, cgroupfs"),
        pytest.param([f"/docker.slice/docker-{ID}.scope"], ["/docker.slice"], id="docker.slice"),
        pytest.param([f"/system.slice/docker-{ID}.scope", SSHD], ["/system.slice"],
                     id="docker, systemd"),
        pytest.param([f"/machine.slice/libpod-{ID}.scope"], ["/machine.slice"], id="podman"),
        pytest.param([f"/docker/{ID}", f"/kubepods/pod{UID}/{ID}", f"/kubepods/pod{UID}/{OTHER}"],
                     ["/kubepods", "/docker"], id="two kinds, the larger first"),
        pytest.param([SSHD, APP], ["/system.slice/app.service"], id="no containers"),
        # What a container, or a user's manager, made inside itself is no subtree of the owner's.
        pytest.param([f"/docker/{ID}", f"/docker/{ID}/kubepods/pod{UID}/{'c' * 64}"], ["/docker"],
                     id="nested"),
    ],
)  # fmt: skip
def test_a_scope_for_what_is_here(paths: list[str | tuple[str, str]], scope: list[str]) -> None:
    found = suggestions_of(seen(*paths))
    assert [one.path for one in found] == scope
    settings = parse("\n".join(lines(found)).encode(), "G")
    assert list(settings.scope) == scope
    # And the guard reaches by it what it was made of.
    protection = Protection(settings)
    reached = [p for row in paths if (p := row if isinstance(row, str) else row[0]) != SSHD[0]]
    assert all(not protection.reason(Group(path, 1, path)) for path in reached)


def test_services_that_the_scope_reaches_too_are_named() -> None:
    found = suggestions_of(seen(f"/system.slice/docker-{ID}.scope", SSHD, APP))
    shown = "\n".join(lines(found))
    assert "/system.slice/app.service" in shown
    assert "protect those that must stay" in shown
    assert "ssh.service" not in shown, "a role protects it anyway"


def test_where_nothing_is_nothing_is_made_up() -> None:
    shown = list(lines(suggestions_of(seen(SSHD))))
    assert all(line.startswith("#") for line in shown)
    assert parse("\n".join(shown).encode(), "G") == Settings()


def test_this_machine(tmp_path: Path) -> None:
    """Whatever is here, what is printed is a file that the guard takes."""
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "guard", "check", "--suggest-scope"],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": "src"},
    )  # fmt: skip
    assert done.stderr == ""
    parse(done.stdout.encode(), "G")


def test_why_says_it_as_the_guard_does(tmp_path: Path) -> None:
    """From the guard's own page: the words are one sentence in two rooms."""
    paths = Paths(str(tmp_path), kmsg="/none", pmsg="/none")
    teller = Teller(Settings(scope=("/kubepods",)), paths, BOOT, None)
    teller.open()
    one = group("/user.slice", "/user.slice")
    said: list[str] = []
    teller.event = said.append  # type: ignore[method-assign]
    teller.status(node(), {one.path: one}, "peace", {})
    (words,) = said
    shown = " ".join(text(changed(problems=(words,))).split())
    assert shown == (
        "guard: observes only, in peace; acts on NOTHING: scope /kubepods has no cgroups here "
        "(seawall guard check --suggest-scope)"
    )
    assert "NOTHING" not in text(changed(problems=("no textfile: x",)))
    teller.close()
