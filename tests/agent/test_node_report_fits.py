"""What the agent sends is what the cluster's half reads."""

import json
import time
from pathlib import Path

from tests.agent.pages import CGROUP, HERE, MIB, POD_UID, Pages
from tests.agent.test_last_death import Film
from tests.guard.telling import HOSTILE, group

from seawall.agent.culprits import culprits_of
from seawall.agent.node_messages import REPORT_MOST_BYTES, distress_part, guard_part, report_body
from seawall.agent.page_watch import PageWatch
from seawall.cluster.judge.node_death import EvidenceKind
from seawall.cluster.objects.node_report_object import RecordEnd, node_report_object


def test_a_whole_report_is_read_as_it_was_meant(tmp_path: Path) -> None:
    pages = Pages(tmp_path / "run")
    pages.decide(name=HOSTILE)
    pages.short(decided=True, top=[group(HOSTILE, outside=1900 * MIB, most=1990 * MIB)])
    watch = PageWatch(str(pages.folder), HERE, time.monotonic())
    assert watch.look(time.monotonic())
    page = watch.page
    assert page is not None
    film = Film(tmp_path / "box")
    film.dying(-30, 0, [group(outside=1900 * MIB, most=1990 * MIB)])
    for at in range(-25, -5):
        film.decide(at, sentence="x" * 5000)
        film.frame("line", at, {"kernel": "0,0,0,-;oom-kill:constraint=CONSTRAINT_NONE,"
                                f"task_memcg={CGROUP.replace('0a1b', f'{at % 100:04}')},"
                                + "y" * 900})  # fmt: skip
    body = report_body("node-7", {
        "at": "2026-11-23T10:00:31.000000Z", "sequence": 7, "bootID": HERE,
        "guard": guard_part(page),
        "distress": distress_part(page, culprits_of(page, watch.proved(time.monotonic()))),
        "lastDeath": film.death(),
    })  # fmt: skip
    assert len(body) <= REPORT_MOST_BYTES
    found = node_report_object(json.loads(body))
    assert found.node == "node-7"
    assert found.guard.can_kill
    assert found.distress is not None
    assert found.distress.culprits[0].is_proved
    assert found.distress.culprits[0].pod_uid == POD_UID
    assert found.last_death is not None
    assert found.last_death.ended is RecordEnd.UNCLEAN
    assert found.last_death.record[0].kind is EvidenceKind.PROVED
    assert 0 < len(found.last_death.samples) <= 12


def test_a_report_of_a_silent_guard_is_one_too() -> None:
    body = report_body("node-7", {
        "at": "2026-11-23T10:00:31.000000Z", "sequence": 1, "bootID": HERE,
        "guard": guard_part(None),
    })  # fmt: skip
    assert node_report_object(json.loads(body)).guard.state == "silent"
