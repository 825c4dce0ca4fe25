# SPDX-License-Identifier: Apache-2.0
"""``seawall oom predict`` as text: who dies first and what that brings, then the table."""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.oom.agreement import DRIFT_MOST
from seawall.accounts.oom.contenders import Contender
from seawall.accounts.oom.prediction import NEEDED_SHARE, Prediction, Ranked
from seawall.accounts.oom.relief import Relief
from seawall.accounts.oom.returns import Returns
from seawall.accounts.oom.swarm import BYSTANDERS
from seawall.views.oom_predict_page import DESCRIBED_MOST, PredictPage
from seawall.views.terminal import Console, plain, shorten
from seawall.words import brief, count, percent, size

SHOWN: Final = 10
_NAMES_SHOWN: Final = 4
_BYSTANDERS: Final = (
    f"With {len(BYSTANDERS)} small processes such as every container has, made first:"
    f" {', '.join(name for name, _ in BYSTANDERS)}."
)


def lines(page: PredictPage, paper: Console) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    yield ""
    prediction = page.prediction
    if prediction is None:
        words = "Who would die cannot be told"
        if page.missing is not None:
            words += f": {page.missing.path}: {page.missing.detail or page.missing.why}"
        yield from paper.wrap(words)
        return
    style = "bold" if prediction.killable and not prediction.hangs else "critical"
    for line in paper.wrap(_headline(prediction, page.described)):
        yield paper.paint(line, style)
    yield from paper.wrap(_formula(prediction))
    yield ""
    if prediction.ranking:
        yield from _table(prediction, paper)
    if prediction.scope.kind == "described":
        yield from paper.wrap(_BYSTANDERS)
    yield from _relief(prediction, paper)
    for note in prediction.notes:
        yield from paper.wrap(note, "  ", "- ")
    yield from _immune(prediction, paper)
    yield from _agreement(prediction, paper)


def _headline(prediction: Prediction, described: str) -> str:
    scope = prediction.scope
    if described:
        return _described(prediction, described)
    where = "If the node ran out of memory now"
    if scope.group is not None:
        whose = "its own limit" if scope.group == scope.asked else f"the limit of {scope.name}"
        asked = scope.asked.name if scope.asked else scope.name
        where = f"If {asked} reached {whose}, {size(scope.group.limit or 0)}, now"
    if not prediction.killable:
        return f"{where}, nobody would be killed: {prediction.why}."
    first = prediction.ranking[0]
    return f"{where}, {_who(first)} would die first: {_back(first.returns)} would come back."


def _described(prediction: Prediction, described: str) -> str:
    relief = prediction.relief
    if relief is None or not prediction.killable:
        return f"{described}: it hangs. Nobody can be killed: {prediction.why}."
    if not relief.needed_bytes:
        return f"{described}: {prediction.why}."
    first = relief.first[0]
    what = f"{first.comm}, {size(first.returns_bytes)}, would die first"
    match relief.outcome:
        case "ties":
            return f"{described}: it hangs. {what}, and killing goes on without relief."
        case "many":
            return f"{described}: {what}; more than {_kills(relief)} would be needed."
        case "exhausted":
            return f"{described}: it does not fit even when all of them are killed."
    return f"{described}: it does not hang. {what}; after {_kills(relief)} it fits."


def _who(row: Ranked) -> str:
    words = f"pid {row.one.pid} ({row.one.comm})"
    if row.workload is not None:
        words += f" of {row.workload}"
    if row.ends_container:
        words += " (its first process: all of it)"
    if row.group is not None:
        words += f" and everything in {row.group} with it (memory.oom.group)"
    return words


def _back(returns: Returns) -> str:
    if returns.most - returns.least <= returns.most // 20:
        return size(returns.likely)
    return f"{size(returns.least)} to {size(returns.most)}"


def _formula(prediction: Prediction) -> str:
    formula = prediction.formula
    if prediction.is_own_kernel:
        whose = "as this kernel counts them"
    else:
        whose = f"as Linux {formula.name} would count them ({formula.holds_for})"
    unit = "pages" if formula.unit == "pages" else "thousandths"
    return f"Points {whose}, in {unit}: {formula.text}."


def _table(prediction: Prediction, paper: Console) -> Iterator[str]:
    head = ["  PID PROCESS", "ADJ", "SCORE", "POINTS", "ANON", "FILE", "SHMEM", "SWAP", "BACK"]
    shown = prediction.ranking[:SHOWN]
    rows = [_cells(row) for row in shown]
    first, *body = paper.table(head, rows)
    yield paper.paint(first, "dim")
    several = len({row.workload for row in shown}) > 1
    last: str | None = None
    for line, row in zip(body, shown, strict=True):
        if several and row.workload != last:
            last = row.workload
            name = "in no cgroup but the root" if last is None else shorten(plain(last), 76)
            yield paper.paint(f"  {name}:", "dim")
        yield line
    left = len(prediction.ranking) - len(shown)
    if left:
        is_described = prediction.scope.kind == "described"
        has = f"the first {DESCRIBED_MOST}" if is_described else "them all"
        yield f"and {count(left)} more that may be chosen after them (--json has {has})"
    words = "ADJ oom_score_adj; SCORE /proc/PID/oom_score"
    if prediction.scope.kind == "memcg":
        words += ", of the whole node, where POINTS are of this limit"
    words += "; BACK at least to at most: tmpfs and"
    words += " what others map stay, file pages could be dropped without a kill"
    for line in paper.wrap(words + "."):
        yield paper.paint(line, "dim")
    yield ""


def _cells(row: Ranked) -> list[str]:
    one, back = row.one, row.returns
    least, most = brief(back.least), brief(back.most)
    return [
        f"{one.pid:>5} {one.comm}",
        str(one.candidate.oom_score_adj),
        str(row.oom_score),
        f"{row.points:,}",
        *("?" if part is None else brief(part) for part in (one.anon, one.file, one.shmem)),
        brief(one.swap),
        least if least == most else f"{least}-{most}",
    ]


def _kills(relief: Relief) -> str:
    return f"{count(relief.kills)} kill{'' if relief.kills == 1 else 's'}"


def _relief(prediction: Prediction, paper: Console) -> Iterator[str]:
    """What the kills together bring."""
    relief = prediction.relief
    if relief is None or not relief.needed_bytes:
        return
    wanted = size(relief.needed_bytes)
    if prediction.scope.kind != "described":
        whole = "RAM and swap" if prediction.scope.kind == "node" else "the limit"
        wanted += f" ({percent(NEEDED_SHARE)} of {whole})"
    freed = size(relief.freed_bytes)
    style = None
    match relief.outcome:
        case "relieved":
            words = f"{wanted} would be relief: {_kills(relief)} would bring it back."
            if prediction.scope.kind == "described":
                words = f"{wanted} are needed: {_kills(relief)} would bring back {freed}."
        case "many":
            words = f"More than {_kills(relief)} would be needed to bring back {wanted}."
            style = "warning"
        case "exhausted":
            words = f"All of them together would give back {freed}; {wanted} would be relief."
            style = None if prediction.scope.kind == "node" else "warning"
        case _:
            words = (
                f"No relief: {count(relief.tied)} processes have the same points, so the list and"
                f" not the size decides. {_kills(relief).capitalize()} bring back {freed} where"
                f" {wanted} are needed; the largest of them holds"
                f" {size(relief.largest_tied_bytes)}. The small ones are started again, and it"
                " begins anew."
            )
            style = "critical"
    for line in paper.wrap(words):
        yield paper.paint(line, style) if style else line


def _immune(prediction: Prediction, paper: Console) -> Iterator[str]:
    by_reason: dict[str, list[Contender]] = {}
    for one in prediction.immune:
        by_reason.setdefault(one.immune or "", []).append(one)
    parts = [f"{_named(found)}: {why}" for why, found in by_reason.items()]
    if prediction.kernel_threads:
        plural = "" if prediction.kernel_threads == 1 else "s"
        parts.append(f"{count(prediction.kernel_threads)} kernel thread{plural}")
    if parts:
        yield from paper.wrap(f"Never chosen: {'; '.join(parts)}.")
    if prediction.incomplete:
        words = "processes ended or were refused while they were read and are not in the list."
        yield from paper.wrap(f"{count(prediction.incomplete)} {words}")


def _named(found: Sequence[Contender]) -> str:
    names = [f"{one.comm} ({one.pid})" for one in found[:_NAMES_SHOWN]]
    if len(found) > _NAMES_SHOWN:
        names.append(f"{count(len(found) - _NAMES_SHOWN)} more")
    return ", ".join(names)


def _agreement(prediction: Prediction, paper: Console) -> Iterator[str]:
    agreement = prediction.agreement
    if agreement is None:
        return
    words = "Checked against the kernel's own oom_score"
    if not prediction.is_own_kernel:
        words = "The sizes were checked by this kernel's own formula against its oom_score"
    words += f" of all {count(agreement.compared)} processes of the node:"
    if not agreement.off_count:
        words += f" all agree within {DRIFT_MOST}"
    else:
        off = agreement.off[0]
        words += (
            f" {count(agreement.off_count)} differ by more than {DRIFT_MOST}, first pid {off.pid}"
            f" ({off.comm}), {off.kernels} there and {off.ours} here"
        )
    words += "; the order is the same." if agreement.order_agrees else "; the order differs."
    yield from paper.wrap(words)
