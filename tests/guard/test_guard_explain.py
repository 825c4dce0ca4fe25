"""``guard explain``: bytes and names by hand, both cgroup versions, what protects whom."""

import itertools
import re
from pathlib import Path

import pytest

from seawall.actions.orders import Mounts
from seawall.guard.explain import ExplainedWorkload, PolicyExplanation, ThisMachine, explanation_of
from seawall.guard.explain_document import EXPLAIN
from seawall.guard.explain_text import lines
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, GUARANTEED, SYSTEM
from seawall.role_claims import claimed_role
from seawall.views.terminal import Console

GIB = 1 << 30
V2 = Mounts("/sys/fs/cgroup", 2, None, "/sys/fs/cgroup")
V1 = Mounts("/sys/fs/cgroup/memory", 1, "/sys/fs/cgroup/freezer", None)
PODS = "/kubepods.slice"
WEB = ExplainedWorkload(f"{PODS}/a", "shop/web/nginx", "", "", BURSTABLE, 900)
JOB = ExplainedWorkload(f"{PODS}/b", "lab/job/main", "", "", BEST_EFFORT, 1000)
DATA = ExplainedWorkload(f"{PODS}/c", "shop/db/postgres", "", "", GUARANTEED, -997)
CSI = ExplainedWorkload(
    f"{PODS}/d", "kube-system/csi-1/driver", "CSI driver (namespace kube-system)", ""
)
OURS = ExplainedWorkload(
    f"{PODS}/e", "kube-system/seawall-1/guard", "", "the guard is in it", SYSTEM, -997
)
SSHD = ExplainedWorkload(
    "/system.slice/ssh.service", "unit:ssh.service", "sshd (unit ssh.service)", ""
)
HERE = ThisMachine(
    total_bytes=64 * GIB, mounts=V2, has_cgroup_kill=True, has_pressure=True, has_tracefs=True,
    kernel=(6, 1), lacks=(), is_root=True, seen=(WEB, JOB, DATA, CSI, OURS, SSHD), others=(),
    unseen=(),
)  # fmt: skip


def of(settings: Settings, here: ThisMachine = HERE) -> PolicyExplanation:
    return explanation_of(settings, here, "/etc/seawall/guard.toml", is_default=False)


def text(found: PolicyExplanation) -> str:
    return "\n".join(lines(found, Console()))


def flat(words: str) -> str:
    return " ".join(words.split())


def test_the_floor_in_bytes() -> None:
    large = of(Settings())
    assert (large.floor_bytes, large.floor_by) == (2 * GIB, "act_at_most")
    assert large.target_bytes == 4 * GIB, "as the judge has it"
    assert "floor    2.0 GiB of headroom (act_at_most; 6 % of 64.0 GiB would be more)" in text(
        large
    )
    small = of(Settings(), HERE._replace(total_bytes=10 * GIB))
    assert (small.floor_bytes, small.floor_by) == (int(0.06 * 10 * GIB), "act_fraction")
    assert "floor    614 MiB of headroom, 6 % of 10.0 GiB (act_fraction)" in text(small)
    blind = of(Settings(), HERE._replace(total_bytes=None))
    assert (blind.floor_bytes, blind.target_bytes) == (None, None)
    assert "floor    not known: MemTotal could not be read" in text(blind)


def test_who_may_be_acted_on_and_who_never() -> None:
    found = of(Settings())
    assert [seen.name for seen in found.may_act_on] == [WEB.name, JOB.name, DATA.name]
    assert {seen.name: seen.protected_by for seen in found.protected} == {
        CSI.name: "protected: CSI driver (namespace kube-system)",
        OURS.name: "the guard is in it",
    }
    assert found.outside == 1
    assert found.scope == (("/kubepods.slice", 5), ("/kubepods", 0))
    shown = text(found)
    assert shown.index("lab/job/main: BestEffort") < shown.index("shop/web/nginx: Burstable")
    assert shown.index("shop/web/nginx: Burstable") < shown.index("shop/db/postgres: Guaranteed")
    assert "Never acted on: 1 outside the scope, 2 in it" in shown


def test_a_name_or_a_priority_alone_protects_from_the_order_only() -> None:
    uid = "3f0c9a4e_0b1d_4c61_9f4e_2d8a1c6b7e50"
    path = f"{PODS}/kubepods-besteffort.slice/kubepods-besteffort-pod{uid}.slice/c"
    critical = ExplainedWorkload(path, "team-a/hog/c", "", "", BEST_EFFORT, -997)
    named = ExplainedWorkload(
        f"{PODS}/f", "longhorn-system/hog/c", claimed_role("namespace", "storage daemon"), ""
    )
    found = of(Settings(), HERE._replace(seen=(critical, named, CSI)))
    assert [seen.name for seen in found.may_act_on] == [critical.name, named.name]
    assert [seen.name for seen in found.protected] == [CSI.name]
    shown = flat(text(found))
    assert "May be acted on: nothing Only if it is proved to be the cause: 2" in shown
    assert "team-a/hog/c: only by its priority class: oom_score_adj -997" in shown
    assert "longhorn-system/hog/c: only by its namespace: storage daemon" in shown
    page = EXPLAIN.of({}, found)
    assert [one["name"] for one in page["only_if_proved"]] == [critical.name, named.name]
    assert page["only_if_proved"][1]["why"] == "only by its namespace: storage daemon"


def test_protect_and_unprotect() -> None:
    found = of(Settings(protect=("shop/db",), unprotect=("kube-system/*",)))
    never = {seen.name: seen.protected_by for seen in found.protected}
    assert never == {
        DATA.name: "protected by the configuration",
        OURS.name: "the guard is in it",  # no setting lifts that
    }
    assert CSI.name in [seen.name for seen in found.may_act_on]


def test_without_a_watcher_nobody_tells_names_and_roles() -> None:
    """Only paths, scope and oom_score_adj protect then."""
    node = ExplainedWorkload(
        "/system.slice/node.service", "unit:node.service", "", "", SYSTEM, -997
    )
    settings = Settings(watch=False, scope=("/",), protect=(f"{PODS}/a",))
    found = of(settings, HERE._replace(seen=(*HERE.seen, node)))
    assert {seen.name: seen.protected_by for seen in found.protected} == {
        WEB.name: "protected by the configuration",
        OURS.name: "the guard is in it",
        node.name: "protected: oom_score_adj -997",
    }
    assert {seen.name for seen in found.may_act_on} == {JOB.name, DATA.name, CSI.name, SSHD.name}
    shown = " ".join(text(found).split())
    assert "spares always: what is outside the scope, the guard and what it is in, oom" in shown
    assert "kube-system, node-critical pods" not in shown
    assert "know names and roles: watch = false, so only" in shown


@pytest.mark.parametrize("watch", [True, False])
@pytest.mark.parametrize("lifted", ["pod", "container", "slice"])
def test_what_lifts_a_minus_1000_is_spelt_out(lifted: str, *, watch: bool) -> None:
    """As the judge has it: a pod by its path too."""
    uid = "3f0c9a4e_0b1d_4c61_9f4e_2d8a1c6b7e50"
    pod = f"{PODS}/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
    path = f"{pod}/cri-containerd-{'a' * 64}.scope"
    never = ExplainedWorkload(path, "shop/web/nginx", "", "", BURSTABLE, -1000)
    word = {"pod": pod, "container": path, "slice": pod.rpartition("/")[0]}[lifted]
    found = of(Settings(watch=watch, unprotect=(word,)), HERE._replace(seen=(never,)))
    assert bool(found.may_act_on) == (lifted != "slice")


@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_the_mode_comes_first(mode: str) -> None:
    first = text(of(Settings(mode=mode))).splitlines()[0]  # type: ignore[arg-type]
    assert first.startswith(f"mode     {mode}: it ")
    everything = text(of(Settings(mode=mode)))  # type: ignore[arg-type]
    assert ("reload" in everything) == (mode == "observe")


def test_what_a_machine_does_not_offer() -> None:
    assert of(Settings()).cannot == ()
    assert of(Settings()).kills_by == "cgroup.kill: the whole cgroup at once"
    old = of(Settings(), HERE._replace(has_cgroup_kill=False, kernel=(5, 10)))
    assert old.kills_by.endswith("(no cgroup.kill here)")
    assert old.cannot == (
        "kill by cgroup.kill: needs Linux 5.14",
        "hasten the return of memory: process_mrelease needs Linux 5.15",
    )
    v1 = of(Settings(), HERE._replace(mounts=V1, has_cgroup_kill=False))
    assert v1.kills_by.startswith("the freezer for at most 20 ms")
    assert v1.cannot == ("clamp: cgroup v1 refuses a limit below what is charged (EBUSY)",)
    bare = HERE._replace(mounts=V1._replace(freezer=None), has_pressure=False, has_tracefs=False)
    words = [row.partition(":")[0] for row in of(Settings(), bare).cannot]
    assert words == [
        "clamp", "freeze", "see who stands still", "trace who takes driver memory",
    ]  # fmt: skip
    none = of(Settings(watch=False), HERE._replace(mounts=None))
    assert none.kills_by.startswith("nothing")
    assert [row.partition(":")[0] for row in none.cannot] == [
        "act at all", "know who holds driver memory", "know names and roles",
    ]  # fmt: skip


def test_other_keys_in_words() -> None:
    shown = text(of(Settings(over_limit="clamp", over_limit_opt_in=("lab/*",), stuck=False)))
    assert "after 10 s, if lab/* names" in " ".join(shown.split())
    assert "is left alone (stuck = false)" in " ".join(shown.split())
    quick = " ".join(text(of(Settings(freeze_seconds=0, terminate_seconds=0))).split())
    assert "steps SIGKILL to the whole workload; 3 s for the memory" in quick


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """With every key that names a path, and what they name."""
    program = tmp_path / "told"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    (tmp_path / "kubelet/pods").mkdir(parents=True)
    return Settings(
        run_after_kill=f"'{program}' --page", textfile=f"{tmp_path}/seawall.prom",
        kubelet_root=f"{tmp_path}/kubelet",
    )  # fmt: skip


def test_what_the_settings_name_is_there(settings: Settings, tmp_path: Path) -> None:
    shown = flat(text(of(settings)))
    assert f"after '{tmp_path}/told' --page: run after a kill" in shown
    assert f"textfile {tmp_path}/seawall.prom: metrics for the node exporter" in shown
    assert f"kubelet {tmp_path}/kubelet/pods: termination messages" in shown
    assert [row["problem"] for row in EXPLAIN.of({}, of(settings))["paths"]] == ["", "", ""]
    assert of(Settings()).paths == ()
    assert not re.search("^(after|textfile|kubelet) ", text(of(Settings())), re.MULTILINE)


def test_what_the_settings_name_is_not_there(settings: Settings, tmp_path: Path) -> None:
    wrong = settings._replace(
        run_after_kill="/nonexist --page", textfile=f"{tmp_path}/told/x.prom",
        kubelet_root=str(tmp_path),
    )  # fmt: skip
    shown = flat(text(of(wrong)))
    assert "after /nonexist is not there: nothing is run after a kill (run_after_kill)" in shown
    assert f"textfile {tmp_path}/told is no folder: no metrics are written (textfile)" in shown
    assert f"kubelet {tmp_path}/pods is not there: no termination message is written" in shown
    assert EXPLAIN.of({}, of(wrong))["paths"][0] == {
        "key": "run_after_kill", "path": "/nonexist", "problem": "is not there",
    }  # fmt: skip


@pytest.mark.parametrize("what", ["its bits", "a folder"])
def test_a_program_that_cannot_be_run(settings: Settings, tmp_path: Path, what: str) -> None:
    """Root too runs none without an x bit."""
    (tmp_path / "told").chmod(0o600)
    if what == "a folder":
        settings = settings._replace(run_after_kill=str(tmp_path))
    row = of(settings).paths[0]
    assert (row.key, row.problem) == ("run_after_kill", "is not executable")
    assert "is not executable: nothing is run after a kill" in flat(text(of(settings)))


def test_a_hundred_workloads_are_cut_and_none_is_lost_with_whole() -> None:
    many = tuple(ExplainedWorkload(f"{PODS}/p{n}", f"lab/p{n:03}", "", "") for n in range(100))
    found = of(Settings(), HERE._replace(seen=many))
    assert "and 80 more with --whole" in text(found)
    whole = "\n".join(lines(found, Console(), whole=True))
    assert all(f"lab/p{n:03}" in whole for n in range(100))
    assert "more with --whole" not in whole


def test_hostile_names_cannot_steer_a_terminal() -> None:
    evil = ExplainedWorkload(f"{PODS}/x", "lab/\x1b[2J\nfree: 9 GiB", "", "")
    shown = text(of(Settings(), HERE._replace(seen=(evil,))))
    assert "\x1b" not in shown
    assert "\nfree: 9 GiB" not in shown


def test_it_fits_80_columns() -> None:
    for mounts, mode in itertools.product((V1, V2, None), ("observe", "enforce")):
        here = HERE._replace(mounts=mounts, has_pressure=False, has_tracefs=False)
        shown = text(of(Settings(mode=mode), here))  # type: ignore[arg-type]
        assert max(map(len, shown.splitlines())) <= 80


def test_the_document() -> None:
    page = EXPLAIN.of({}, of(Settings()))
    assert page["settings"]["act_at_most"] == 2 * GIB
    assert page["scope"] == [
        {"path": "/kubepods.slice", "workloads": 5}, {"path": "/kubepods", "workloads": 0},
    ]  # fmt: skip
    assert page["may_act_on"][0] == {"cgroup": WEB.path, "name": WEB.name, "class": "Burstable"}
    assert page["outside_scope"] == 1


def test_what_could_not_be_seen_is_told() -> None:
    row = ("other guards", "refused", "root")
    page = EXPLAIN.of({}, of(Settings(), HERE._replace(unseen=(row,))))
    assert page["could_not_see"] == [dict(zip(("what", "why", "provide"), row, strict=True))]


def test_users_are_one_each_and_roots_are_never_acted_on() -> None:
    users = [
        ExplainedWorkload(f"/user.slice/user-{uid}.slice", f"user:{uid}@{name}", "", "")
        for uid, name in ((0, "root"), (1000, "alice"))
    ]
    settings = Settings(scope=("/user.slice",), user_slices=True)
    found = of(settings, HERE._replace(seen=(*HERE.seen, *users)))
    assert [seen.name for seen in found.may_act_on] == ["user:1000@alice"]
    assert [seen.protected_by for seen in found.protected] == ["root's own sessions"]
    assert "took the memory goes (user_slices)" in flat(text(found))
    assert "none is in the scope now" not in flat(text(found))
    assert "none is in the scope now" in flat(text(of(Settings(user_slices=True))))
