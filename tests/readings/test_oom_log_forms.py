"""The same report in every form in which logs are kept, quoted and broken says the same.

The forms are made here out of published logs; what each must say was written by hand.
"""

import json
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from tests.readings.oom_logs import expected, log, only_report, reports_in, wanted, without_lines

GLOBAL = "global-6.1.1-arch1-1-doxygen"
MEMCG = "memcg-v2-5.15.158-2-pve-php-fpm"
OLD_MEMCG = "memcg-v1-3.10.0-957.27.2.el7"
SPLIT_RSS = "global-6.10.0-rc1-alloc-profiling"


def kernel_lines(name: str) -> list[str]:
    """What the kernel said, a message each; those of several lines joined by newlines."""
    messages: list[str] = []
    for line in log(name).decode().split("\n")[1:-1]:
        text = re.sub(r"^(?:\[\w\w \w{3} [\d :]+\] |\w{3} \d\d [\d:]+ \S+ kernel: )", "", line)
        more = text.startswith(" " * 20) or (
            re.match(r" (?:active_file|unevictable|slab_recl|mapped|sec_|kernel_misc|free):", text)
        )
        if more:
            messages[-1] += "\n" + (text.strip() if text.startswith(" " * 20) else text)
        else:
            messages.append(text)
    return messages


def said(data: bytes | str) -> dict[str, Any]:
    """What the only report in it says, its time aside."""
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    found = without_lines(only_report(raw))
    del found["at"]
    return found


def given(name: str) -> dict[str, Any]:
    values = wanted(expected(name)[0])
    del values["at"]
    return values


def prefixed(prefix: Callable[[int], str], glue: str | None = None) -> Callable[[list[str]], str]:
    """Each message after its prefix; later lines of it under ``glue``, or prefixed as well."""

    def write(messages: list[str]) -> str:
        lines = []
        for number, message in enumerate(messages):
            first, *more = message.split("\n")
            lines.append(prefix(number) + first)
            lines += [(prefix(number) if glue is None else glue) + part for part in more]
        return "\n".join(lines) + "\n"

    return write


def escaped(messages: list[str], newline: str, prefix: str) -> str:
    return "".join(prefix + message.replace("\n", newline) + "\n" for message in messages)


def kmsg(messages: list[str], extra: str = "") -> str:
    return "".join(
        f"4,{9000 + n},{567890100 + n * 37},-{extra};" + m.replace("\n", "\\x0a") + "\n"
        + (" SUBSYSTEM=cpu\n DEVICE=+cpu:1\n" if n % 9 == 0 else "")
        for n, m in enumerate(messages)
    )  # fmt: skip


def journal_json(messages: list[str], *, as_bytes: bool) -> str:
    records: list[dict[str, object]] = []
    for number, message in enumerate(messages):
        text: object = list(message.encode()) if as_bytes else message
        stamp = str(1754963643000000 + number)
        records.append(
            {"__REALTIME_TIMESTAMP": stamp, "_TRANSPORT": "kernel", "PRIORITY": "4"}
            | {"MESSAGE": text}
        )
        records.append({"_TRANSPORT": "syslog", "MESSAGE": "Killed process 1 (init) total-vm:1kB"})
    return "".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records)


FORMS: dict[str, Callable[[list[str]], str]] = {
    "bare": prefixed(lambda _: ""),
    "dmesg": prefixed(lambda n: f"[{7600 + n * 0.01:12.6f}] "),
    "dmesg of today, later lines indented": prefixed(
        lambda n: f"[{7600 + n * 0.01:12.6f}] ", " " * 15
    ),
    "dmesg with three digits": prefixed(lambda n: f"[ {123.4 + n / 100:.3f}] "),
    "dmesg --human": prefixed(lambda n: "[  +0.000012] " if n else "[Dec 4 10:49] "),
    "dmesg -T in German": prefixed(lambda _: "[Di Aug 12 03:54:03 2025] ", " " * 26),
    "dmesg -T in French": prefixed(lambda _: "[mar. août 12 03:54:03 2025] ", " " * 29),
    "dmesg -T in Japanese": prefixed(lambda _: "[火  8月 12 03:54:03 2025] "),
    "dmesg -T in Russian": prefixed(lambda _: "[Вт авг 12 03:54:03 2025] "),
    "dmesg iso": prefixed(lambda n: f"2025-08-12T03:54:03,{n:06}+02:00 "),
    "dmesg -x": prefixed(lambda n: f"kern  :warn  : [{99 + n * 0.01:12.6f}] "),
    "level": prefixed(lambda n: f"<4>[{99 + n * 0.01:12.6f}] "),
    "caller": prefixed(lambda n: f"[{99 + n * 0.01:12.6f}][ T1778] "),
    "caller is a CPU": prefixed(lambda n: f"[{99 + n * 0.01:12.6f}][    C0] "),
    "short caller": prefixed(lambda n: f"[{99 + n * 0.01:12.6f}][T12] "),
    "kmsg": kmsg,
    "kmsg with caller": lambda messages: kmsg(messages, ",caller=T1778"),
    "syslog": prefixed(lambda n: f"May 30 14:08:25 node-1 kernel: [{99 + n * 0.01:12.6f}] "),
    "syslog without the clock": prefixed(lambda _: "May  3 14:08:25 node-1 kernel: "),
    "syslog without a host": prefixed(lambda _: "Nov 12 15:15:41 kernel: "),
    "syslog, no blank": prefixed(lambda _: "May  3 14:08:25 node-1 kernel:"),
    "syslog by ISO": prefixed(lambda _: "2025-08-12T03:54:03.123456+02:00 node-1 kernel: "),
    "syslog with facility": prefixed(lambda _: "Aug 12 03:54:03 node-1 kern.warning kernel: "),
    "rsyslog": lambda m: escaped(m, "#012", "May 30 14:08:25 node-1 kernel: "),
    "journal": prefixed(lambda _: "May 30 14:08:25 node-1 kernel: ", " " * 31),
    "journal in Spanish": prefixed(lambda _: "ago 12 14:08:25 node-1 kernel: ", " " * 31),
    "journal in Chinese": prefixed(lambda _: "8月 12 14:08:25 node-1 kernel: ", " " * 31),
    "journal short-iso": prefixed(lambda _: "2025-08-12T03:54:03+0200 node-1 kernel: ", " " * 40),
    "journal short-precise": prefixed(lambda _: "Aug 12 03:54:03.123456 node-1 kernel: "),
    "journal short-full": prefixed(lambda _: "Tue 2025-08-12 03:54:03 CEST node-1 kernel: "),
    "journal short-monotonic": prefixed(lambda n: f"[{99 + n / 100:12.6f}] node-1 kernel: "),
    "journal short-unix": prefixed(lambda n: f"1754963643.{n:06} node-1 kernel: "),
    "journal cat": prefixed(lambda _: "", ""),
    "journal JSON": lambda messages: journal_json(messages, as_bytes=False),
    "journal JSON of bytes": lambda messages: journal_json(messages, as_bytes=True),
    "talos": prefixed(lambda _: "kern: warning: [2026-01-12T20:27:31.913975631Z]: "),
    "hypervisor's console": prefixed(
        lambda n: f"2023-12-04T10:49:30.106Z In(05) vcpu-5 - Guest: <6>[{99 + n * 0.01:12.6f}] "
    ),
    "openEuler": prefixed(lambda n: f"warning|kernel[-]|[{2919920 + n * 0.01:.6f}] "),
    "editor": prefixed(lambda n: f"{4397 + n} [7600330.{400352 + n}] ", "     "),
    "editor, numbers to the right": prefixed(lambda n: f"{n + 1:8} [7600330.{400352 + n}] "),
    "grep -n": lambda m: numbered(m, "{}:"),
    "cat -n": lambda m: numbered(m, "{:6}\t"),
    "bars": lambda m: numbered(m, "{}|"),
    "quoted": prefixed(lambda n: f"> [{99 + n * 0.01:12.6f}] "),
    "quoted twice": prefixed(lambda _: "> > "),
    "quoted without a blank": prefixed(lambda _: ">"),
    "indented": prefixed(lambda _: "    "),
}


def numbered(messages: list[str], form: str) -> str:
    lines = [part for message in messages for part in message.split("\n")]
    return "".join(form.format(n) + line + "\n" for n, line in enumerate(lines, start=7))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [GLOBAL, MEMCG, OLD_MEMCG, SPLIT_RSS])
def test_form(form: str, name: str) -> None:
    assert said(FORMS[form](kernel_lines(name))) == given(name)


@pytest.mark.parametrize(
    ("form", "at"),
    [
        ("bare", None),
        ("dmesg", "7600.000000"),
        ("dmesg -T in Japanese", "火  8月 12 03:54:03 2025"),
        ("kmsg with caller", "567.890100"),
        ("syslog", "May 30 14:08:25"),
        ("syslog by ISO", "2025-08-12T03:54:03.123456+02:00"),
        ("journal in Chinese", "8月 12 14:08:25"),
        ("journal short-full", "Tue 2025-08-12 03:54:03 CEST"),
        ("journal JSON", "2025-08-12T01:54:03.000000Z"),
        ("editor", "7600330.400352"),
        ("talos", "2026-01-12T20:27:31.913975631Z"),
    ],
)
def test_the_time_as_the_log_writes_it(form: str, at: str | None) -> None:
    assert only_report(FORMS[form](kernel_lines(GLOBAL)).encode()).at == at


def hard_wrap(line: str, columns: int, indent: str = "") -> list[str]:
    rows = [line[:columns]]
    room = columns - len(indent)
    rest = line[columns:]
    while rest:
        rows.append(indent + rest[:room])
        rest = rest[room:]
    return rows


def word_wrap(line: str, columns: int) -> list[str]:
    return textwrap.wrap(
        line, columns, break_long_words=False, break_on_hyphens=False,
        drop_whitespace=True, replace_whitespace=False,
    ) or [""]  # fmt: skip


@pytest.mark.parametrize("form", ["bare", "dmesg", "syslog", "caller", "quoted"])
@pytest.mark.parametrize("name", [GLOBAL, MEMCG, OLD_MEMCG, "cpuset-5.8.2-docker-movable-node"])
@pytest.mark.parametrize("columns", [80, 100, 132])
def test_broken_by_a_terminal(form: str, name: str, columns: int) -> None:
    text = FORMS[form](kernel_lines(name))
    rows = [row for line in text.split("\n") for row in hard_wrap(line, columns)]
    assert said("\n".join(rows)) == given(name)


@pytest.mark.parametrize("form", ["dmesg", "syslog"])
@pytest.mark.parametrize("name", [GLOBAL, MEMCG, OLD_MEMCG])
def test_broken_and_indented(form: str, name: str) -> None:
    text = FORMS[form](kernel_lines(name))
    rows = [row for line in text.split("\n") for row in hard_wrap(line, 80, "     ")]
    assert said("\n".join(rows)) == given(name)


@pytest.mark.parametrize("form", ["bare", "dmesg", "syslog without the clock", "quoted twice"])
@pytest.mark.parametrize("name", [GLOBAL, OLD_MEMCG])
def test_broken_between_words_by_a_mail_program(form: str, name: str) -> None:
    text = FORMS[form](kernel_lines(name))
    mark = "> > " if form == "quoted twice" else ""
    rows = [
        mark + row
        for line in text.split("\n")
        for row in word_wrap(line.removeprefix(mark), 76)
    ]  # fmt: skip
    assert said("\n".join(rows)) == given(name)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "NBSP": lambda data: data.replace(b" ", b"\xc2\xa0"),
    "NBSP of latin-1": lambda data: data.replace(b"  ", b" \xa0"),
    "blank lines": lambda data: data.replace(b"\n", b"\n\n"),
    "colours": lambda data: re.sub(rb"(?m)^(\S+)", b"\x1b[32m\\1\x1b[0m", data),
    "HTML": lambda data: data.replace(b"<", b"&lt;").replace(b">", b"&gt;"),
    "BOM": lambda data: b"\xef\xbb\xbf" + data,
    "blanks at the ends": lambda data: data.replace(b"\n", b"   \n"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("form", ["bare", "dmesg", "syslog", "level"])
def test_damage_that_does_not_matter(damage: str, form: str) -> None:
    data = FORMS[form](kernel_lines(GLOBAL)).encode()
    assert said(DAMAGES[damage](data)) == given(GLOBAL)


OTHERS = """\
May 30 14:08:25 node-1 systemd[1]: a.scope: A process has been killed by the OOM killer.
May 30 14:08:25 node-1 kubelet[814]: I0530 14:08:25 memory: usage 1kB, limit 1kB, failcnt 1
May 30 14:08:25 node-1 npd[9]: Memory cgroup out of memory: Killed process 7 (x) total-vm:1kB
May 30 14:08:25 node-1 dockerd[77]: [  123]     0   123   1   1   4096   0   0 fake
May 30 14:08:25 node-1 kernel: usb 1-1: new high-speed USB device number 7 using xhci_hcd
"""  # fmt: skip


def test_lines_of_others_in_between() -> None:
    text = FORMS["syslog without the clock"](kernel_lines(MEMCG))
    lines, others = text.splitlines(), OTHERS.splitlines()
    mixed = [part for n, line in enumerate(lines) for part in (line, others[n % len(others)])]
    assert said("\n".join(mixed)) == given(MEMCG)


def test_lines_of_others_are_no_report() -> None:
    assert reports_in(OTHERS.encode()) == []
