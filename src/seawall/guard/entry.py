# SPDX-License-Identifier: Apache-2.0
"""Where the guard's processes begin: ``python -I -S .../seawall/guard/entry.py WHAT ...``, or
``python -I -S .../seawall.pyz --guard-process WHAT ...``.

``-I -S`` keep the environment and site-packages out; the folder that holds Seawall (or the
archive it runs from) is put behind the standard library, which nothing of it can shadow.
"""

import os
import sys

ENTRIES = {
    "start": "seawall.guard.launcher",
    "guard": "seawall.guard.guard_main",
    "config": "seawall.guard.config",
    "watcher": "seawall.watcher.watcher_process",
    "recorder": "seawall.recorder.recorder_process",
    "pinner": "seawall.pinner.pinner_process",
    "agent": "seawall.agent.agent_process",
    "box": "seawall.sources.box_last_boot",
}

NAMES = {
    "guard": "seawall-guard",
    "watcher": "seawall-watcher",
    "recorder": "seawall-record",
    "pinner": "seawall-pinner",
    "agent": "seawall-agent",
    "box": "seawall-boxread",
}
"""In ``ps`` and ``top``, which take 15 characters; the helper and the watcher's reader are forks,
``seawall-helper`` and ``seawall-reader``.
"""

ENVIRONMENT = {"LC_ALL": "C", "LD_BIND_NOW": "1"}
"""Of the guard, beside what it is handed.  The C locale: no tables of others in memory (0.2 MB);
Python speaks UTF-8 there by itself.  Every function of the libraries is looked up at the start
(ld.so(8)): the first call of one, on a node that is full, would read symbol tables (0.1 MB).
"""


def root() -> str:
    """The folder in which the package lies."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


_IS_ARCHIVE = os.path.isfile(root())
"""Python starts no file inside one: ``packaging/seawall`` does, which is its ``__main__``."""


def guard_argv(handed_fd: int) -> list[str]:
    """Process 1: the descriptor holds what ``handover.handover_json`` wrote."""
    return _argv("guard", str(handed_fd))


def config_argv(path: str) -> list[str]:
    """A short-lived child: the settings as one line of JSON and status 0, or one sentence that
    says what is wrong with the file and status 2.
    """
    return _argv("config", path)


def watcher_argv(fd: int) -> list[str]:
    """Process 2: the descriptor is its end of the pair."""
    return _argv("watcher", str(fd))


def pinner_argv(fd: int) -> list[str]:
    """The process that keeps program text in memory: the descriptor holds what it is asked."""
    return _argv("pinner", str(fd))


def recorder_argv(fd: int, path: str, size_bytes: int, folder: str) -> list[str]:
    """What writes the black box: its end of the pair, the file, and where the journal is."""
    return _argv("recorder", str(fd), path, str(size_bytes), folder)


def agent_argv(words: list[str]) -> list[str]:
    """The node's agent, which is none of the guard's: ``agent_process.AgentSettings``."""
    return _argv("agent", *words)


def box_argv(path: str) -> list[str]:
    """A child of the agent's: what the black box says of the boot before, as JSON on stdout."""
    return _argv("box", path)


def start_argv(path: str, settings_fd: int) -> list[str]:
    """The launcher again, for a guard that starts afresh: the descriptor holds the settings in
    force as one line of JSON, for the file may have been changed and not been read since; -1:
    the file is read.
    """
    return _argv("start", path, str(settings_fd))


def _argv(what: str, *words: str) -> list[str]:
    start = [root(), "--guard-process"] if _IS_ARCHIVE else [os.path.abspath(__file__)]
    return [sys.executable or "/usr/bin/python3", "-I", "-S", *start, what, *words]


def tell_version(fd: int) -> None:
    """To the guard, before anything else is imported: its files may have been replaced by those of
    another version, which then ends by what the guard says.
    """
    from seawall.version import VERSION  # noqa: PLC0415 - after the path is set

    try:
        os.write(fd, b'{"t": "version", "version": "%s"}' % VERSION.encode())
    except OSError:  # the guard is gone
        return


class LateInspect:
    """Of ``sys.meta_path``: ``inspect`` is loaded when it is used (importlib.util.LazyLoader).
    dataclasses imports it, and with it ast, dis and tokenize (1.1 MB, 20 ms), for the sake of
    dataclasses without a docstring.
    """

    def find_spec(self, name: str, *_: object) -> object:
        """As importlib.abc.MetaPathFinder has it; once."""
        if name != "inspect":
            return None
        import importlib.util  # noqa: PLC0415 - only who imports dataclasses

        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec


def main(words: list[str]) -> int:
    """Import what was asked for, and run its ``main``."""
    sys.path.append(root())
    if words[0] in ("watcher", "recorder"):
        tell_version(int(words[1]))
        sys.meta_path.insert(0, LateInspect())  # type: ignore[arg-type]
    if words[0] in NAMES:
        from seawall.proc.own_name import take_name  # noqa: PLC0415 - after the path is set

        take_name(NAMES[words[0]])
    if words[0] == "config":
        from seawall.proc.process_rights import keep_only  # noqa: PLC0415 - as above

        keep_only("config")
    # Not importlib, which is 0.1 MB.
    main_of = __import__(ENTRIES[words[0]], fromlist=["main"]).main
    if words[0] in ("config", "start", "agent", "box"):
        return int(main_of(words[1:]))
    if words[0] == "recorder":
        return int(main_of(int(words[1]), words[2], int(words[3]), *words[4:]))
    return int(main_of(int(words[1])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
