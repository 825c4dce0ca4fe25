"""Each verb with exactly the capabilities that it wants, with one fewer, and with none.

The process is never root: an ordinary user with the named capabilities raised, as a
DaemonSet with ``runAsUser`` and ``capabilities.add`` has them.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.end_to_end.verbs import SOURCES, Ran, rules_without, run, seawall

pytestmark = [pytest.mark.system, pytest.mark.beside]
READING = ("why", "memory", "pods", "numbers", "cache")
ON_DEMAND = ("gpu",)
"""What they want they only lack where a container was promised a device."""
VERBS = (*READING, *ON_DEMAND, "capture")
NOBODY = "65534"


def wanted(verb: str) -> tuple[str, ...]:
    """What the verb's module declares, e.g. ("SYS_PTRACE",)."""
    names: tuple[str, ...] = import_module(f"seawall.cli.{verb}").WANTED
    return names


CASES = [
    pytest.param(verb, kept, id=f"{verb}-{'+'.join(kept) or 'ordinary'}")
    for verb in VERBS
    for kept in dict.fromkeys(
        (
            wanted(verb),
            *(tuple(n for n in wanted(verb) if n != left) for left in wanted(verb)),
            (),
        )
    )
]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """The sources where an ordinary user can read them."""
    if os.geteuid():
        pytest.skip("changing user and capabilities needs root: sudo make test-system")
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is missing: apt-get install util-linux")
    folder = Path(tempfile.mkdtemp(prefix="seawall-ordinary-"))
    folder.chmod(0o755)
    shutil.copytree(SOURCES, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "out").mkdir()
    shutil.chown(folder / "out", int(NOBODY))
    with runtime_folder_of_root():
        yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def runtime_folder_of_root() -> Iterator[None]:
    """What crun leaves for its containers: root's alone, as those of other runtimes are."""
    state = Path("/run/crun")
    made = not state.exists()
    if made:
        state.mkdir(mode=0o700)
    try:
        yield
    finally:
        if made:
            state.rmdir()


@functools.cache
def interpreter() -> str:
    """A Python that an ordinary user can start; the test's own may lie in root's home."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        code = "import sys; sys.exit(sys.version_info < (3, 10))"
        # setpriv itself still may open anything when it starts its program; env may not.
        command = [*launcher(()), "env", python, "-c", code]
        if (
            os.path.exists(python)
            and not subprocess.run(command, capture_output=True, check=False).returncode
        ):
            return python
    pytest.skip("no Python that an ordinary user can start: apt-get install python3")


def launcher(capabilities: tuple[str, ...]) -> list[str]:
    raised = ",".join(["-all", *(f"+{name.lower()}" for name in capabilities)])
    return [
        "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
        f"--inh-caps={raised}", f"--ambient-caps={raised}", f"--bounding-set={raised}",
    ]  # fmt: skip


def run_as(home: Path, capabilities: tuple[str, ...], *words: str) -> Ran:
    environment = ["env", f"PYTHONPATH={home / 'src'}"]
    return run(
        [*launcher(capabilities), *environment, interpreter(), "-m", "seawall", *words],
        most_seconds=40,
    )


def words_for(verb: str, home: Path) -> list[str]:
    bundle = home / "out/x.bundle"
    bundle.unlink(missing_ok=True)
    return [verb, "--for=2", f"-o{bundle}"] if verb == "capture" else [verb, "--json"]


def test_every_wanted_name_is_a_capability_that_the_reader_reports(home: Path) -> None:
    code = (
        "from seawall.host.live import LiveHost; import json;"
        "print(json.dumps(LiveHost().ask('reader')['capabilities']))"
    )
    for verb in VERBS:
        names = wanted(verb)
        ran = run(
            [*launcher(names), "env", f"PYTHONPATH={home / 'src'}", interpreter(), "-c", code]
        )
        assert ran.answered()
        assert sorted(names) == sorted(json.loads(ran.out))


@pytest.mark.parametrize(("verb", "kept"), CASES)
def test_verb_runs_and_says_what_it_lacks(home: Path, verb: str, kept: tuple[str, ...]) -> None:
    ran = run_as(home, kept, *words_for(verb, home)).answered()
    if verb == "capture":
        ran = run_as(home, (), "why", "--json", "--from", str(home / "out/x.bundle")).answered()
    rows = ran.document["could_not_see"]
    named = [{name for name in wanted(verb) if name in " ".join(row.values())} for row in rows]
    for row, names in zip(rows, named, strict=True):
        if names and row["what"] not in refused_to_root(verb):
            assert names - set(kept), f"it has what this says it lacks: {row}"
    for name in set(wanted(verb)) - set(kept) if verb not in ON_DEMAND else ():
        assert any(name in names for names in named), f"without {name} nothing names it: {rows}"


@functools.cache
def refused_to_root(verb: str) -> frozenset[str]:
    """What no capability opens on this machine, e.g. the first process of a sandbox."""
    ran = seawall("why" if verb == "capture" else verb, "--json").answered()
    return frozenset(row["what"] for row in ran.document["could_not_see"])


@pytest.mark.parametrize("verb", [*READING, *ON_DEMAND])
def test_an_ordinary_user_reads_it_in_text(home: Path, verb: str) -> None:
    ran = run_as(home, (), verb, *(["--whole"] if verb == "why" else [])).answered()
    assert "Could not see" in ran.text
    for name in wanted(verb) if verb not in ON_DEMAND else ():
        assert name in ran.text


def test_where_nothing_fires_an_ordinary_user_reads_at_once_how_many_looked(home: Path) -> None:
    """Whatever fires on this machine is muted, so that the sentence comes."""
    findings = run_as(home, (), "why", "--json").answered().document["findings"]
    firing = {row["id"] for row in findings if row["verdict"] == "fires"}
    (home / "out/rules.toml").write_text(rules_without(firing))
    text = run_as(home, (), "why", "--rules", str(home / "out/rules.toml")).answered().text
    sentence = r"^Nothing fires now in the (\d+) of (\d+) rules that could look\.$"
    said = re.search(sentence, text, re.MULTILINE)
    assert said, text
    rules = {row["id"] for row in findings} - firing
    blind = {row["id"] for row in findings if row["verdict"] == "blind"} - firing
    assert (int(said[1]), int(said[2])) == (len(rules - blind), len(rules))
    assert blind, "an ordinary user is refused something everywhere"
