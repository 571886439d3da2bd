"""The look of a report: one style sheet, for screens of any width, light and dark, and for paper."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --paper: #fdfdfb; --card: #ffffff; --ink: #1d2430; --soft: #566072;
  --line: #d9dde4; --faint: #c3c9d3; --first: #0072b2; --accent: #005a92; --note: #fff6e0; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171c; --card: #1b1f26; --ink: #e6e9ee; --soft: #a8b1bf; --line: #343b46;
    --faint: #4a5361; --first: #4aa3df; --accent: #7cc4f5; --note: #2f2a1a; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
header, main, footer, nav { max-width: 70rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
h1 { font-size: clamp(1.5rem, 1.1rem + 2vw, 2.2rem); line-height: 1.2; margin: 0 0 .4rem;
  overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p { max-width: 46rem; margin: .5rem 0; overflow-wrap: anywhere; }
.verdict { font-size: clamp(1.15rem, 1rem + .8vw, 1.45rem); font-weight: 600; line-height: 1.35; }
.lead { color: var(--soft); font-size: 1.05rem; }
a { color: var(--accent); }
.skip { position: absolute; left: -999rem; }
.skip:focus { position: static; display: block; padding: .5rem 1.25rem; }
nav ul { list-style: none; margin: 1rem 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: .3rem 1rem; }
nav a { display: inline-block; padding: .2rem 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1.1rem 1.25rem; margin: 1rem 0; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(8.5rem, 100%), 1fr));
  gap: .7rem 1.2rem; margin: .8rem 0; }
dl div { min-width: 0; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
dl.key { display: flex; flex-wrap: wrap; gap: .7rem 2.2rem; }
dl.key dd { font-size: 1.2rem; }
.wide { overflow-x: auto; max-width: 100%; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: .2rem 0 .4rem; }
caption span { display: block; max-width: min(46rem, calc(100vw - 3.6rem)); }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid var(--line); font-weight: 400; overflow-wrap: break-word;
  min-width: 3.2rem; }
thead th { font-weight: 600; white-space: nowrap; }
.text { min-width: min(15rem, 60vw); }
.number { text-align: right; white-space: nowrap; }
code, pre { font-family: ui-monospace, SFMono-Regular, Consolas, "Liberation Mono", monospace;
  font-size: .9em; }
code { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(24rem, 100%), 1fr));
  gap: 1rem 1.6rem; margin: .8rem 0; align-items: start; }
.figures > * { margin: 0; min-width: 0; }
.picture { color: var(--ink); }
.picture svg { display: block; width: 100%; max-width: 28rem; height: auto; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 28rem; }
.gallery { list-style: none; margin: .8rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: .9rem; }
.gallery li { font-size: .85rem; color: var(--soft); width: 6rem; }
img.small { width: 4.5rem; height: auto; image-rendering: pixelated; border: 1px solid var(--line);
  background: #fff; display: block; }
.note { background: var(--note); border-left: .25rem solid var(--accent); padding: .5rem .8rem;
  border-radius: .3rem; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--accent); padding: .2rem 0; }
abbr[title] { text-decoration: underline dotted var(--soft); text-underline-offset: .2em; cursor: help; }
footer { color: var(--soft); font-size: .9rem; padding-bottom: 2.5rem; }
:focus-visible { outline: .15rem solid var(--accent); outline-offset: .1rem; }
@media (max-width: 30rem) {
  thead th, thead th.number { white-space: normal; vertical-align: bottom; }
  header, main, footer, nav { padding-left: .8rem; padding-right: .8rem; }
  section { padding: .9rem .8rem; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb;
    --faint: #bbb; --first: #0072b2; --accent: #000; --note: #fff; }
  body { font-size: 10pt; }
  nav, .skip { display: none; }
  details::details-content { content-visibility: visible; display: block; }
  section { border: 0; padding: 0; }
  figure, tr, dl { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .wide { overflow: visible; break-inside: avoid; }
  .picture svg { max-width: 9.5cm; }
  .figures { grid-template-columns: 1fr 1fr; }
}
"""
