"""What Prometheus reads of the Slurm controller: one turn held, then a slurmctld that is silent."""

import time
from dataclasses import replace

import pytest
from tests.cluster_slurm.test_hold_plan import POLICY, active, death

from seawall.cluster.slurm.job_quarantine import JobHold
from seawall.cluster.slurm.slurm_metrics import SlurmMetrics
from seawall.cluster.slurm.slurm_policy import slurm_policy
from seawall.cluster.slurm.slurm_state import SlurmState
from seawall.cluster.slurm.turn_sink import HoldObstacle, SlurmTurn
from seawall.problems import UsageProblem


def series(metrics: SlurmMetrics) -> dict[str, float]:
    """By name and labels, without what is of the time."""
    return {
        " ".join((row.name, *row.labels.values())): row.value
        for family in metrics.registry.collect() for row in family.samples
        if not row.name.endswith(("_created", "_seconds", "_info"))
    }  # fmt: skip


def turn(obstacle: HoldObstacle, *, deaths: int = 0) -> SlurmTurn:
    hold = JobHold("100", "hold", 1.0, 5, "done")
    one = active(holds=(hold,), activated_seconds=time.time())
    state = SlurmState(quarantines={one.name: one})
    found = [death(number, 600.0, []) for number in range(deaths)]
    return SlurmTurn(time.time(), obstacle, found, 1000, state)


def test_a_hold_its_suspect_and_what_the_brakes_leave() -> None:
    metrics = SlurmMetrics(POLICY)
    told = turn(HoldObstacle("", ""), deaths=2)
    (name,) = told.state.quarantines
    metrics.look(told)
    found = series(metrics)
    assert found["seawall_node_deaths_total main rack1 silent"] == 1
    assert found[f"seawall_workload_verdict physics Job {name} convicted"] == 1
    assert found[f"seawall_nodes_lost physics Job {name}"] == 4
    assert found["seawall_quarantines active"] == 1
    assert found["seawall_held_jobs"] == 1
    assert found["seawall_action_budget_remaining activate"] == 2
    assert found["seawall_action_budget_remaining hold"] == 19  # 2 % of 1,000 without it
    assert (found["seawall_leader"], found["seawall_slurmctld_up"]) == (1, 1)
    assert found["seawall_dry_run"] == 0
    metrics.look(replace(told, deaths=(), state=SlurmState()))
    found = series(metrics)
    assert found["seawall_quarantines active"] == 0
    assert not [one for one in found if "physics" in one]
    assert found["seawall_node_deaths_total main rack1 silent"] == 1


@pytest.mark.parametrize(
    ("brake", "leader"), [("api", 1), ("storm", 1), ("view", 1), ("elsewhere", 0)]
)
def test_each_brake_by_its_name_and_a_standby_is_none(brake: str, leader: int) -> None:
    metrics = SlurmMetrics(replace(POLICY, dry_run=True))
    metrics.look(turn(HoldObstacle(brake, "why")))  # type: ignore[arg-type]
    found = series(metrics)
    tripped = {one for one, value in found.items() if one.startswith("seawall_brake") and value}
    assert tripped == {f"seawall_brake_tripped {brake}"} - {"seawall_brake_tripped elsewhere"}
    assert (found["seawall_leader"], found["seawall_dry_run"]) == (leader, 1)


def test_a_silence_grows_old_and_makes_the_process_ill(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = SlurmMetrics(POLICY)
    metrics.look(turn(HoldObstacle("", "")))
    metrics.silence()
    found = series(metrics)
    assert (found["seawall_slurmctld_up"], found["seawall_brake_tripped api"]) == (0, 1)
    assert metrics.problem() == ""
    later = time.monotonic() + 400.0
    monkeypatch.setattr(time, "monotonic", lambda: later)
    age = metrics.registry.get_sample_value(
        "seawall_watch_staleness_seconds", {"resource": "slurmctld"}
    )
    assert age is not None
    assert age >= 400.0 - 1.0
    assert "no whole answer" in metrics.problem()


def test_the_policy_names_the_address() -> None:
    assert slurm_policy(b"", "x").metrics_address == ""
    assert slurm_policy(b'metrics_address = "[::1]:9000"', "x").metrics_address == "[::1]:9000"
    with pytest.raises(UsageProblem, match="metrics_address: expected a word"):
        slurm_policy(b"metrics_address = 9000", "x")
