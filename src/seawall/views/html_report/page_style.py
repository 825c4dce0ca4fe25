# SPDX-License-Identifier: Apache-2.0
"""The style of the HTML report: system fonts, light and dark as the reader's screen is, print.

Text on its ground has a contrast of 4.5 to 1 at least (WCAG 2.1, 1.4.3).
"""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark;
  --ground: #ffffff; --panel: #f5f6f8; --line: #c9ced6; --ink: #1b1f24; --soft: #55606e;
  --critical: #b3122a; --warning: #8a5300; --info: #0a5a8c; --good: #176b34; --curve: #0a5a8c; }
@media (prefers-color-scheme: dark) { :root {
  --ground: #14171b; --panel: #1d2127; --line: #3d4550; --ink: #e6e9ee; --soft: #a4aebb;
  --critical: #ff8a98; --warning: #f2b65a; --info: #7cc4f2; --good: #74d493; --curve: #7cc4f2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 62rem; background: var(--ground);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans",
  sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem;
  border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { margin: .4rem 0; max-width: 48rem; } .soft { color: var(--soft); }
ol, ul { margin: .3rem 0; padding-left: 1.4rem; }
code, pre { font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", "Liberation Mono", monospace; }
code { overflow-wrap: anywhere; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 4px;
  padding: .6rem; overflow-x: auto; }
.verdict { border: 1px solid var(--line); border-left: .5rem solid var(--soft); border-radius: 4px;
  background: var(--panel); padding: .8rem 1rem; margin: 1rem 0; break-inside: avoid; }
.verdict.critical { border-left-color: var(--critical); }
.verdict.warning { border-left-color: var(--warning); }
.verdict.info { border-left-color: var(--info); }
.verdict h3 { margin: 0 0 .4rem; font-size: 1.1rem; }
.level { font-weight: 700; } .level.critical { color: var(--critical); }
.level.warning { color: var(--warning); } .level.info { color: var(--info); }
.level.good { color: var(--good); }
dl { display: grid; grid-template-columns: 7.5rem 1fr; gap: .2rem .8rem; margin: .4rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0;
  border-bottom: 1px solid var(--line); } th { font-weight: 600; color: var(--soft); }
td.number, th.number { text-align: right; white-space: nowrap; }
td.name { overflow-wrap: anywhere; }
.chart { display: block; width: 100%; min-width: 34rem; height: auto; margin: .2rem 0 .6rem; }
.chart text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.chart line { stroke: var(--line); stroke-width: 1; }
.curve { fill: none; stroke: var(--curve); stroke-width: 2; } .dot { fill: var(--curve); }
.mark line { stroke-dasharray: 4 3; stroke-width: 1.5; } .mark text { font-weight: 700; }
.mark.kill line { stroke: var(--critical); } .mark.kill text { fill: var(--critical); }
.mark.decision line { stroke: var(--warning); } .mark.decision text { fill: var(--warning); }
.lane .alive { stroke: var(--curve); stroke-width: 2; }
.lane .silent { stroke: var(--critical); stroke-width: 2; stroke-dasharray: 4 3; }
.lane .death { fill: var(--critical); } .lane .planned { fill: var(--soft); }
.lane .distress { fill: var(--warning); }
.lane .moved { fill: var(--ground); stroke: var(--soft); stroke-width: 1.5; }
.lane .held { fill: var(--warning); opacity: 0.45; }
.lane .active { fill: var(--critical); opacity: 0.6; }
.lane .canary { fill: var(--info); opacity: 0.6; }
.way { fill: none; stroke: var(--soft); stroke-width: 1; }
.bar { display: block; width: 100%; height: 1.6rem; }
.bar.small { width: 9rem; height: .8rem; }
.a0 { fill: #4477aa; } .a1 { fill: #66ccee; } .a2 { fill: #228833; } .a3 { fill: #ccbb44; }
.a4 { fill: #ee6677; } .a5 { fill: #aa3377; } .a6 { fill: #997700; } .a7 { fill: #777777; }
.uncounted { fill: var(--critical); } .free { fill: var(--line); } .used { fill: var(--curve); }
.swatch { width: .8rem; height: .8rem; vertical-align: -1px; }
details { margin: .5rem 0; } summary { cursor: pointer; }
details > summary { overflow-wrap: anywhere; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .9rem; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; } dt { margin-top: .3rem; } }
@media print { :root { --ground: #fff; --panel: #fff; --line: #999; --ink: #000; --soft: #333;
    --critical: #900; --warning: #640; --info: #036; --good: #040; --curve: #036; }
  body { max-width: none; padding: 0; font-size: 10.5pt; } h2, h3 { break-after: avoid; }
  tr, svg { break-inside: avoid; } pre { white-space: pre-wrap; }
  details::details-content { content-visibility: visible; height: auto; } }
"""
