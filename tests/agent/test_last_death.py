"""Post-mortems from boxes of our own writing: whom they accuse, and whom they must not."""

from pathlib import Path
from typing import Any

from tests.guard.telling import BOOT, CGROUP, GIB, MIB, POD_UID, group, node, order, rank, verdict

from seawall.agent.last_death import last_death
from seawall.agent.node_messages import api_time
from seawall.blackbox.frame import Frame, pack
from seawall.blackbox.reader import Box
from seawall.blackbox.ring import RingFile
from seawall.guard.tell.decision_lines import Stamp, event_line, verdict_line
from seawall.guard.tell.guard_sentences import STOPPED
from seawall.replay.tick import Tick
from seawall.replay.tick_encoder import TickEncoder
from seawall.sources.box_last_boot import last_boot

UNIX = 1_795_428_000.0
UP = 5000.0
RUNNING = "0b0e7c1a-2f3d-4c5b-8a69-7d7e8f901234"
OTHER = "11112222-3333-4444-8555-666677778888"
INNOCENT = f"/kubepods/besteffort/pod{OTHER}/{'cd' * 32}"
OOM = (
    "6,1200,4999000000,-;oom-kill:constraint=CONSTRAINT_{},nodemask=(null),cpuset=/,mems_allowed=0,"
    "global_oom,task_memcg={},task=java,pid=4711,uid=0"
)


class Film:
    """A boot as its black box has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ring = RingFile.open(str(path), 4 * MIB, 1.0)
        self.encoder = TickEncoder()
        self.number = 0

    def frame(self, kind: Any, at: float, body: dict[str, Any], boot: str = BOOT) -> None:
        frame = Frame(self.ring.next_sequence, kind, UNIX + at, UP + at, boot, self.number, body)
        self.ring.write(pack(frame))

    def tick(self, at: float, state: str, groups: Any = (), **facts: Any) -> None:
        self.number += 1
        seen = node(seconds=UP + at, **facts)
        held = {one.path: one for one in groups}
        tick = Tick(self.number, UNIX + at, state, seen, held, ())
        self.frame("tick", at, self.encoder.body([tick]))

    def peace(self, since: float, until: float, **facts: Any) -> None:
        at = since
        while at <= until:
            self.tick(at, "peace", **{"residual_grown_bytes": 0, **facts})
            at += 10

    def dying(self, since: float, until: float, groups: Any = (), **facts: Any) -> None:
        at = since
        while at <= until:
            self.tick(at, "short", groups, **{
                "headroom_bytes": 100 * MIB, "residual_grown_bytes": 2 * GIB, **facts})  # fmt: skip
            at += 1

    def line(self, at: float, line: bytes) -> None:
        self.frame("line", at, {"line": line.decode().rstrip()})

    def decide(self, at: float, **changes: Any) -> None:
        rows = changes.pop("rows", (rank(is_source=True),))
        said = verdict(rows, seconds=UP + at, **changes)
        self.line(at, verdict_line(said, Stamp(UNIX + at, BOOT, "observe")))

    def death(self, booted: float | None = 60.0) -> dict[str, Any]:
        """``booted``: so long after UNIX the machine booted again."""
        self.ring.close()
        box = Box.open(str(self.path))
        boot = last_boot(box, RUNNING, None if booted is None else UNIX + booted)
        assert boot is not None
        return last_death(boot)


def kinds(death: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return [(line["kind"], line["pods"]) for line in death["record"]]


def test_whom_the_guard_proved_before_the_end(tmp_path: Path) -> None:
    film = Film(tmp_path / "box")
    film.peace(-300, -30)
    film.dying(-30, 0, [group(outside=1900 * MIB, most=2 * GIB)])
    film.decide(-20)
    death = film.death()
    assert death["bootID"] == BOOT
    assert death["ended"] == "Unclean"
    assert kinds(death)[0] == ("Proved", [POD_UID])
    assert "holds 1.1 GiB outside" in death["record"][0]["text"]
    assert ("MemoryAmple", []) not in kinds(death)
    assert len(death["samples"]) == 12
    assert death["samples"][-1]["headroomBytes"] == 100 * MIB


def test_of_slurm_it_is_the_job_and_when_its_boot_began(tmp_path: Path) -> None:
    film = Film(tmp_path / "box")
    path = "/slurm/uid_1000/job_4711"
    film.dying(-30, 0, [group("slurm:4711@alice", path, outside=1900 * MIB, most=2 * GIB)])
    film.decide(-20, rows=(rank(is_source=True, path=path, name="slurm:4711@alice"),))
    film.frame("line", -9, {"kernel": OOM.format("NONE", f"{path}/step_0/task_0")})
    death = film.death()
    assert {tuple(line["pods"]) for line in death["record"]} == {("slurm:4711",)}
    assert [line["kind"] for line in death["record"]][::2] == ["Proved", "OomLine"]
    assert death["bootedAt"] == api_time(UNIX - UP)


def test_without_a_proof_it_is_possible_at_the_most(tmp_path: Path) -> None:
    film = Film(tmp_path / "box")
    innocent = group("shop/web/x", INNOCENT, outside=90 * MIB, most=100 * MIB)
    film.dying(-30, 0, [group(outside=100 * MIB, most=1500 * MIB), innocent])
    film.decide(-20, rows=(rank(),), refused="nobody is proved", orders=())
    assert kinds(film.death()) == [("Possible", [POD_UID])]


def test_who_was_held_as_a_suspect_is_possible(tmp_path: Path) -> None:
    film = Film(tmp_path / "box")
    film.dying(-30, 0, residual_grown_bytes=0)
    film.decide(-20, rows=(rank(),), orders=(order("freeze")._replace(why="suspected"),))
    assert kinds(film.death()) == [("Possible", [POD_UID])]


def test_a_shortage_that_was_over_accuses_nobody(tmp_path: Path) -> None:
    film = Film(tmp_path / "box")
    film.dying(-200, -150, [group(outside=1900 * MIB, most=2 * GIB)])
    film.decide(-190)
    film.peace(-140, 0)
    assert kinds(film.death()) == [("MemoryAmple", [])]


def test_who_is_only_over_his_own_limit_did_not_kill_the_node(tmp_path: Path) -> None:
    film = Film(tmp_path / "box")
    film.dying(-30, 0, residual_grown_bytes=10 * MIB)
    film.decide(-20, rows=(rank(is_source=True),), trigger="over_limit")
    assert kinds(film.death()) == []


def test_memory_is_ample_only_where_the_record_runs_to_the_end(tmp_path: Path) -> None:
    film = Film(tmp_path / "a")
    film.peace(-300, 0)
    death = film.death(booted=120)
    assert (death["ended"], kinds(death)) == ("Unclean", [("MemoryAmple", [])])
    for booted in (3600.0, None, -500.0):  # hung or off for an hour; not known; a clock was set
        film = Film(tmp_path / f"b{booted}")
        film.peace(-300, 0)
        death = film.death(booted)
        assert (death["ended"], kinds(death)) == ("Unknown", []), booted


def test_memory_that_was_low_once_in_the_last_minute_was_not_ample(tmp_path: Path) -> None:
    for number, facts in enumerate(({"headroom_bytes": 1 * GIB}, {"kernel_kills": 1},
                                    {"total_bytes": 0})):  # fmt: skip
        film = Film(tmp_path / f"box{number}")
        film.peace(-300, -40)
        film.tick(-30, "peace", residual_grown_bytes=0, **facts)
        film.peace(-20, 0)
        assert kinds(film.death()) == [], facts


def test_a_guard_that_was_stopped_ends_its_record(tmp_path: Path) -> None:
    stop = event_line(STOPPED, Stamp(UNIX, BOOT, "observe"))
    film = Film(tmp_path / "a")
    film.peace(-300, 0)
    film.line(0, stop)
    death = film.death(booted=100)
    assert (death["ended"], kinds(death)) == ("Clean", [])
    film = Film(tmp_path / "b")
    film.peace(-300, 0)
    film.line(0, stop)
    assert film.death(booted=7200)["ended"] == "Unknown"
    film = Film(tmp_path / "c")  # an upgrade: the next guard went on
    film.peace(-300, -100)
    film.line(-95, stop)
    film.peace(-90, 0)
    assert film.death(booted=100)["ended"] == "Unclean"


def test_whom_the_kernel_killed_for_the_nodes_sake(tmp_path: Path) -> None:
    film = Film(tmp_path / "box")
    film.dying(-30, 0, residual_grown_bytes=0)
    inside = f"{INNOCENT}/kubepods/pod9999-9/{'ef' * 32}"
    for at, constraint, path in ((-9, "NONE", CGROUP), (-8, "MEMCG", INNOCENT), (-7, "NONE", "/"),
                                 (-6, "NONE", CGROUP), (-2000, "NONE", INNOCENT),
                                 (-5, "NONE", inside)):  # fmt: skip
        film.frame("line", at, {"kernel": OOM.format(constraint, path)})
    assert kinds(film.death()) == [("OomLine", [POD_UID])]


def test_only_the_last_boot_before_this_one_counts(tmp_path: Path) -> None:
    film = Film(tmp_path / "box")
    film.dying(-30, 0, [group(outside=1900 * MIB, most=2 * GIB)])
    film.decide(-20)
    film.frame("line", 300, {"line": "{}"}, boot=RUNNING)
    assert film.death()["bootID"] == BOOT
    box = Box.open(str(tmp_path / "box"))
    only = [head for head in box.heads if head.boot_id == RUNNING]
    box.heads = only
    assert last_boot(box, RUNNING, None) is None


def test_a_hostile_box_says_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    film = Film(tmp_path / "box")
    film.frame("tick", -3, {"key": True, "ticks": [{"n": -1}], "columns": {}})
    film.frame("tick", -2, {"ticks": "no"})
    film.frame("line", -1, {"line": '{"kind":"verdict","trigger":"node_short","ranking":[1]}'})
    film.frame("line", -1, {"line": '{"kind":"verdict"' + "[" * 100_000})
    film.frame(
        "line", 0, {"kernel": "oom-kill:constraint=CONSTRAINT_NONE,task_memcg=" + "/a" * 5000}
    )
    death = film.death(booted=3600)
    assert (death["ended"], death["record"], death["samples"]) == ("Unknown", [], [])
