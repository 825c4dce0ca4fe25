# SPDX-License-Identifier: Apache-2.0
"""vmalloc is out of proportion.

Pages behind the kernel's large buffers: tables of netfilter and BPF, crash dumps, drivers'
own.  Thread stacks are vmalloc too (since 4.9) and are left out here.  Charged to a container
only where the caller asks for it; /proc/vmallocinfo names the callers, for root.
"""

from collections import Counter
from collections.abc import Iterator

from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.vmallocinfo import Vmallocinfo
from seawall.words import percent, size

_VMALLOCINFO = "/proc/vmallocinfo"
_STACKS = ("dup_task_struct", "alloc_thread_stack", "copy_process", "_do_fork", "kernel_clone")


@rule(
    id="SW105",
    title="vmalloc is large",
    severity="warning",
    thresholds={"warn_fraction": "share of MemTotal; ordinary nodes have under 1 %, proposal"},
    confirm=(
        "grep VmallocUsed /proc/meminfo",
        (
            "sudo awk -v p=$(getconf PAGESIZE) '{for(i=4;i<=NF;i++) if($i~/^pages=/)"
            ' s[$3]+=substr($i,7)} END{for(c in s) print s[c]*p/2^20 " MiB", c}\''
            " /proc/vmallocinfo | sort -rn | head"
        ),
    ),
    remedy=(
        (
            "look up the largest caller: bpf_map_* is a BPF map, xt_* and nf_* are netfilter"
            " tables, a [module] is a driver"
        ),
        "shrink what it was created for; reload that driver in a maintenance window",
    ),
    provide="root (/proc/vmallocinfo), or Linux 5.3 and later, which count vmalloc",
)
def judge(
    ledger: Ledger, kernel: Kernel, vmallocinfo: Vmallocinfo | Unread, *,
    warn_fraction: float = 0.05,
) -> Finding:  # fmt: skip
    line = ledger.line("vmalloc")
    if line is None:
        words = "this kernel does not count vmalloc"
        unknown = next((u.why for u in ledger.unknown if u.name == "vmalloc"), words)
        return blind(unknown, Unread(_VMALLOCINFO, "absent", unknown))
    evidence = [Evidence("vmalloc without thread stacks", line.bytes, "bytes", line.source)]
    if line.bytes < warn_fraction * ledger.total_bytes:
        return quiet(f"{size(line.bytes)} is vmalloc", evidence)
    callers = [] if isinstance(vmallocinfo, Unread) else list(_callers(vmallocinfo, kernel))
    first = f", most of it by {callers[0].name}" if callers else ""
    share = percent(line.bytes / ledger.total_bytes)
    return fires(
        "warning",
        f"{size(line.bytes)} ({share} of memory) is vmalloc of the kernel{first}",
        [*evidence, *callers],
        outlook="It is not reclaimed; it leaves when its caller frees it.",
    )


def _callers(vmallocinfo: Vmallocinfo, kernel: Kernel) -> Iterator[Evidence]:
    """The three callers with most pages, thread stacks left out."""
    pages: Counter[str] = Counter()
    for area in vmallocinfo.areas:
        name = area.caller or "an unnamed caller"
        if area.pages and not name.startswith(_STACKS):
            pages[name] += area.pages
    for name, number in pages.most_common(3):
        yield Evidence(name, number * kernel.page_size, "bytes", _VMALLOCINFO)
