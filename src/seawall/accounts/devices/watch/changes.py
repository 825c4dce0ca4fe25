# SPDX-License-Identifier: Apache-2.0
"""What changed between two looks at the devices of containers, as events; no I/O, no clock.

Whoever wrote to a device cgroup is named for a change only where it is the only one who wrote
since the look before, and only for what such a write can change: an answer that is or was EPERM.
"""

import errno as errnos
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from seawall.accounts.devices.watch.device_watch_events import (
    MISSING,
    THERE,
    TOLD_LAYERS,
    AccessEvent,
    DeviceKey,
    DeviceLook,
    DeviceMoment,
    EventLayer,
    Spell,
    Stand,
    WatchedRule,
    WatchedTable,
    stand_words,
)  # fmt: skip
from seawall.readings.device_writers import DeviceWriter, Write
from seawall.words import first

_SETTLED: Final = ("yes", "no", "none")


class _RuleChange(NamedTuple):
    words: str
    loaded: DeviceMoment | None
    """Of the last program that is new, where it was loaded since the look before."""


class Changes:
    """Everything that is known so far, and what a look changes of it."""

    def __init__(self) -> None:
        self.names: Mapping[str, str] = {}
        self._told: WatchedTable | None = None
        self._spells: dict[DeviceKey, tuple[Spell, Spell | None]] = {}
        self._rules: dict[str, tuple[WatchedRule, float]] = {}
        self._nodes: Mapping[str, str] | None = None
        self._has_seen = False
        self._named: dict[str, float] = {}

    def stands(self) -> dict[DeviceKey, Stand]:
        """How each device stands now."""
        return {key: spell.stand for key, (spell, _) in self._spells.items()}

    # --- from the table -----------------------------------------------------------------

    def tell(self, told: WatchedTable) -> list[AccessEvent]:
        """What the table changed; nothing of the first one."""
        before, self._told, self.names = self._told, told, told.names
        self._spells = {key: value for key, value in self._spells.items() if key in told.layers}
        self._rules = {path: rule for path, rule in self._rules.items() if path in told.names}
        if before is None:
            return []
        return [
            *_comings(before, told),
            *_layer_changes(before, told),
            *_plugin_changes(before, told),
        ]

    # --- from a look --------------------------------------------------------------------

    def see(self, look: DeviceLook) -> list[AccessEvent]:
        """What a look changed; how things stood at the first is no change."""
        is_first, self._has_seen = not self._has_seen, True
        events = list(self._node_changes(look))
        by_cgroup: dict[str, list[tuple[DeviceKey, Stand]]] = {}
        for key, stand in look.stands.items():
            by_cgroup.setdefault(key.cgroup, []).append((key, stand))
        for cgroup in dict.fromkeys([*by_cgroup, *look.rules, *look.writes]):
            if cgroup in self.names:
                rows = by_cgroup.get(cgroup, ())
                events += self._container(cgroup, rows, look, is_first=is_first)
        return events

    def _container(
        self,
        cgroup: str,
        rows: Iterable[tuple[DeviceKey, Stand]],
        look: DeviceLook,
        *,
        is_first: bool,
    ) -> Iterator[AccessEvent]:
        rule = self._rule_change(cgroup, look)
        has_changed = False
        for key, stand in rows:
            if event := self._device(key, stand, look, rule, is_first=is_first):
                has_changed = True
                yield event
        if has_changed or is_first:
            return
        writes = self._unnamed(cgroup, look, is_settled=not rule)
        if not rule and not writes:
            return
        yield AccessEvent(
            kind="kernel" if rule else "written", at=_when(look.at, writes, rule),
            why=rule.words if rule else "",
            workload=self.names[cgroup], cgroup=cgroup, layer="kernel", before=None, after=None,
            writers=self._name(cgroup, writes), files=_files(writes),
        )  # fmt: skip

    def _unnamed(self, cgroup: str, look: DeviceLook, *, is_settled: bool) -> tuple[Write, ...]:
        """Writes that no event named yet; ``is_settled``: those to its own cgroup that were over
        before the look began, so that it would have seen what they changed.
        """
        since = self._named.get(cgroup, 0.0)
        writes = look.writes.get(cgroup, ()) if is_settled else _all_writes(cgroup, look)
        until = look.began if is_settled else look.at.monotonic
        return tuple(write for write in writes if since < write.monotonic <= until)

    def _name(self, cgroup: str, writes: tuple[Write, ...]) -> tuple[DeviceWriter, ...]:
        if writes:
            self._named[cgroup] = max(self._named.get(cgroup, 0.0), writes[-1].monotonic)
        return distinct(writes)

    def _device(
        self,
        key: DeviceKey,
        stand: Stand,
        look: DeviceLook,
        rule: "_RuleChange | None",
        *,
        is_first: bool,
    ) -> AccessEvent | None:
        known = self._spells.get(key)
        if known is None:
            spell = Spell(stand, look.at, is_exact=False, is_first=is_first)
            self._spells[key] = spell, None
            return None if is_first else self._event(key, stand, None)
        if not _is_change(known[0].stand, stand):
            return None
        last, before = known
        layer = _layer(last.stand, stand)
        writes = self._writes_for(key, last, look) if layer == "kernel" else ()
        rule = rule if layer == "kernel" else None
        when = _when(look.at, writes, rule)
        writers = self._name(key.cgroup, writes)
        is_exact = when is not look.at
        spell = Spell(stand, when, is_exact=is_exact, is_first=False, writers=writers)
        self._spells[key] = spell, last
        return replace(
            self._event(key, stand, last), layer=layer, files=_files(writes),
            is_back=before is not None and before.stand.errno == stand.errno,
            is_exact=is_exact, why=rule.words if rule else _node_words(last.stand, stand),
        )  # fmt: skip

    def _event(self, key: DeviceKey, stand: Stand, last: Spell | None) -> AccessEvent:
        """With what its new spell tells."""
        spell, _ = self._spells[key]
        return AccessEvent(
            kind="access", at=spell.began, workload=self.names[key.cgroup], cgroup=key.cgroup,
            device=key.path, before=stand_words(last.stand) if last else None,
            after=stand_words(stand), errno=stand.errno, lasted=last, writers=spell.writers,
            why="" if last else stand.why,
        )  # fmt: skip

    @staticmethod
    def _writes_for(key: DeviceKey, last: Spell, look: DeviceLook) -> tuple[Write, ...]:
        """Those that may have changed one device: what began its spell did not end it."""
        since = last.began.monotonic if last.is_exact else 0.0
        return tuple(one for one in _all_writes(key.cgroup, look) if one.monotonic > since)

    def _rule_change(self, cgroup: str, look: DeviceLook) -> "_RuleChange | None":
        """None where there is none, or where one of the two was not seen."""
        rule, (before, since) = look.rules.get(cgroup), self._rules.get(cgroup, (None, 0.0))
        if rule is None:
            return None
        self._rules[cgroup] = rule, look.began
        if before is None or before.what != rule.what or before.parts == rule.parts:
            return None
        lost = [part for part in before.parts if part not in rule.parts]
        new = [part for part in rule.parts if part not in before.parts]
        changed = (("lost", lost), ("got", new))
        words = [f"{verb} {first(parts, 3)}" for verb, parts in changed if parts]
        loaded = [rule.loaded[part] for part in new if part in rule.loaded]
        loaded = [one for one in loaded if since < one.monotonic <= look.at.monotonic]
        return _RuleChange(
            f"{rule.what} {' and '.join(words) or 'changed its order'}",
            max(loaded, key=lambda one: one.monotonic, default=None),
        )

    def _node_changes(self, look: DeviceLook) -> Iterator[AccessEvent]:
        before, now = self._nodes, look.nodes
        if now is None:
            return
        self._nodes = now
        for path in sorted({*(before or {}), *now}) if before is not None else ():
            was, is_now = (before or {}).get(path), now.get(path)
            if was != is_now:
                yield AccessEvent(kind="node", at=look.at, workload=None, device=path, layer="node",
                            before=was, after=is_now)  # fmt: skip


# --- small ones -------------------------------------------------------------------------


def distinct(writes: Iterable[Write]) -> tuple[DeviceWriter, ...]:
    """Each process once, the last one last; what was once known of it is kept."""
    found: list[DeviceWriter] = []
    for write in writes:
        writer = write.writer
        known = next((one for one in found if one.is_same(writer)), None)
        if known is not None:
            found.remove(known)
            writer = known if writer.comm is None else writer
        found.append(writer)
    return tuple(found)


def _all_writes(cgroup: str, look: DeviceLook) -> tuple[Write, ...]:
    both = (*look.writes.get(cgroup, ()), *look.writes_above.get(cgroup, ()))
    return tuple(sorted(both, key=lambda write: write.monotonic))


def _is_change(before: Stand, now: Stand) -> bool:
    return before.errno != now.errno or _is_another(before, now)


def _is_another(before: Stand, now: Stand) -> bool:
    """A node that was not looked at has no number, which is no change of it."""
    return bool(before.number and now.number) and before.number != now.number


def _layer(before: Stand, now: Stand) -> EventLayer | None:
    codes = {before.errno, now.errno}
    if errnos.ENOENT in codes or _is_another(before, now):
        return "node"
    if errnos.EPERM in codes:
        return "kernel"
    return "mode" if errnos.EACCES in codes else None


def _node_words(before: Stand, now: Stand) -> str:
    if now.errno is None:
        return now.why
    if _is_another(before, now):
        return f"its node was {before.number} and is {now.number}"
    return ""


def _when(at: DeviceMoment, writes: tuple[Write, ...], rule: _RuleChange | None) -> DeviceMoment:
    """Of the last write, where somebody wrote; of the load of a new program; else of the look."""
    if writes:
        return DeviceMoment(writes[-1].unix, writes[-1].monotonic)
    return rule.loaded if rule and rule.loaded else at


def _files(writes: Iterable[Write]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(write.file for write in writes))


def _comings(before: WatchedTable, told: WatchedTable) -> Iterator[AccessEvent]:
    for cgroup in sorted({*before.names, *told.names}):
        was, now = before.names.get(cgroup), told.names.get(cgroup)
        if (was is None) != (now is None):
            words = (None, THERE) if was is None else (THERE, None)
            yield AccessEvent(kind="container", at=told.at, workload=now or was, cgroup=cgroup,
                        before=words[0], after=words[1])  # fmt: skip


def _layer_changes(before: WatchedTable, told: WatchedTable) -> Iterator[AccessEvent]:
    for key, layers in told.layers.items():
        if key.cgroup not in told.names:
            continue
        for layer in TOLD_LAYERS:
            was, _ = before.layers.get(key, {}).get(layer, ("", ""))
            now, why = layers.get(layer, ("", ""))
            if was != now and was in _SETTLED and now in _SETTLED:
                yield AccessEvent(kind=layer, at=told.at, workload=told.names.get(key.cgroup),
                            cgroup=key.cgroup, device=key.path, layer=layer, before=was,  # type: ignore[arg-type]
                            after=now, why=why)  # fmt: skip


def _plugin_changes(before: WatchedTable, told: WatchedTable) -> Iterator[AccessEvent]:
    for name, lacks in told.lacks.items():
        was = before.lacks.get(name)
        for path in sorted(lacks ^ was) if was is not None else ():
            words = (THERE, MISSING) if path in lacks else (MISSING, THERE)
            yield AccessEvent(kind="plugin", at=told.at, workload=name, device=path, layer="node",
                        before=words[0], after=words[1])  # fmt: skip
