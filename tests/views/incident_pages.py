"""An incident's page with one hostile name wherever a machine or a record puts a name."""

from seawall.accounts.log_episodes.recent_events import RecentEvent, RecentEvents
from seawall.accounts.oom.explanation import explain_all
from seawall.accounts.pods.pod_table import PodTable
from seawall.findings.blindness import NotSeen
from seawall.findings.finding import Evidence, Judged, fires
from seawall.host.host import Unread
from seawall.readings.oom_log.parser import read_reports
from seawall.views.blackbox_page import BoxEvent
from seawall.views.html_report.incident_page import (
    ConsideredWorkload,
    DecisionRecord,
    DecisionStory,
    HistoryPoint,
    IncidentHistory,
    IncidentPage,
    ReportOrigin,
)
from seawall.views.memory_page import MemoryPage
from seawall.views.pods_choice import PodChoice, choose
from seawall.views.why_screen import Answer

REPORT = (
    b"[100.0] %b invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    b"[100.1] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/%b,task=%b,pid=7,"
    b"uid=0\n"
    b"[100.2] Memory cgroup out of memory: Killed process 7 (%b) total-vm:1kB, anon-rss:1kB, "
    b"file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n"
)


def page_of(name: str) -> IncidentPage:
    """Every text in it is ``name``, or holds it."""
    judged = Judged(
        id="SW999", title=name, finding=fires(
            "critical", name, [Evidence(name, name, "text", name)], outlook=name, workload=name,
            confirm=[name], remedy=[name],
        ),
        confirm=(name,), remedy=(name,),
    )  # fmt: skip
    missing = Unread(name, "failed", name)
    table = PodTable((), 2, None, None, ())
    comm = name.replace("\n", "").encode("utf-8", "surrogateescape")[:15]
    kills = tuple(explain_all(read_reports((REPORT.replace(b"%b", comm)).splitlines())))
    event = RecentEvent(
        kind="oom_kill", first_at_unix_seconds=1.0, last_at_unix_seconds=2.0, sentence=name,
        workload=name, source=name, more=name,
    )  # fmt: skip
    point = HistoryPoint(unix_seconds=1.0, headroom_bytes=1, residual_bytes=2, stall=0.5)
    return IncidentPage(
        node=name, taken_at=name, heading=name,
        answer=Answer(judged=[judged], unseen=[NotSeen(name, name, name)], heading=name,
                      guard=name, cut=name),
        memory=MemoryPage(ledger=missing, headroom=missing, base=missing, base_is_new=False,
                          claimed=missing, shadow=missing, unseen=(), bundle_notes=()),
        table=table, workloads=choose(table, PodChoice()),
        history=IncidentHistory(
            source=name, first_unix_seconds=0.0, last_unix_seconds=60.0, points=[point],
            stall_words=name, events=[BoxEvent(5.0, name, 1, "verdict", name, name)]),
        recent=RecentEvents(since_seconds=60.0, events=(event,), unread=(missing,)),
        oom_kills=kills, oom_left_out=3,
        unseen=[NotSeen(name, name, name)],
        decisions=DecisionRecord([DecisionStory(
            decision=name, unix_seconds=5.0, mode="observe", sentence=name, outcomes=[name],
            considered=[ConsideredWorkload(name=name, place=1, why=name, charge_bytes=1,
                                           uncounted_bytes=2)], left_out=1)], unread=2),
        origin=ReportOrigin(command=name, version="0", source=name, took_seconds=1.0, notes=[name],
                            rules=1, rules_that_looked=1),
    )  # fmt: skip
