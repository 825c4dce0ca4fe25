# SPDX-License-Identifier: Apache-2.0
"""One line of a log taken apart: when, which program, what it says.

Forms: dmesg (seconds since boot, ``-T``), /dev/kmsg, syslog (old and RFC 3339), journalctl (short,
short-unix, short-full, short-monotonic, json), klog and logfmt within these or alone, slurmd's own
stamp, Talos' ``kern: warning: [...]``, docker's and CRI's container logs, lines after a prompt.

A date without a year, or without a zone, is not placed in time: it is given as the log writes it.
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

LINE_MOST: Final = 4096
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - naive, as the dates of logs are
_WALL_YEAR: Final = 2000
"""Where a log has none: a leap year, so that 29 February can be counted with."""


class LogTime(NamedTuple):
    """When a line was written; what cannot be known is None."""

    text: str
    """As the log gives it; ``77.7 s after boot`` for seconds of the kernel's clock."""
    unix_seconds: float | None = None
    boot_seconds: float | None = None
    """Since boot."""
    wall_seconds: float | None = None
    """By a clock on a wall whose zone, and perhaps year, is not known: only for differences."""

    def after(self, other: "LogTime") -> float | None:
        """Seconds from ``other`` to this, by a clock that both have; None without one."""
        for mine, theirs in (
            (self.unix_seconds, other.unix_seconds),
            (self.boot_seconds, other.boot_seconds),
            (self.wall_seconds, other.wall_seconds),
        ):
            if mine is not None and theirs is not None:
                return mine - theirs
        return None


NO_MOMENT: Final = LogTime("")


@dataclass(frozen=True, slots=True)
class LogClock:
    """What is known of the clocks of a log, beside the log."""

    boot_unix_seconds: float | None = None
    """Of the boot whose seconds are in it."""
    now_unix_seconds: float | None = None
    is_own_zone: bool = False
    """Dates without a zone are in the zone of this process: a log of this machine."""


class LogLine(NamedTuple):
    """A line, or a record of a log in JSON."""

    number: int
    moment: LogTime
    host: str
    program: str
    """``kubelet``, ``kernel``; empty: not told."""
    pid: str
    text: str
    """What it says, without klog's or logfmt's head."""


_MONTHS: Final = {
    name: month
    for month, names in enumerate(
        (
            "jan gen ene sty led oca tammi янв", "feb fev uno subat sub helmi luty lut фев",
            "mar mrt bre maalis мар", "apr avr abr kwi dub nis huhti апр",
            "may mai maj mei mag kve touko май мая", "jun juin giu cze cer haz kesa июн",
            "jul juil lug lip tem heina июл", "aug aou ago sie srp agu elo авг",
            "sep set wrz zar eyl syys сен", "oct okt ott out paz rij eki loka окт",
            "nov lis kas marras ноя", "dec dez dic des gru pro ara joulu дек",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
# cs: "cec" is July, "cen" June; two forms that three letters do not tell apart.
_MONTHS.update({"cec": 7, "cen": 6})

_PROMPT: Final = re.compile(r"(?:\ufeff|[$>|#] +|[\w.@~:/-]{1,80}[#$] +)+")
_WORD: Final = r"(?:[^\W\d_]{3,10}\.?|\d{1,2}月)"
_CLOCK: Final = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?"
_SYSLOG: Final = re.compile(
    rf"(?:<\d{{1,3}}>)?(?:(?P<mon>{_WORD}) +(?P<day>\d{{1,2}})\.?"
    rf"|(?P<day2>\d{{1,2}})\.? +(?P<mon2>{_WORD}))(?: +(?P<year>(?:19|20)\d\d))? +{_CLOCK} +"
)
_ISO: Final = re.compile(
    r"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} )?(?P<year>\d{4})-(?P<mon>\d\d)-(?P<day>\d\d)[T ]"
    rf"{_CLOCK} ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?(?![\d:])"
)
_UNIX: Final = re.compile(r"(\d{9,11}\.\d{3,9}) +")
_SECONDS: Final = re.compile(r"\[ *(?P<seconds>\d{1,10}\.\d{3,9})\]:? ?")
_DATED: Final = re.compile(
    rf"\[(?:[^\W\d_]{{2,4}}\.? +)?(?P<mon>{_WORD}) +(?P<day>\d{{1,2}}) +{_CLOCK} +"
    r"(?P<year>\d{4})\] ?"
)
_BRACKETED: Final = re.compile(
    r"\[(?P<date>\d{4}-\d\d-\d\d[T ][\d:.,]{8,18}(?:Z|[+-]\d\d:?\d\d)?)\]:? "
)
_KMSG: Final = re.compile(r"\d{1,5},\d{1,20},(\d{1,20}),[^;\n]{0,200};")
_TALOS: Final = re.compile(
    r"(?:[\w.:-]{1,64}: +)?(?:kern|user|daemon|syslog): +\w{1,10}: +(?=\[\d{4}-)"
)
_TALOS_TAG: Final = re.compile(r"\[talos\] +")
_CRI: Final = re.compile(r"(?:stdout|stderr) [FP] ")
_TAG: Final = re.compile(r"(?P<program>[\w./@-]{1,80})(?:\[(?P<pid>\d{1,10})\])?: ?")
_HOST: Final = re.compile(r"(?P<host>[^\s:\[\]]{1,255}) +")
_TAG_AFTER_SECONDS: Final = re.compile(
    r"(?:(?P<host>[^\s:\[\]]{1,255}) )?(?:(?P<program>[\w./@-]{1,80})\[(?P<pid>\d{1,10})\]"
    r"|(?P<kernel>kernel)): ?"
)
_RFC5424: Final = re.compile(
    r"<\d{1,3}>1 (?=\d{4}-)(?P<date>\S{10,40}) (?P<host>\S{1,255}) (?P<program>\S{1,48}) "
    r"(?P<pid>\S{1,128}) \S{1,32} (?:-|\[[^\]]{0,500}\]) (?:\ufeff)?"
)
_BARE: Final = re.compile(
    r"(?P<program>kernel|slurmstepd|slurmd|slurmctld|srun|earlyoom|oomd|systemd-oomd)"
    r"(?:(?:(?<=slurmd)|(?<=slurmstepd))-\w[\w.-]{0,63})?"
    r"(?:\[(?P<pid>\d{1,10})\])?: "
)
_KLOG: Final = re.compile(
    r"(?P<level>[IWEF])(?P<mon>\d\d)(?P<day>\d\d) (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
    r"\.(?P<f>\d{1,9}) +(?:\d{1,10} +)?[\w./-]{1,80}:\d{1,6}\] "
)
_LOGFMT: Final = re.compile(r'time="(?P<date>[^"]{10,40})" level=\w{1,10} (?=msg=|error=)')
_LOGFMT_MESSAGE: Final = re.compile(r'msg="((?:[^"\\]|\\.){0,3000})"')


def line_of(raw: bytes, number: int, clock: LogClock) -> LogLine:
    """Never fails: what has no head is all text."""
    text = raw[:LINE_MOST].decode("utf-8", "surrogateescape").rstrip("\r\n")
    if text[:1] == "{":
        record = _of_json(text, number, clock)
        if record is not None:
            return record
    return _of_text(text, number, clock)


def _of_text(text: str, number: int, clock: LogClock) -> LogLine:
    prompt = _PROMPT.match(text)
    start = prompt.end() if prompt else 0
    talos = _TALOS.match(text, start)
    if talos:
        start = talos.end()
    kmsg = _KMSG.match(text, start)
    if kmsg:
        return LogLine(
            number, _since_boot(int(kmsg[1]) / 1e6, clock), "", "kernel", "", text[kmsg.end() :]
        )
    if text.startswith("[", start):
        return _of_bracket(text, start, number, clock, is_talos=talos is not None)
    new = _RFC5424.match(text, start)
    if new:
        iso = _ISO.match(new["date"])
        moment = _moment_of(iso, clock) if iso else NO_MOMENT
        pid = new["pid"] if new["pid"].isdecimal() else ""
        rest = text[new.end() :]
        return _inner(number, moment, new["host"], new["program"], pid, rest, clock)
    for pattern in (_UNIX, _ISO, _SYSLOG):
        found = pattern.match(text, start)
        if found:
            moment = _moment_of(found, clock)
            return _after_date(text, found.end(), number, moment, clock)
    bare = _BARE.match(text, start)
    if bare:
        return _inner(
            number, NO_MOMENT, "", bare["program"], bare["pid"] or "", text[bare.end() :], clock
        )
    return _inner(number, NO_MOMENT, "", "", "", text[start:], clock)


def _of_bracket(text: str, start: int, number: int, clock: LogClock, *, is_talos: bool) -> LogLine:
    """``[  12.345678]``, ``[Mon Apr 20 15:08:07 2020]``, ``[2020-12-14T08:59:01.890]``."""
    seconds = _SECONDS.match(text, start)
    if seconds:
        moment = _since_boot(float(seconds["seconds"]), clock)
        tag = _TAG_AFTER_SECONDS.match(text, seconds.end())
        if tag:
            program, end = tag["program"] or "kernel", tag.end()
            return _inner(
                number, moment, tag["host"] or "", program, tag["pid"] or "", text[end:], clock
            )
        return LogLine(number, moment, "", "kernel", "", text[seconds.end() :])
    dated = _DATED.match(text, start)
    if dated:
        rest = text[dated.end() :].removeprefix("kernel: ")
        return LogLine(number, _moment_of(dated, clock), "", "kernel", "", rest)
    stamped = _BRACKETED.match(text, start)
    if stamped is None:
        return LogLine(number, NO_MOMENT, "", "", "", text[start:])
    iso = _ISO.match(stamped["date"])
    moment = _moment_of(iso, clock) if iso else NO_MOMENT
    rest = text[stamped.end() :]
    if is_talos:
        own = _TALOS_TAG.match(rest)
        return LogLine(
            number, moment, "", "talos" if own else "kernel", "", rest[own.end() :] if own else rest
        )
    return LogLine(number, moment, "", "", "", rest)


def _after_date(text: str, at: int, number: int, moment: LogTime, clock: LogClock) -> LogLine:
    """A host and a program, one of them, or nothing."""
    while text.startswith(" ", at):
        at += 1
    stream = _CRI.match(text, at)
    if stream:
        return _inner(number, moment, "", "", "", text[stream.end() :], clock)
    host = _HOST.match(text, at)
    tag = _TAG.match(text, host.end()) if host else None
    if host and tag:
        rest = text[tag.end() :]
        if tag["program"] == "kernel":
            stamp = _SECONDS.match(rest)
            rest = rest[stamp.end() :] if stamp else rest
        return _inner(number, moment, host["host"], tag["program"], tag["pid"] or "", rest, clock)
    tag = _TAG.match(text, at)
    if tag:
        return _inner(
            number, moment, "", tag["program"], tag["pid"] or "", text[tag.end() :], clock
        )
    return _inner(number, moment, "", "", "", text[at:], clock)


def _inner(
    number: int, moment: LogTime, host: str, program: str, pid: str, text: str, clock: LogClock
) -> LogLine:
    """The heads of klog and of logfmt are taken off; a date in them that has more is used."""
    klog = _KLOG.match(text)
    if klog:
        own = _moment_of(klog, clock)
        kept = moment if moment is not NO_MOMENT else own
        return LogLine(number, kept, host, program or "kubelet", pid, text[klog.end() :])
    logfmt = _LOGFMT.match(text)
    if logfmt:
        iso = _ISO.match(logfmt["date"])
        own = _moment_of(iso, clock) if iso else NO_MOMENT
        if own.unix_seconds is not None:
            moment = own
        message = _LOGFMT_MESSAGE.search(text, logfmt.end())
        said = message[1].replace('\\"', '"') + " " + text[message.end() :] if message else ""
        return LogLine(number, moment, host, program, pid, said or text[logfmt.end() :])
    return LogLine(number, moment, host, program, pid, text)


# --- JSON ---------------------------------------------------------------------------------


def _of_json(text: str, number: int, clock: LogClock) -> LogLine | None:
    """A record of the journal, or a line that docker or a program wrote as JSON."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    said = next(
        (
            record[key]
            for key in ("MESSAGE", "log", "message", "msg")
            if isinstance(record.get(key), str)
        ),
        None,
    )
    if said is None:
        return None
    stamp = record.get("__REALTIME_TIMESTAMP") or record.get("_SOURCE_REALTIME_TIMESTAMP")
    said = said[:LINE_MOST].rstrip("\n")
    if isinstance(stamp, str) and stamp.isdecimal() and len(stamp) < 18:
        program = (
            "kernel" if record.get("_TRANSPORT") == "kernel" else record.get("SYSLOG_IDENTIFIER")
        )
        unix = int(stamp) / 1e6
        moment = LogTime(_written(unix), unix)
        host, pid = record.get("_HOSTNAME"), record.get("_PID")
        return _inner(
            number,
            moment,
            str(host or "")[:255],
            str(program or "")[:80],
            str(pid or "")[:10],
            said,
            clock,
        )
    when = next(
        (record[key] for key in ("time", "ts", "timestamp", "@timestamp") if key in record), None
    )
    iso = _ISO.match(when[:40]) if isinstance(when, str) else None
    inside = _of_text(said, number, clock)
    moment = _moment_of(iso, clock) if iso else inside.moment
    return inside._replace(moment=moment if moment.unix_seconds is not None else inside.moment)


# --- time ---------------------------------------------------------------------------------


def _since_boot(seconds: float, clock: LogClock) -> LogTime:
    boot = clock.boot_unix_seconds
    text = f"{seconds:.2f} s after boot"
    return LogTime(text, None if boot is None else boot + seconds, seconds)


def _moment_of(found: "re.Match[str]", clock: LogClock) -> LogTime:
    """Of any of the patterns with groups of a date."""
    text = found[0].strip(" []:")
    if found.re is _UNIX:
        unix = float(found[1])
        return LogTime(_written(unix), unix)
    values = found.groupdict()
    if found.re is _KLOG:
        text = f"{values['mon']}-{values['day']} {values['h']}:{values['m']}:{values['s']}"
    month = _month(values.get("mon") or values.get("mon2") or "")
    year = int(values.get("year") or 0)
    try:
        naive = datetime(  # noqa: DTZ001 - the zone is what is asked for here
            year or _WALL_YEAR, month, int(values.get("day") or values.get("day2") or 0),
            int(values["h"]), int(values["m"]), min(59, int(values["s"])),
        )  # fmt: skip
    except ValueError:
        return NO_MOMENT
    fraction = float(f"0.{values['f']}") if values.get("f") else 0.0
    wall = (naive - _EPOCH).total_seconds() + fraction
    zone = values.get("zone")
    if year and zone:
        unix = wall - _offset_seconds(zone)
        return LogTime(_written(unix), unix, None, wall)
    return LogTime(text, _own_time(naive, year, fraction, clock), None, wall)


def _own_time(naive: datetime, year: int, fraction: float, clock: LogClock) -> float | None:
    """Of a date of this machine's own log, in its own zone; the year is the last that fits."""
    now = clock.now_unix_seconds
    if not clock.is_own_zone or now is None:
        return None
    if year:
        return naive.timestamp() + fraction
    last = datetime.fromtimestamp(now).year  # noqa: DTZ006 - in the machine's own zone
    for candidate in (last + 1, last, last - 1):
        try:
            unix = naive.replace(year=candidate).timestamp() + fraction
        except ValueError:  # 29 February
            continue
        if unix <= now + 86_400:
            return unix
    return None


def _offset_seconds(zone: str) -> float:
    if zone[0] not in "+-":
        return 0.0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return float(-seconds if zone[0] == "-" else seconds)


def _written(unix_seconds: float) -> str:
    """In UTC, to a second."""
    try:
        moment = _EPOCH + timedelta(seconds=int(unix_seconds))
    except OverflowError:
        return f"{unix_seconds:.0f}"
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


@lru_cache(maxsize=64)
def _month(word: str) -> int:
    """1 to 12 in a dozen languages; 0: no month."""
    if word[:-1].isdecimal() or word.isdecimal():
        return int(word.rstrip("月"))
    parts = unicodedata.normalize("NFKD", word.lower().rstrip("."))
    letters = "".join(char for char in parts if not unicodedata.combining(char))
    for length in (6, 5, 4, 3):
        if letters[:length] in _MONTHS:
            return _MONTHS[letters[:length]]
    return 0
