# SPDX-License-Identifier: Apache-2.0
"""Runs rules over a scene.  Pure: what a rule needs comes from the scene and the policy."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, get_args, get_origin

from seawall.accounts.scene import Scene, TopicWindow
from seawall.findings.finding import Finding, Judged, blind
from seawall.findings.policy import Policy
from seawall.findings.rule import Rule
from seawall.host.host import Unread
from seawall.readings.own_fault import unread_of
from seawall.readings.snapshot import needs_of

_LOST_SHOWN: Final = 3


def needs_window(rule: Rule) -> bool:
    """Whether the rule has to wait for a second moment."""
    return any(get_origin(need) is TopicWindow for _, need, _ in needs_of(rule.judge))


def copes_with_one_moment(rule: Rule) -> bool:
    """Whether it wants a second moment and can say something without one."""
    windows = [copes for _, need, copes in needs_of(rule.judge) if get_origin(need) is TopicWindow]
    return bool(windows) and all(windows)


def window_topics(rules: Iterable[Rule]) -> list[type[Any]]:
    """What has to be read at the first moment so that rates exist at the second."""
    found: dict[type[Any], None] = {}
    for rule in rules:
        for _, need, _ in needs_of(rule.judge):
            if get_origin(need) is TopicWindow:
                found[get_args(need)[0]] = None
    return list(found)


def judge(rules: Iterable[Rule], scene: Scene, policy: Policy) -> Iterator[Judged]:
    """Every finding of every rule, in the order of the rules, as it becomes certain."""
    for rule in rules:
        for finding in _as_far_as_seen(rule, scene, _findings(rule, scene, policy)):
            severity = rule.severity if finding.verdict == "blind" else finding.severity
            yield Judged(
                id=rule.id,
                title=rule.title,
                finding=replace(finding, severity=severity),
                muted=policy.muted_reason(rule.id, finding.workload),
                confirm=rule.confirm if finding.confirm is None else finding.confirm,
                remedy=rule.remedy if finding.remedy is None else finding.remedy,
                steps=finding.brief.steps or rule.steps,
                explained_by=(
                    rule.explained_by if finding.explained_by is None else finding.explained_by
                ),
                has_holder=rule.has_holder,
                is_of_node_memory=rule.is_of_node_memory,
            )


def _findings(rule: Rule, scene: Scene, policy: Policy) -> Sequence[Finding]:
    arguments: dict[str, Any] = {}
    missing: list[Unread] = []
    for name, need, copes in needs_of(rule.judge):
        value = scene.get(need)
        if isinstance(value, Unread) and not copes:
            missing.append(value)
        arguments[name] = value
    if missing:
        words = "; ".join(f"{m.path}: {m.detail or m.why}" for m in missing)
        return [blind(f"could not judge: {words}", *missing)]
    try:
        answer = rule.judge(**arguments, **policy.thresholds_for(rule.id))
        return [answer] if isinstance(answer, Finding) else list(answer)
    except Exception as error:  # noqa: BLE001 - one rule's fault is not the others'
        fault = unread_of(rule.id, error)
        return [blind(f"could not judge: {fault.detail}", fault)]


def _as_far_as_seen(rule: Rule, scene: Scene, findings: Sequence[Finding]) -> Sequence[Finding]:
    """Of a bundle that was cut: nothing found in half of the files is no QUIET."""
    if any(finding.verdict != "quiet" for finding in findings):
        return findings
    needs = [next(iter(get_args(need)), need) for _, need, _ in needs_of(rule.judge)]
    lost = list(scene.lost_below(needs))
    return [blind("quiet as far as the bundle goes", *lost[:_LOST_SHOWN])] if lost else findings
