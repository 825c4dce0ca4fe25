"""A broken node drains itself once, with brakes, and lifts what is its own; on a real slurmctld."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.slurm.slurm_room import SlurmRoom, missing

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
NODES = 40
DEADLINE_SECONDS = 15
"""Of one question: this machine has other work."""
SHARE = 2  # 5 % of 40


@pytest.fixture
def site(room: SlurmRoom, tmp_path: Path) -> Iterator["Site"]:
    yield Site(room, tmp_path)
    for node in room.nodes:
        if "drain" in shown(room, node)["State"]:
            room.command("scontrol", "update", f"NodeName={node}", "State=UNDRAIN")
    room.wait(lambda: set(room.states().values()) == {"idle"}, "idle nodes")


class Site:
    """slurm.toml and records of a room, and one wanted mount that is there or not."""

    def __init__(self, room: SlurmRoom, folder: Path) -> None:
        self.room, self.folder = room, folder
        self.wants("/nowhere")

    def wants(self, mount: str, more: str = "") -> None:
        (self.folder / "slurm.toml").write_text(
            '[checks]\nmounts = "drain"\nclock = "off"\nspace = "off"\n'
            f'[wanted]\nmounts = ["{mount}"]\n[slurm]\nrecords = "{self.folder}/records"\n'
            f"seconds = {DEADLINE_SECONDS}\n{more}"
        )

    def check(self, node: str, *, seconds: float = 200, only: str = "mounts") -> str:
        environment = {**self.room.environment, "SLURMD_NODENAME": node}
        done = subprocess.run(
            [sys.executable, "-m", "seawall", "check", "--slurm", "--only", only, "--config",
             f"{self.folder}/slurm.toml"],
            env=environment, capture_output=True, text=True, check=False, timeout=seconds,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout

    def twice(self, node: str) -> str:
        """Mounts may come: the second look, half a minute later, is the one that counts."""
        self.check(node)
        self.age(node)
        return self.check(node)

    def age(self, node: str) -> None:
        """As if the last look had been half a minute ago."""
        path = self.folder / f"records/{node}.json"
        record = json.loads(path.read_text())
        record["seen"] = {key: moment - 30 for key, moment in record["seen"].items()}
        if record["well_since"] is not None:
            record["well_since"] -= 30
        path.write_text(json.dumps(record))


def shown(room: SlurmRoom, node: str) -> dict[str, str]:
    told = room.command("scontrol", "--oneliner", "show", "node", node)
    head, _, reason = told.partition(" Reason=")
    reason, _, comment = reason.partition(" Comment=")
    head += f" Comment={comment}" if comment else ""
    words = dict(word.partition("=")[::2] for word in head.split() if "=" in word)
    return {
        "State": words["State"].lower(),
        "Reason": reason.strip(),
        "Comment": words.get("Comment", ""),
    }


def drained(room: SlurmRoom) -> set[str]:
    return {node for node, state in room.states().items() if state.startswith("drain")}


def test_a_broken_node_drains_itself_and_is_lifted_when_it_is_well(site: Site) -> None:
    room, node = site.room, site.room.nodes[0]
    assert "not drained yet" in site.check(node)
    assert drained(room) == set()
    site.age(node)
    told = site.check(node)
    assert "drained: seawall: mounts: /nowhere is not mounted" in told
    assert drained(room) == {node}
    assert shown(room, node)["Reason"].startswith("seawall: mounts: /nowhere is not mounted [root@")
    assert shown(room, node)["Comment"] == ""
    assert "it stays drained" in site.check(node)

    site.wants("/")
    assert "lifted" not in site.check(node), "one look is not enough"
    site.age(node)
    assert "its own drain is lifted" in site.check(node)
    room.wait(lambda: room.states()[node] == "idle", "idle again")
    assert "drain" not in site.check(node)


def test_at_most_twice_a_day(site: Site) -> None:
    node = site.room.nodes[0]
    for _ in range(2):
        site.wants("/nowhere")
        assert "drained: " in site.twice(node)
        site.wants("/")
        assert "lifted, it is well" in site.twice(node)
    site.wants("/nowhere")
    assert "drained: " in site.twice(node)
    site.wants("/")
    assert "it was lifted 2 times in a day" in site.twice(node)
    assert drained(site.room) == {node}


@pytest.mark.parametrize("state", ["DRAIN", "DOWN", "FAIL"])
def test_what_somebody_else_decided_is_not_touched(site: Site, state: str) -> None:
    room, node = site.room, site.room.nodes[1]
    room.command("scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=disk")
    before = shown(room, node)
    assert "state and reason are left as they are" in site.twice(node)
    assert shown(room, node) == before
    back = "UNDRAIN" if state == "DRAIN" else "RESUME"
    room.command("scontrol", "update", f"NodeName={node}", f"State={back}")


def test_a_node_that_is_to_be_mended_is_not_touched(site: Site) -> None:
    room, node = site.room, site.room.nodes[1]
    room.command(
        "scontrol", "create", "reservation", "reservationname=works", "starttime=now",
        "duration=5", "flags=maint,ignore_jobs", f"nodes={node}", "users=root",
    )  # fmt: skip
    room.wait(lambda: "maint" in shown(room, node)["State"], "the reservation")
    assert "state and reason are left as they are" in site.twice(node)
    assert "drain" not in shown(room, node)["State"]
    room.command("scontrol", "delete", "reservation=works")
    room.wait(lambda: "maint" not in shown(room, node)["State"], "its end")


def test_a_drain_that_became_anothers_is_not_lifted(site: Site) -> None:
    room, node = site.room, site.room.nodes[0]
    site.twice(node)
    room.command("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=smoke")
    site.wants("/")
    assert "somebody else drained the node meanwhile" in site.twice(node)
    assert drained(room) == {node}
    assert "Reason" in shown(room, node)
    assert shown(room, node)["Reason"].startswith("smoke")


def test_the_same_words_of_another_second_are_anothers(site: Site) -> None:
    room, node = site.room, site.room.nodes[0]
    site.twice(node)
    reason = shown(room, node)["Reason"].partition(" [")[0]
    room.command("scontrol", "update", f"NodeName={node}", "State=UNDRAIN")
    time.sleep(1.1)
    room.command("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")
    site.wants("/")
    assert "somebody else drained" in site.twice(node)
    assert drained(room) == {node}


def test_whoever_takes_it_back_by_hand_is_obeyed(site: Site) -> None:
    room, node = site.room, site.room.nodes[0]
    site.twice(node)
    room.command("scontrol", "update", f"NodeName={node}", "State=RESUME")
    assert "somebody took the drain back by hand" in site.check(node)
    assert "somebody took the drain for it back by hand" in site.twice(node)
    assert drained(room) == set()
    site.wants("/")
    assert "not drained" not in site.check(node)
    site.wants("/nowhere")
    assert "drained: seawall" in site.twice(node), "it ended once: this is another fault"


def test_a_running_job_goes_on_and_a_small_cluster_drains_one(site: Site) -> None:
    room = site.room
    job = room.submit("sleep 100", f"--nodelist={room.nodes[0]}")
    room.wait(lambda: room.job_folder(job), "its cgroup")
    assert "drained: " in site.twice(room.nodes[0])
    assert room.states()[room.nodes[0]] == "drng"
    assert "the brake: 1 of 4 nodes are drained by Seawall, and 1 may be" in site.twice(
        room.nodes[1]
    )
    assert room.command("squeue", "--noheader", f"--job={job}", "--format=%t").strip() == "R"
    room.command("scancel", str(job))


def test_without_slurmctld_nothing_is_done_and_it_is_said(site: Site) -> None:
    node = site.room.nodes[0]
    site.check(node)
    site.age(node)
    config = Path(f"{site.room.folder}/slurm.conf")
    away = site.folder / "away.conf"
    away.write_text(config.read_text().replace("SlurmctldPort=", "SlurmctldPort=1\n#"))
    began = time.monotonic()
    environment = {**os.environ, "SLURM_CONF": str(away), "SLURMD_NODENAME": node}
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "check", "--slurm", "--only", "mounts", "--config",
         f"{site.folder}/slurm.toml"],
        env=environment, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert "slurmctld was not to be asked, and nothing was changed" in done.stdout
    assert time.monotonic() - began < 60


def test_a_look_at_less_than_all_lifts_nothing(site: Site) -> None:
    """A Prolog or a person may have looked for GPUs alone."""
    room, node = site.room, site.room.nodes[0]
    site.twice(node)
    config = site.folder / "slurm.toml"
    config.write_text(config.read_text().replace("[wanted]", 'smt = "drain"\n[wanted]'))
    for _ in range(3):
        assert "lifted" not in site.check(node, only="smt")
        site.age(node)
    assert drained(room) == {node}


def test_a_slurmctld_that_hangs_is_left_at_the_deadline(site: Site) -> None:
    room, node = site.room, site.room.nodes[0]
    site.check(node)
    site.age(node)
    text = (site.folder / "slurm.toml").read_text()
    (site.folder / "slurm.toml").write_text(text.replace("seconds = 15", "seconds = 3"))
    room.parts["slurmctld"].send_signal(signal.SIGSTOP)
    try:
        told = site.check(node)
    finally:
        room.parts["slurmctld"].send_signal(signal.SIGCONT)
    assert "slurmctld was not to be asked, and nothing was changed: sinfo" in told
    assert "did not end in 3 s" in told
    assert drained(room) == set()


def test_a_number_of_a_run_that_was_killed_is_taken_away(site: Site) -> None:
    room, node = site.room, site.room.nodes[0]
    site.wants("/")
    site.check(node)
    path = site.folder / f"records/{node}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"claim": "Comment"}))
    number = "seawall wants to drain: 3 at 1700000000"
    room.command("scontrol", "update", f"NodeName={node}", f"Comment={number}")
    assert shown(room, node)["Comment"] == "seawall"
    site.check(node)
    assert shown(room, node)["Comment"] == ""
    assert json.loads(path.read_text())["claim"] == ""


def test_a_comment_of_somebody_elses_is_left_alone(site: Site) -> None:
    room, node = site.room, site.room.nodes[0]
    room.command("scontrol", "update", f"NodeName={node}", "Comment=rack5")
    assert "drained: seawall" in site.twice(node)
    assert shown(room, node)["Comment"] == "rack5"
    room.command("scontrol", "update", f"NodeName={node}", "Comment=")


def test_called_by_hand_it_drains_nothing(site: Site) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "check", "--slurm", "--config",
         f"{site.folder}/slurm.toml"],
        env=site.room.environment, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert "not drained: this is not slurmd's call" in done.stdout


def test_a_fault_on_all_nodes_at_once_drains_the_brakes_share_and_never_more(
    tmp_path: Path,
) -> None:
    if why := missing():
        pytest.skip(why)
    with SlurmRoom(nodes=NODES) as room:
        site = Site(room, tmp_path)
        most: list[int] = []
        with ThreadPoolExecutor(NODES) as threads:
            for told in threads.map(site.check, room.nodes):
                assert "not drained yet" in told
            for node in room.nodes:
                site.age(node)
            checks = [threads.submit(site.check, node, seconds=300) for node in room.nodes]
            while not all(one.done() for one in checks):
                most.append(len(drained(room)))
                time.sleep(0.2)
            words = [one.result() for one in checks]
        assert max(most) <= SHARE
        assert len(drained(room)) == SHARE
        assert sum("\ndrained: seawall: mounts" in told for told in words) == SHARE
        assert all("not drained: " in told for told in words if "\ndrained: " not in told)
        assert not [node for node in room.nodes if shown(room, node)["Comment"]]
