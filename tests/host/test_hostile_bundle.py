"""Archives made to exhaust the reader, and answers made to confuse it."""

import gzip
import io
import os
import resource
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.warm_verbs import seawall

from seawall.host.bundle import open_bundle
from seawall.problems import BundleProblem
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot

ROOT = Path(__file__).parents[2]
MEMORY_LIMIT_KB = 150_000
SECONDS_LIMIT = 10
MANIFEST = b'{"schema": "seawall.bundle/1", "rounds": 1}'
# What opening it takes at most, and what it says.
OPEN = """
import sys
from seawall.host.bundle import open_bundle
from seawall.problems import BundleProblem
try:
    open_bundle(sys.argv[1])
    words = "opened"
except BundleProblem as error:
    words = str(error)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak.split()[1], words)
"""


def header(name: str, kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def block(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def member(name: str, content: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    return header(name, kind, len(content)) + block(content)


def pax(key: str, value: str) -> bytes:
    length = len(key) + len(value) + 3
    while length != len(f"{length} {key}={value}\n"):
        length += 1
    return f"{length} {key}={value}\n".encode()


def whole(*extra: bytes, answers: bytes = b"{}") -> bytes:
    head = member("MANIFEST.json", MANIFEST) + member("1/answers.json", answers)
    return head + b"".join(extra) + bytes(1024)


def zeros(name: str, kind: bytes) -> Iterator[bytes]:
    """Twice as many as may be held, of the more that are promised."""
    yield header(name, kind, 600 << 20)
    for _ in range(300):
        yield bytes(1 << 20)


def repeated(piece: bytes, count: int) -> Iterator[bytes]:
    for _ in range(count // 1000):
        yield piece * 1000


QUADRATIC = member("x", b"1" * 60_000, tarfile.XHDTYPE) + header("d", tarfile.DIRTYPE, 0)
SPARSE = pax("GNU.sparse.major", "1") + pax("GNU.sparse.minor", "0")
BOMBS: dict[str, tuple[Callable[[], Iterator[bytes]], str]] = {
    "long name": (lambda: zeros("x", tarfile.GNUTYPE_LONGNAME), "overlong header"),
    "long link": (lambda: zeros("x", tarfile.GNUTYPE_LONGLINK), "overlong header"),
    "pax": (lambda: zeros("x", tarfile.XHDTYPE), "overlong header"),
    "global pax": (lambda: zeros("x", tarfile.XGLTYPE), "overlong header"),
    "sparse": (lambda: zeros("1/files/x", tarfile.GNUTYPE_SPARSE), "not a plain file"),
    "sparse by pax": (
        lambda: iter([member("x", SPARSE, tarfile.XHDTYPE), *zeros("1/files/x", tarfile.REGTYPE)]),
        "16 MiB a file",
    ),
    "header on header": (
        lambda: repeated(member("x", pax("a", "b"), tarfile.XHDTYPE), 10_000),
        "overlong header",
    ),
    "many folders and files": (
        lambda: repeated(
            header("1/files/d", tarfile.DIRTYPE, 0) + member("1/files/proc/1/status", b""), 150_000
        ),
        "more than 200,000",
    ),
    "digits": (lambda: repeated(QUADRATIC, 1000), "bad pax header"),
    "skipped names": (
        lambda: repeated(
            member("x", b"n" * 60_000, tarfile.GNUTYPE_LONGNAME) + header("d", tarfile.DIRTYPE, 0),
            10_000,
        ),
        "over 512 MiB unpacked",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_takes_little_memory_and_time(name: str, tmp_path: Path) -> None:
    pieces, words = BOMBS[name]
    path = tmp_path / "bomb"
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(whole()[:-1024])
        for written, piece in enumerate(pieces()):
            out.write(piece)
            if written * len(piece) > 700 << 20:
                break
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(path)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Of a processor: what else runs on the machine takes no part of it.
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak, _, said = done.stdout.partition(" ")
    assert words in said
    assert int(peak) < MEMORY_LIMIT_KB
    assert seconds < SECONDS_LIMIT


def opened(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(content)
    open_bundle(str(path))


@pytest.mark.parametrize(
    "records",
    [b"", b"0 path=x\n", b"9999 path=x\n", b"x path=y\n", b"10 path\n\n\n", b"-5 path=x\n"],
)
def test_bad_pax_records(records: bytes, tmp_path: Path) -> None:
    extra = member("x", records, tarfile.XHDTYPE) + member("1/files/a", b"1")
    if records:
        with pytest.raises(BundleProblem, match="bad pax header"):
            opened(whole(extra), tmp_path)
    else:
        opened(whole(extra), tmp_path)


def test_negative_size_and_other_compressions_are_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("1/files/x")
    info.size = -512
    with pytest.raises(BundleProblem, match="negative size"):
        opened(whole(info.tobuf(tarfile.GNU_FORMAT)), tmp_path)
    for mode in ("w:xz", "w:bz2"):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
            archive.addfile(tarfile.TarInfo("MANIFEST.json"))
        with pytest.raises(BundleProblem, match="not a seawall bundle"):
            opened(packed.getvalue(), tmp_path)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_of_every_tar_are_read(form: int, tmp_path: Path) -> None:
    folder = "/sys/fs/cgroup/" + "/".join(["a-long-name-of-a-slice.slice"] * 4)
    if form != tarfile.USTAR_FORMAT:
        folder += "/deeper" * 40
    path = tmp_path / "b"
    with tarfile.open(path, "w:gz", format=form) as archive:
        for name, data in (
            ("./MANIFEST.json", MANIFEST),
            ("./1/answers.json", b"{}"),
            (f"./1/files{folder}/memory.stat", b"anon 1\n"),
            ("./1/files/proc/meminfo", b"MemTotal: 1 kB\n"),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    host = open_bundle(str(path)).rounds[0]
    assert host.read(f"{folder}/memory.stat") == b"anon 1\n"
    assert host.read("/proc/meminfo") == b"MemTotal: 1 kB\n"


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "9" * 5000])
def test_what_is_no_number_is_not_json(word: str, tmp_path: Path) -> None:
    answers = f'{{"probes": [["now", "", {{"unix_seconds": {word}}}]]}}'.encode()
    with pytest.raises(BundleProblem, match="not JSON"):
        opened(whole(answers=answers), tmp_path)


HOSTILE = ("1e999", "-1e999", "1e300", "9" * 4000, "-1", '"5"', "[]", "{}", "null", '"\\u001b"')


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("probe", ["now", "page_size", "clock_ticks", "reader", "machine"])
def test_hostile_probes_are_unknown(probe: str, value: str, tmp_path: Path) -> None:
    answer = {
        "now": f'{{"unix_seconds": {value}, "monotonic_seconds": {value}}}',
        "reader": f'{{"uid": {value}, "capabilities": {value}}}',
    }.get(probe, value)
    path = tmp_path / "b"
    path.write_bytes(whole(answers=f'{{"probes": [["{probe}", "", {answer}]]}}'.encode()))
    kernel = Snapshot(open_bundle(str(path)).rounds[0]).get(Kernel)
    assert isinstance(kernel, Kernel)
    assert kernel.taken_at_unix_seconds is None
    assert kernel.monotonic_seconds is None
    assert (kernel.page_size, kernel.clock_ticks) == (4096, 100)


@pytest.mark.parametrize("verb", ["why", "memory", "pods"])
def test_verbs_answer_about_hostile_probes(verb: str, tmp_path: Path) -> None:
    answers = (
        '{"probes": [["now", "", {"unix_seconds": 1e300, "monotonic_seconds": -1e999}],'
        ' ["page_size", "", 0], ["clock_ticks", "", -1], ["machine", "", 7],'
        ' ["reader", "", {"uid": "0", "capabilities": [1e999]}], ["pipes", "", [[]]]]}'
    )
    path = tmp_path / "b"
    path.write_bytes(whole(answers=answers.encode()))
    page = seawall(verb, "--json", "--from", str(path)).answered().document
    assert "taken_at" not in page
    assert "taken_at" in page["unread"]
    assert page["host"]["unread"] == ["node", "boot_id", "kernel"]
