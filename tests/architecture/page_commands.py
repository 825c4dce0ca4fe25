"""The commands that README and the documents show, and which of them a test can run anywhere."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seawall.cli.main import VERBS

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/incidents/**/*.md",
        "docs/decisions/*.md",
        "packaging/*.md",
        ".github/**/*.yml",
    )
    for path in REPOSITORY.glob(pattern)
)
HISTORY = ("CHANGELOG.md", "docs/decisions/")
"""Pages about earlier days: what they name is parsed, and not run."""

_PROGRAM = re.compile(
    r"(PYTHONPATH=src|zcat|seawall|sudo|ssh|scp|make|python3?|tar|cp|rm|mkdir|install|sed|grep|cat|jq|curl|kubectl|"
    r"systemctl|systemd-run|journalctl|apt|apt-get|dnf|pip|pipx|uv|ctr|docker|sha256sum|gpg|git|man|"
    r"flock|kill|tmux|for|while|tests/[a-z_]+) "
)
_MANY_LINES = re.MULTILINE | re.DOTALL
_BLOCK = re.compile(
    r"^```(?P<language>\w*)\n(?P<fenced>.*?)^```|^(?P<indented>(?:    [^\n]*\n)+)",
    _MANY_LINES,
)
_SPAN = re.compile(r"`([^`\n]+)`")
_SUBJECT = re.compile(r"--?[a-z]|[A-Z]|[a-z]+/|list|show|explain|predict|status|report|run|undo")


@dataclass(frozen=True, order=True)
class Command:
    """One command as a page shows it, without its comment."""

    page: str
    text: str


def commands() -> Iterator[Command]:
    """All of them, page by page, in the order of the page: blocks first, then what stands within
    sentences."""
    for path in PAGES:
        page = str(path.relative_to(REPOSITORY))
        text = path.read_text()
        blocks = list(_BLOCK.finditer(text))
        lines = [line for block in blocks for line in _block_lines(block)]
        prose = _BLOCK.sub("", text)
        is_history = page.startswith(HISTORY)
        spans = [
            span
            for match in _SPAN.finditer(prose)
            for span in _span_lines(match[1], takes_bare_verbs=not is_history)
        ]
        for line in dict.fromkeys([*lines, *spans]):
            yield Command(page, line)


def _block_lines(block: re.Match[str]) -> Iterator[str]:
    """Of a shell block every line; of another one those that begin with a program's name."""
    body = block["fenced"] or block["indented"] or ""
    is_shell = block["language"] == "sh"
    if block["language"] not in ("", "sh", None):
        return
    body = re.sub(r"^    ", "", body, flags=re.MULTILINE) if block["indented"] else body
    for line in re.sub(r"\\\n\s*", "", body).splitlines():
        line = without_comment(line).removeprefix("$ ")
        if line and not line.startswith(" ") and (is_shell or _PROGRAM.match(line)):
            yield line


def without_comment(line: str) -> str:
    return re.sub(r"(?:^|\s+)#\s.*$", "", line).rstrip()


def _span_lines(span: str, *, takes_bare_verbs: bool) -> Iterator[str]:
    """What stands in backquotes, when it is a command; ``list|show`` is two, ``[POD]`` nothing."""
    span = re.sub(r"\s*\[[^\]]*\]", "", span)
    first, _, rest = span.partition(" ")
    if takes_bare_verbs and first in VERBS and _SUBJECT.match(rest):
        first, rest, span = "seawall", span, f"seawall {span}"
    if not _PROGRAM.match(span) or "..." in span or "VERB" in span:
        return
    *before, last = span.split(" ")
    if re.fullmatch(r"[a-z-]+(\\?\|[a-z-]+)+", last):
        yield from (" ".join([*before, choice]) for choice in re.split(r"\\?\|", last))
    else:
        yield span


@dataclass(frozen=True)
class Elsewhere:
    """Commands that no test may run on whatever machine it stands on."""

    pattern: str
    """Of the whole command."""
    reason: str
    tests: str = ""
    """Who runs it, or the same words, where it may be run; empty: nobody does."""


_SYSTEMD = "acts on the machine's systemd"
_CLUSTER = "wants a cluster"
_CONTRIBUTOR = "a target of the Makefile, for who changes Seawall: minutes to hours"
ELSEWHERE = (
    Elsewhere(
        r"seawall (numbers slurm:\d+|oom explain slurm-\d+\.out)",
        "wants a job of a real Slurm",
        "tests/slurm/test_job_names.py",
    ),
    Elsewhere(
        r"printf .*seawall check --slurm.*|seawall check --slurm",
        "wants a node of a real Slurm",
        "tests/slurm/test_health_check.py",
    ),
    Elsewhere(
        r"seawall cluster (controller|suspects|(approve|release) NAME|undo --all) --slurm.*"
        r"|sacctmgr .*|useradd --system .*|install -d -o seawall .*",
        "wants a real slurmctld",
        "tests/slurm/test_slurm_judge.py",
    ),
    Elsewhere(
        r"install -d -o slurm .*|install -D .*/agent\.conf .*|systemctl enable --now seawall-agent",
        _SYSTEMD,
        "tests/agent/test_evidence_writer.py",
    ),
    Elsewhere(
        r"scp seawall\.pyz node: && .*",
        "wants the file that is released",
        "tests/release/test_pyz.py",
    ),
    Elsewhere(
        r"touch /run/seawall/brake",
        "disarms the guard of the machine",
        "tests/guard/test_loop_ends.py",
    ),
    Elsewhere(r"make why", "what a fresh clone runs", "tests/fresh_root"),
    Elsewhere(r"make (test|docs|check|lock)", _CONTRIBUTOR, "Makefile"),
    Elsewhere(r"make [a-z-]+( RECORDS=1)?", _CONTRIBUTOR, "Makefile"),
    Elsewhere(r"git checkout COMMIT && make dist", _CONTRIBUTOR, "tests/release/test_pyz.py"),
    Elsewhere(
        r"python -m (bench|tests\.(cluster|films|kernels))\b.*",
        "measures: minutes to hours",
        "bench",
    ),
    Elsewhere(
        r"python -m tests\.outside\..*", "writes files of the tree", "tests/outside/test_outside.py"
    ),
    Elsewhere(
        r"helm (upgrade|rollback|uninstall) .*",
        "wants a cluster",
        "tests/cluster/test_helm_release.py",
    ),
    Elsewhere(r"python -I -S", "how the guard starts its own", "tests/guard/test_companions.py"),
    Elsewhere(
        r"seawall guard run",
        "a guard takes a lock and a cgroup",
        "tests/kernels/test_guard_unit_61.py",
    ),
    Elsewhere(
        r"seawall guard undo( .*)?",
        "changes what it puts back",
        "tests/end_to_end/test_guard_undo.py",
    ),
    Elsewhere(r"seawall memory --who( .*)?", "traces", "tests/end_to_end/test_memory_who.py"),
    Elsewhere(r"seawall capture --who( .*)?", "traces", "tests/end_to_end/test_memory_who.py"),
    Elsewhere(
        r"seawall memory --watch", "goes on for days", "tests/end_to_end/test_memory_watch.py"
    ),
    Elsewhere(
        r"seawall memory --census", "reads every page frame", "tests/end_to_end/test_census_live.py"
    ),
    Elsewhere(
        r"seawall memory --learn-base", "writes /run/seawall", "tests/end_to_end/test_planting.py"
    ),
    Elsewhere(
        r"seawall stacks --sysrq", "prints into the kernel's log", "tests/end_to_end/test_stacks.py"
    ),
    Elsewhere(
        r"seawall oom explain --live",
        "wants the kernel's log",
        "tests/end_to_end/test_oom_explain.py",
    ),
    Elsewhere(r"seawall top", "a screen until q", "tests/end_to_end/test_top.py"),
    Elsewhere(
        r"seawall gpu --watch( .*)?",
        "goes on until it is ended",
        "tests/end_to_end/test_gpu_watch.py",
    ),
    Elsewhere(
        r"(sudo )?seawall gpu repair .*--do.*",
        "changes devices of containers",
        "tests/containers/test_gpu_repair_runc.py",
    ),
    Elsewhere(r"seawall gpu wait .*", "creates device nodes", "tests/end_to_end/test_gpu_verb.py"),
    Elsewhere(
        r"(sudo )?seawall gpu query .+",
        "asks the driver in a container",
        "tests/containers/test_gpu_query_runc.py",
    ),
    Elsewhere(
        r"seawall lab (egl|cuda).*",
        "wants a GPU's libraries",
        "tests/lab/test_lab_uncounted_runs.py",
    ),
    Elsewhere(
        r"P=/usr/bin/python3|\( set -e|\)", "installs", "tests/architecture/test_guard_docs.py"
    ),
    Elsewhere(r"sed 's/name: .*", "writes a manifest", "tests/architecture/test_guard_docs.py"),
    Elsewhere(r"kubectl debug( node/N .*)?", _CLUSTER, "tests/containers/test_release_image.py"),
    Elsewhere(r"kubectl .*", _CLUSTER),
    Elsewhere(r"seawall agent(?! --last-death).*", _CLUSTER, "tests/cluster/test_agent.py"),
    Elsewhere(
        r"systemctl (daemon-)?reload.*|systemctl restart .*",
        _SYSTEMD,
        "tests/kernels/test_guard_unit_61.py",
    ),
    Elsewhere(
        r"systemctl (enable|stop) .*seawall-guard", _SYSTEMD, "tests/kernels/test_guard_unit_61.py"
    ),
    Elsewhere(
        r"systemctl enable --now seawall-metrics", _SYSTEMD, "tests/end_to_end/test_metrics_verb.py"
    ),
    Elsewhere(r"systemctl (stop seawall-off|set-property .*)|systemd-run .*|flock .*", _SYSTEMD),
    Elsewhere(
        r"seawall guard check .* && systemctl reload seawall-guard",
        _SYSTEMD,
        "tests/guard/test_reload.py",
    ),
    Elsewhere(r"for NODE in .*", "ends the guards of a fleet"),
    Elsewhere(r"curl .*", "wants the metrics' server", "tests/end_to_end/test_metrics_verb.py"),
    Elsewhere(r"(apt|dnf) .*", "installs", "tests/release/test_linux_packages.py"),
    Elsewhere(r"pipx? .*", "installs", "tests/release/test_python_packages.py"),
    Elsewhere(r"man .*", "wants the package", "tests/release/test_linux_packages.py"),
    Elsewhere(r"ctr .*", "wants containerd", "tests/containers/test_release_image.py"),
    Elsewhere(
        r"sha256sum .*",
        "wants the files that are released",
        "tests/release/test_python_packages.py",
    ),
    Elsewhere(r"gpg .*", "wants the owner's key"),
    Elsewhere(r"cat /run/seawall/status", "wants a guard", "tests/guard/test_tell_page.py"),
    Elsewhere(
        r"grep -h .*|jq \.", "wants a guard's journal", "tests/end_to_end/test_guard_live.py"
    ),
    Elsewhere(r"journalctl .*|docker .*|kill -9", "another tool, named in a sentence"),
)


def elsewhere(command: Command) -> Elsewhere | None:
    """Its entry in the list above; None: it is run here."""
    return next((e for e in ELSEWHERE if re.fullmatch(e.pattern, command.text)), None)


@dataclass(frozen=True)
class Output:
    """A block of a page that shows what a command printed."""

    page: str
    text: str


def outputs() -> Iterator[Output]:
    """All blocks marked as text, and indented ones behind a ``$`` command; not those that are
    written by ``make docs``, which ``make check`` compares."""
    for path in PAGES:
        text = re.sub(r"<!-- sample: .*?^```\n.*?", "", path.read_text(), flags=_MANY_LINES)
        for block in _BLOCK.finditer(text):
            body = block["fenced"] or block["indented"] or ""
            if block["language"] == "text" or re.match(r"    \$ ", body):
                yield Output(str(path.relative_to(REPOSITORY)), body)


def current_commands() -> Iterator[Command]:
    """Those that a reader is to type today."""
    yield from (each for each in commands() if not each.page.startswith(HISTORY))
