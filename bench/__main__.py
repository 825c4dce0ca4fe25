"""``python -m bench [--strict]``: every figure that the README quotes, in one table."""

import os
import shlex
import sys
import time

from bench.figures import Figure, all_figures, left_out


def table(figures: list[Figure]) -> list[str]:
    head = ("figure", "seawall", "peer", "ratio", "mark", "met")
    rows = [head, *(_row(figure) for figure in figures)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return lines


def _row(figure: Figure) -> tuple[str, ...]:
    is_ratio = figure.unit == "x"
    peer = "-" if figure.peer is None else f"{figure.peer_name} {figure.peer:.3g} {figure.unit}"
    ratio = "-" if figure.peer is None or is_ratio else f"{figure.peer / figure.value:.1f}"
    sign = ">=" if figure.at_least else "<="
    return (
        figure.name,
        f"{figure.value:.3g} {figure.unit}",
        figure.peer_name if is_ratio else peer,
        f"{figure.value:.1f}" if is_ratio else ratio,
        f"{sign} {figure.mark:.3g} {figure.unit}",
        "yes" if figure.met else "NO",
    )


def main(argv: list[str]) -> int:
    figures = all_figures()
    kernel = os.uname()
    print(time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), end=" - ")
    print(f"{kernel.sysname} {kernel.release} {kernel.machine}, {os.cpu_count()} CPUs", end=", ")
    print(f"Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}")
    print(f"command: {shlex.join(['python', '-m', 'bench', *argv])}\n")
    print("\n".join(table(figures)))
    for why in left_out():
        print(f"left out: {why}")
    missed = [figure.name for figure in figures if not figure.met]
    print(f"\n{len(figures) - len(missed)} of {len(figures)} marks met")
    return 1 if missed and "--strict" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
