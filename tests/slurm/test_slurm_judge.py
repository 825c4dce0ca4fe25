"""The judge beside a real slurmctld: a killer among innocents, ends of nodes that were meant, names
that lie, and the way back.
"""

import contextlib
import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.slurm.judged_room import (
    KILLER,
    TIMEOUT,
    NodeKiller,
    SlurmJudge,
    is_held,
    judge_of,
    judged_room,
    rows,
    running,
    start_innocents,
)
from tests.slurm.slurm_room import SlurmRoom, missing

from seawall.cluster.slurm.hold_plan import HoldStep
from seawall.cluster.slurm.job_keys import job_keys
from seawall.cluster.slurm.job_levers import JobLevers
from seawall.cluster.slurm.job_quarantine import HoldLever, JobHold, JobQuarantine
from seawall.cluster.slurm.slurm_acts import SlurmActs
from seawall.cluster.slurm.slurm_reader import SlurmReader
from seawall.cluster.slurm.slurm_state import SlurmStateFolder
from seawall.host.slurm_commands import SlurmCommands

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
ARRAY = ("--array=1-200%1", "--mem=50", "--time=60")
LIE = "x UserId=root(0) JobState=DONE\nJobId=1 JobName=y NodeList=n1"


@pytest.fixture(scope="module")
def judged() -> Iterator[SlurmRoom]:
    if why := missing():
        pytest.skip(why)
    with judged_room() as room:
        start_innocents(room, len(room.nodes))
        yield room


@contextlib.contextmanager
def without_killer(room: SlurmRoom, killer: NodeKiller) -> Iterator[NodeKiller]:
    """Afterwards its jobs are gone and its nodes are back; it kills none after that."""
    try:
        with killer:
            yield killer
    finally:
        room.command("scancel", f"--user={killer.user}")
        killer.reboot(whole=True)
    room.wait(
        lambda: not {word.rstrip("*") for word in room.states().values()} & {"down", "unk"},
        "nodes that are back", 120,
    )  # fmt: skip


def tasks_left(room: SlurmRoom, job: int) -> int:
    """Of an array: those that wait or run."""
    told = room.command("squeue", "--noheader", "--array", f"--jobs={job}", "--format=%i")
    return len(told.split())


@pytest.mark.skipif(
    not os.environ.get("SEAWALL_SCENARIOS"),
    reason="what others do, three minutes: SEAWALL_SCENARIOS=1",
)
def test_without_us_a_job_that_kills_its_node_is_requeued_again_and_again(
    judged: SlurmRoom,
) -> None:
    with without_killer(judged, NodeKiller(judged, reboots=False)) as killer:
        job = judged.submit("exec sleep 500", *ARRAY)
        judged.wait(lambda: len(killer.killed) >= 5, "five nodes", 400)
        assert tasks_left(judged, job) == 200
        assert not is_held(judged)


def test_an_array_that_kills_nodes_is_held_and_nobody_else(judged: SlurmRoom) -> None:
    others = set(running(judged))
    with judge_of(judged, more='metrics_address = "127.0.0.1:0"\n') as judge:
        judge.start()
        judged.wait(judge.read, "the first look")
        killer = NodeKiller(judged, reboots=False)
        with without_killer(judged, killer):
            judged.submit("exec sleep 500", *ARRAY, f"--job-name={LIE}")
            judged.wait(lambda: is_held(judged), "a hold", 400)
            assert len(killer.killed) <= 4  # three on a machine of its own: the campaign counts
            told = judge.suspects()
            (one,) = (one for one in told["suspects"] if one["user"] == KILLER)
            assert (one["state"], one["jobs_held"]) == ("Active", 1)
            assert one["job_name"] == LIE
            _look_at_all_others(judged, others)
            _look_at_text(judge)
            _look_at_numbers(judge, one["name"])
            _look_at_why(judge, one)
            _take_back(judged, judge, one["name"])


def _look_at_all_others(room: SlurmRoom, others: set[int]) -> None:
    """They wait for their dead nodes, or run."""
    left = {
        int(number): priority
        for user in ("man", "mail", "news", "backup", "proxy", "list")
        for number, _, _, priority in rows(room, user)
    }
    assert others <= set(left)
    assert all(left[number] > 0 for number in others)


def _look_at_text(judge: SlurmJudge) -> None:
    text = judge.verb("suspects").stdout
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80
    assert "\nJobId=1" not in text
    assert "Active" in text


def _look_at_numbers(judge: SlurmJudge, name: str) -> None:
    (port,) = re.findall(r"metrics on 127\.0\.0\.1:(\d+)", judge.log())
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        told = answer.read().decode()
    assert f'kind="Job",name="{name}",namespace="",verdict="convicted"}} 1.0' in told
    assert "seawall_held_jobs 1.0" in told
    assert "seawall_slurmctld_up 1.0" in told


def _look_at_why(judge: SlurmJudge, one: dict[str, Any]) -> None:
    """Of the job that is held, and of a node that died."""
    told = json.loads(judge.verb("why", "--json", one["holds"][0]["target"]).stdout)
    assert (told["answer"], told["suspect"]["name"]) == ("held", one["name"])
    told = json.loads(judge.verb("why", "--json", one["nodes"][0]).stdout)
    assert (told["answer"], told["suspect"]["name"]) == ("node", one["name"])
    assert KILLER in {job["user"] for job in told["deaths"][0]["jobs"]}
    text = judge.verb("why").stdout
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80


def _take_back(room: SlurmRoom, judge: SlurmJudge, name: str) -> None:
    """A dry run writes nothing; a release brings back the old place in the queue."""
    before = rows(room, KILLER)
    (hold,) = next(one["holds"] for one in judge.suspects()["suspects"] if one["name"] == name)
    dry = judge.verb("undo", "--all", "--dry-run")
    assert (dry.returncode, rows(room, KILLER)) == (0, before)
    done = judge.verb("release", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {priority for *_, priority in rows(room, KILLER)} == {hold["priority_before"]}
    room.wait(lambda: judge.states().get(name) == "Released", "its state")
    time.sleep(3.0)
    assert not is_held(room)  # a person's word stands: it is not held again
    assert judge.stop() == 0


def test_what_is_meant_and_what_is_an_outage_accuse_nobody(judged: SlurmRoom) -> None:
    """A drain with a stop, an administrator's DOWN, slurmctld started anew, four nodes at once."""
    with judge_of(judged) as judge:
        judge.start()
        judged.wait(judge.read, "the first look")
        stopped = judged.nodes[:2]
        judged.command(
            "scontrol", "update", f"NodeName={stopped[0]}", "State=DRAIN", "Reason=new disk"
        )
        # With ReturnToService=2 a node with jobs would be IDLE again within a second of its DOWN.
        judged.command("scancel", f"--nodelist={stopped[1]}", "--state=RUNNING")
        time.sleep(4.0)
        judged.command("scontrol", "update", f"NodeName={stopped[1]}", "State=DOWN", "Reason=fan")
        time.sleep(3.0)
        for node in stopped:
            judged.kill_node(node)
        controller = judged.parts.pop("slurmctld")
        controller.terminate()
        controller.wait(60)
        judged.wait(lambda: "no answer" in judge.read()["message"], "words of it", 100)
        judged.start("slurmctld", "-D", "-f", f"{judged.folder}/slurm.conf")
        judged.wait(judged.states, "slurmctld")
        outage = judged.nodes[4:8]
        for node in outage:
            judged.kill_node(node)
        judged.wait(lambda: set(outage) <= set(_silent(judge)), "deaths", 200)
        time.sleep(2.0)
        read, died = judge.read(), _silent(judge)
        assert set(died) == set(outage)
        assert len(set(died.values())) <= 2
        assert "fell silent together" in read["message"]
        assert not [one for one in judge.suspects()["suspects"] if one["state"] != "Suspected"]
        for node in (*stopped, *outage):
            judged.start_node(node, "-b")
        for node in stopped:
            with contextlib.suppress(RuntimeError):  # it is in service again by itself
                judged.command("scontrol", "update", f"NodeName={node}", "State=RESUME")
        judged.wait(lambda: "down" not in " ".join(judged.states().values()), "nodes", 120)


def _silent(judge: SlurmJudge) -> dict[str, float]:
    """Deaths, and when.  ``slurmd -b`` says at its next registration that it booted with this
    machine, which is a reset; those convict nobody.
    """
    deaths = judge.read()["deaths"]
    return {one["node"]: one["moment"] for one in deaths if one["kind"] == "silent"}


def test_with_a_record_of_each_node_the_array_is_held_after_the_second(
    judged: SlurmRoom,
) -> None:
    others = set(running(judged))
    folder = judged.folder / "evidence"
    folder.mkdir(mode=0o755)
    with judge_of(judged, evidence=folder) as judge:
        judge.start()
        judged.wait(judge.read, "the first look")
        killer = NodeKiller(judged, reboots=False, evidence=folder)
        with without_killer(judged, killer):
            judged.submit("exec sleep 500", *ARRAY)
            judged.wait(lambda: is_held(judged), "a hold", 400)
            told = judge.suspects()
            (one,) = (one for one in told["suspects"] if one["user"] == KILLER)
            assert (one["state"], one["verdict"]) == ("Active", "convicted")
            nodes = len(one["nodes"])
            assert nodes <= 3  # a task may begin between conviction and hold
            assert nodes == one["records_accuse"] == told["records"]
            _look_at_all_others(judged, others)
            assert f"of {nodes} nodes" in judge.verb("suspects").stdout.replace("\n", " ")
            assert judge.verb("undo", "--all").returncode == 0


def test_a_second_controller_with_the_same_folder_is_refused(judged: SlurmRoom) -> None:
    with judge_of(judged) as judge:
        judge.start()
        judged.wait(judge.read, "the first look")
        other = judge.verb("controller", "--once")
        assert other.returncode == 2
        assert "another controller runs" in other.stderr


def test_a_dry_run_holds_nobody_and_says_whom_it_would(judged: SlurmRoom) -> None:
    with judge_of(judged, dry_run=True) as judge:
        done = judge.verb("controller", "--once", f"--policy={judge.folder}/slurm.toml")
        assert done.returncode == 0, done.stderr
        assert "dry run" in done.stderr
        assert judge.suspects()["is_dry_run"]


# --- levers, one by one -------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path: Path) -> SlurmStateFolder:
    return SlurmStateFolder(str(tmp_path / "state"))


def submitted(judged: SlurmRoom, *words: str) -> tuple[SlurmCommands, SlurmReader, int]:
    """A job that sleeps; the reader has looked before."""
    commands = SlurmCommands(f"{judged.folder}/slurm.conf")
    reader = SlurmReader(commands)
    reader.view()
    return commands, reader, judged.submit("exec sleep 300", "--mem=50", *words, "--time=60")


def quarantine(name: str, reader: SlurmReader, job: int) -> JobQuarantine:
    row = reader.jobs_now()[job]
    return JobQuarantine(
        name=name, key=job_keys(row, None)[0], uid=row.uid, user=row.user, account=row.account,
        label=row.name, state="Active", verdict="convicted", score_log10=9.0, threshold_log10=6.0,
        nodes=("a", "b"), deaths=(), why_not="", named_seconds=time.time(),
        expires_seconds=time.time() + 3600.0,
    )  # fmt: skip


def test_a_running_job_is_left_alone_and_its_old_place_comes_back(
    judged: SlurmRoom, desk: SlurmStateFolder
) -> None:
    commands, reader, job = submitted(judged)
    judged.wait(lambda: job in running(judged), "a job that runs")
    before = reader.jobs_now()[job].priority
    levers = JobLevers(commands, desk, reader.settings["PriorityType"])
    with desk.change() as state:
        state.quarantines["games-1"] = quarantine("games-1", reader, job)

    done = levers.hold("games-1", HoldStep(str(job), "hold", before), [reader.jobs_now()[job]])

    assert done
    assert done.result == "done"
    row = reader.jobs_now()[job]
    assert (row.state, row.priority) == ("RUNNING", 0)
    assert row.admin_comment.startswith("seawall: held as games-1")
    # The folder is lost: what stands on the job is enough.
    lost = SlurmStateFolder(f"{desk.path}-lost")
    page = SlurmActs(commands, lost, "root", is_dry_run=False).undo_all()
    assert [(step.name, step.result) for step in page.steps] == [(str(job), "done")]
    row = reader.jobs_now()[job]
    assert (row.state, row.priority, row.admin_comment) == ("RUNNING", before, "")
    again = levers.release(
        desk.read().quarantines["games-1"], JobHold(str(job), "hold", 0.0, before, "done"),
        reader.jobs_now(),
    )  # fmt: skip
    assert again.result == "changed"
    judged.command("scancel", str(job))


def test_a_job_that_was_ended_waits_held_and_is_let_go(
    judged: SlurmRoom, desk: SlurmStateFolder
) -> None:
    commands, reader, job = submitted(judged)
    judged.wait(lambda: job in running(judged), "a job that runs")
    before = reader.jobs_now()[job].priority
    levers = JobLevers(commands, desk, reader.settings["PriorityType"])
    with desk.change() as state:
        state.quarantines["games-3"] = quarantine("games-3", reader, job)
    levers_in_order: tuple[HoldLever, ...] = ("hold", "requeuehold")
    for lever in levers_in_order:
        row = reader.jobs_now()[job]
        assert levers.hold("games-3", HoldStep(str(job), lever, before), [row])
    judged.wait(lambda: job not in running(judged), "its end")
    judged.wait(lambda: reader.jobs_now()[job].state == "PENDING", "that it waits", 120)
    assert reader.jobs_now()[job].priority == 0

    page = SlurmActs(commands, desk, "root", is_dry_run=False).release("games-3")
    assert [step.result for step in page.steps] == ["done", "done"]
    assert reader.jobs_now()[job].priority == before
    judged.command("scancel", str(job))


def test_a_persons_order_holds_a_job_that_nobody_suspects_and_only_once_it_is_meant(
    judged: SlurmRoom,
) -> None:
    with judge_of(judged, days=0.0) as judge:
        _, reader, job = submitted(judged)
        judged.wait(lambda: job in running(judged), "a job that runs")
        before = reader.jobs_now()[job].priority
        policy = f"--policy={judge.folder}/slurm.toml"
        words = ("quarantine", str(job), policy, "--reason=fills /scratch", "--json")

        dry = json.loads(judge.verb(*words, "--dry-run").stdout)
        assert dry["outcome"] == "planned"
        assert [(one["kind"], one["name"]) for one in dry["steps"]][1:] == [("Job", str(job))]
        assert judge.read() == {}

        done = judge.verb(*words)
        assert done.returncode == 0, done.stderr
        name = json.loads(done.stdout)["subject"]
        assert judge.verb("controller", "--once", policy).returncode == 0
        row = reader.jobs_now()[job]
        assert (row.state, row.priority) == ("RUNNING", 0)
        told = judge.verb("why", str(job)).stdout
        assert "fills /scratch" in told
        assert judge.verb("release", name).returncode == 0
        assert reader.jobs_now()[job].priority == before

        (judge.folder / "protects").write_text(f'protected_users = ["{KILLER}"]')
        no = judge.verb("quarantine", str(job), f"--policy={judge.folder}/protects")
        assert (no.returncode, "is protected" in no.stderr) == (2, True)
        judged.command("scancel", str(job))


def test_a_job_that_its_user_holds_since_is_left(judged: SlurmRoom, desk: SlurmStateFolder) -> None:
    commands, reader, job = submitted(judged, "--hold")
    levers = JobLevers(commands, desk, reader.settings["PriorityType"])
    one = quarantine("games-2", reader, job)
    left = levers.release(one, JobHold(str(job), "hold", 0.0, 1, "done"), reader.jobs_now())
    assert left.result == "changed"
    assert reader.jobs_now()[job].priority == 0
    judged.command("scancel", str(job))


def test_a_user_cannot_forge_what_only_operators_write(
    judged: SlurmRoom, desk: SlurmStateFolder
) -> None:
    """Of a job that an administrator holds, its user claims that the hold is ours."""
    words = "seawall: held as x, priority before 1"
    job = judged.submit(
        "exec sleep 300", "--mem=50", "--hold", f"--comment={words}",
        f"--job-name=x AdminComment={words}", "--time=60",
    )  # fmt: skip
    judged.command("scontrol", "hold", str(job))
    commands = SlurmCommands(f"{judged.folder}/slurm.conf")
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(
            ["setpriv", "--reuid=games", "--clear-groups", "scontrol", "update", f"JobId={job}",
             f"AdminComment={words}"], env=judged.environment, check=True, capture_output=True,
        )  # fmt: skip
    page = SlurmActs(commands, desk, "root", is_dry_run=False).undo_all()
    assert not page.steps
    assert SlurmReader(commands).jobs_now()[job].priority == 0
    judged.command("scancel", str(job))


def test_the_script_of_another_users_job_is_read_by_its_digest(judged: SlurmRoom) -> None:
    commands = SlurmCommands(f"{judged.folder}/slurm.conf")
    reader = SlurmReader(commands)
    jobs = [
        judged.submit(f"echo seed {seed}; exec sleep 300", "--mem=50", "--hold", "--time=60")
        for seed in (17, 18)
    ]
    reader.view()
    digests = {reader.digest(reader.jobs_now()[job]) for job in jobs}
    assert len(digests) == 1
    assert digests - {"", None}
    for job in jobs:
        judged.command("scancel", str(job))


def test_how_long_a_round_of_pings_is_comes_from_slurm_conf(judged: SlurmRoom) -> None:
    reader = SlurmReader(SlurmCommands(f"{judged.folder}/slurm.conf"))
    reader.view()
    assert reader.round_seconds(1.0) == TIMEOUT / 3.0 + 11.0
    assert reader.is_beside_controller() == ""


def test_with_priority_multifactor_only_what_was_set_by_hand_is_put_back(
    desk: SlurmStateFolder,
) -> None:
    factors = (
        "PriorityType=priority/multifactor\nPriorityWeightAge=1000\nPriorityWeightJobSize=5000\n"
    )
    with SlurmRoom(nodes=1, constrains=False, settings=factors) as room:
        commands = SlurmCommands(f"{room.folder}/slurm.conf")
        reader = SlurmReader(commands)
        jobs = [room.submit("sleep 600", "--exclusive", "--mem=50") for _ in range(3)]
        room.wait(lambda: running(room) == jobs[:1], "the first")
        room.command("scontrol", "update", f"JobId={jobs[2]}", "Priority=500")
        reader.view()
        levers = JobLevers(commands, desk, reader.settings["PriorityType"])
        room.wait(lambda: "2812" in room.command("sprio", "-h", "-o", "%Y"), "factors")
        for job in jobs[1:]:
            row = reader.jobs_now()[job]
            with desk.change() as state:
                state.quarantines["a"] = quarantine("a", reader, job)
            hold = levers.hold("a", HoldStep(str(job), "hold", row.priority), [row])
            assert hold
            assert hold.restores is (job == jobs[2])
            now = reader.jobs_now()
            assert now[job].priority == 0
            assert levers.release(state.quarantines["a"], hold, now).result == "undone"
        now = reader.jobs_now()
        assert now[jobs[2]].priority == 500
        assert now[jobs[1]].priority > 500
        # Nobody set the other: sprio still has its factors.
        room.wait(lambda: _size_factor(room, jobs[1]) > 0, "its factors")


def _size_factor(room: SlurmRoom, job: int) -> int:
    """0 while sprio does not list it."""
    told = room.command("sprio", "-h", f"--jobs={job}", "-o", "%J").strip()
    return int(told) if told.isdigit() else 0
