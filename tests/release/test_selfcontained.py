"""seawall-x86_64 where there is no Python, and where there are only old ones."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import missing, room, within

from release import interpreter, selfcontained
from seawall.cli.main import VERBS

if not interpreter.kept_folder().exists():
    pytest.skip(f"{selfcontained.NAME} was not made: make dist", allow_module_level=True)

REPOSITORY = Path(__file__).parents[2]
BUNDLE = REPOSITORY / "docs/incidents/gpu-node-dies/bundle"
OOM_LOG = REPOSITORY / "docs/incidents/page-cache/oom.log"
LOADER = "/lib64/ld-linux-x86-64.so.2"
_IN_ROOT = (
    'root=$1; shift; for each in proc sys dev; do mount --rbind /$each "$root/$each"; done; '
    '[ ! -d /run/seawall ] || mount --rbind /run/seawall "$root/run/seawall"; '
    'exec chroot "$root" "$@"'
)
pytestmark = pytest.mark.timeout(600)  # it is packed anew: ten seconds of processor
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: sudo make test-system")
needs_room = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return selfcontained.build(tmp_path_factory.mktemp("node"))[0]


@pytest.fixture
def root(program: Path, tmp_path: Path) -> Path:
    """Nothing but the program, the folders of the kernel and the libraries of glibc."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for library in {*re.findall(r"=> (/\S+)", listed), LOADER}:
        target = tmp_path / "root" / library[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    for name in ("proc", "sys", "dev", "run/seawall"):
        (tmp_path / "root" / name).mkdir(parents=True)
    shutil.copy(program, tmp_path / "root")
    return tmp_path / "root"


def inside(root: Path, *words: str, told: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", _IN_ROOT, "sh", root, f"/{selfcontained.NAME}", *words],
        input=told, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip


def from_the_tree(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "seawall", *words], env={"PYTHONPATH": "src"}, check=True,
        cwd=REPOSITORY, capture_output=True, text=True,
    ).stdout  # fmt: skip


def test_it_is_small_and_wants_no_library_but_glibcs_of_2012(program: Path) -> None:
    assert program.stat().st_size < 12_000_000
    assert program.stat().st_mode & 0o111
    read = subprocess.run(
        ["readelf", "--wide", "--dynamic", "--version-info", program], capture_output=True,
        text=True, check=True,
    ).stdout  # fmt: skip
    wanted = set(re.findall(r"Shared library: \[(.*)\]", read))
    glibc = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libutil.so.1"}
    assert "libc.so.6" in wanted <= glibc
    versions = {tuple(map(int, one.split("."))) for one in re.findall(r"GLIBC_([0-9.]+)", read)}
    assert (2, 2, 5) in versions
    assert max(versions) <= (2, 17)


def test_it_is_the_same_each_time(program: Path, tmp_path: Path) -> None:
    again = selfcontained.build(tmp_path / "again")[0]
    assert again.read_bytes() == program.read_bytes()


def test_the_licences_go_with_it(program: Path) -> None:
    with zipfile.ZipFile(program) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".py") or ".case" in name]
        texts = {
            name: archive.read(f"licences/{name}.txt").decode()
            for name in ("CPython", "Seawall", "glibc", "libffi", "zig", "zlib")
        }
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in texts["CPython"]
    assert "Jean-loup Gailly" in texts["zlib"]
    assert "libffi" in texts["libffi"]
    assert "Apache License" in texts["Seawall"]


def old_pythons() -> Iterator[Path]:
    for version in ("3.6", "3.9"):
        yield from sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin"))


@pytest.mark.parametrize("folder", [None, *old_pythons()], ids=str)
def test_a_python_on_path_is_not_used(program: Path, folder: Path | None, tmp_path: Path) -> None:
    environment = {
        "PATH": str(folder or tmp_path), "PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path)
    }  # fmt: skip
    (tmp_path / "os.py").write_text("raise SystemExit('a stranger')")
    done = subprocess.run(
        [program, "version", "--json"], env=environment, cwd=tmp_path, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["python"].startswith("3.11.")
    assert said["executable"] == said["location"] == str(program)
    assert said["is_one_file"] is True


def test_it_answers_as_the_tree_does(program: Path) -> None:
    for words in (
        ("why", "--from", str(BUNDLE), "--whole"),
        ("memory", "--from", str(BUNDLE), "--json"),
        ("rules", "show", "SW103"),
        ("oom", "explain", str(OOM_LOG)),
        ("oom", "predict", "--from", str(BUNDLE)),
    ):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), words
        assert done.stdout == from_the_tree(*words), words


def test_every_verb_starts(program: Path) -> None:
    for verb in VERBS:
        done = subprocess.run(
            [program, verb, "--help"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), verb
        assert done.stdout.startswith(f"usage: seawall {verb}"), verb


NEEDS_A_CLUSTER = tuple(
    f"seawall.{room}."
    for room in (
        "agent",
        "cluster.actor",
        "cluster.acts",
        "cluster.changes",
        "cluster.kube",
        "cluster.observer",
        "cluster.slurm.slurm_metrics",
    )
)
MISSING_FOR_A_CLUSTER = {
    f"No module named '{name}'" for name in ("msgspec", "prometheus_client", "ssl", "urllib3")
}


def test_every_module_of_seawall_can_be_imported(program: Path) -> None:
    """What the standard library lacks is left out on purpose, and nobody wants it but who speaks to
    a cluster, which this file cannot.
    """
    with zipfile.ZipFile(program) as archive:
        names = [
            name.removesuffix(".pyc").removesuffix("/__init__").replace("/", ".")
            for name in archive.namelist()
            if name.startswith("seawall/") and name.endswith(".pyc") and "__main__" not in name
        ]
    run = (
        "import sys, json; sys.path.append(sys.executable)\n"
        "for name in json.load(sys.stdin):\n"
        "    try: __import__(name)\n"
        "    except ImportError as error: print(name, error)\n"
    )
    done = subprocess.run(
        [program, "-I", "-S", "-c", run], input=json.dumps(names), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    for line in done.stdout.splitlines():
        name, _, problem = line.partition(" ")
        assert f"{name}.".startswith(NEEDS_A_CLUSTER), line
        assert problem in MISSING_FOR_A_CLUSTER, line


def test_who_needs_tls_is_told_so(program: Path) -> None:
    words = ("agent", "--node-name", "n", "--server", "https://127.0.0.1:1", "--ca", "/etc/passwd",
             "--token-file", "/etc/passwd")  # fmt: skip
    for asked in (words, ("cluster", "why")):
        done = subprocess.run([program, *asked], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert done.stderr.startswith("seawall: "), done.stderr
        assert "ssl" in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_a_wrong_word_is_one_line(program: Path) -> None:
    done = subprocess.run([program, "wy"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.mark.system
@pytest.mark.beside
@is_root
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("why",), "Linux"),
        (("version", "--json"), '"is_one_file": true'),
        (("memory",), "uncounted memory"),
        (("pods",), "Looked at:"),
        (("stacks", "--for", "1"), "memory"),
        (("top", "--once"), "headroom"),
        (("guard", "check"), "mode observe"),
        (("gpu",), "device"),
        (("oom", "explain", "-"), "was chosen to die"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_verbs_in_an_empty_root(root: Path, words: tuple[str, ...], expected: str) -> None:
    done = inside(root, *words, told=OOM_LOG.read_text() if words[0] == "oom" else "")
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.system
@pytest.mark.beside
@needs_room
def test_the_guard_runs_in_an_empty_root(root: Path, program: Path) -> None:
    with room(root) as own:
        own.write()
        words = [f"/{selfcontained.NAME}", "guard", "run", "--config", "/guard.toml"]
        with (root / "out").open("w") as out:
            process = subprocess.Popen(
                [*own.enter, "sh", "-c", _IN_ROOT, "sh", str(root), *words],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, text=True,
                env={"PATH": os.environ["PATH"]},
            )  # fmt: skip
        own.processes.append(process)
        said = root / "out"
        assert within(60, lambda: own.page().get("can_kill") is True), said.read_text()
        assert own.page()["pid"] == process.pid
        running = processes(root)
        assert len(running) >= 4, running
        for pid in running:
            assert strangers(pid, root) == []
        own.write(act_fraction=0.031)
        process.send_signal(signal.SIGHUP)
        assert within(40, lambda: "was read anew" in said.read_text()), said.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert within(20, lambda: not processes(root))
        assert "Traceback" not in said.read_text()


def processes(root: Path) -> list[int]:
    """Those that run the program that lies there."""
    own = (root / selfcontained.NAME).stat()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                its = (entry / "exe").stat()
            except OSError:
                continue
            if (its.st_dev, its.st_ino) == (own.st_dev, own.st_ino):
                found.append(int(entry.name))
    return found


def strangers(pid: int, root: Path) -> list[str]:
    """Files that it has mapped from elsewhere."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    files = {line.split(None, 5)[5] for line in maps if len(line.split(None, 5)) > 5}
    return [
        name
        for name in sorted(files)
        if name.startswith("/") and not name.startswith((f"{root}/", "/memfd:", "/dev/zero"))
    ]
