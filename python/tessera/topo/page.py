# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`topo view`: a self-contained HTML file with a drawing (SVG), style and script."""

from __future__ import annotations

import html
import math

from . import text
from .model import Machine
from .rings import Choice

MOST_DRAWN = 64  # with more devices only the ring is drawn, not all links
_COLOURS = ("#1a7f37", "#0969da", "#bf8700", "#cf222e", "#8250df", "#57606a")
_SIZE = 640

_STYLE = """
body { font: 15px system-ui, sans-serif; margin: 24px; color: #1f2328; background: #fff }
main { display: flex; flex-wrap: wrap; gap: 32px; align-items: flex-start } section { flex: 1 1 360px }
svg { flex: 0 1 680px; max-width: 100%; height: auto; border: 1px solid #d0d7de; border-radius: 6px }
table { border-collapse: collapse; margin: 4px 0 20px } td, th { padding: 3px 10px 3px 0; text-align: left }
.link { fill: none; stroke-width: 1.6; opacity: .55 } .ring { fill: none; stroke: #1f2328; stroke-width: 4; opacity: .85; stroke-linejoin: round }
.dim .link { opacity: .06 } .dim .link.on { opacity: 1; stroke-width: 3 } .hidden { display: none }
.device circle { fill: #fff; stroke: #1f2328; stroke-width: 1.5; cursor: pointer } .device.on circle { fill: #ddf4ff }
.device text { text-anchor: middle; dominant-baseline: central; pointer-events: none; font-size: 14px }
.numa { fill: none; stroke: #afb8c1; stroke-width: 14; stroke-linecap: round } .label { font-size: 13px; fill: #57606a; text-anchor: middle }
.swatch { display: inline-block; width: 22px; height: 4px; vertical-align: middle; margin-right: 6px } #about { min-height: 3em }
"""

_SCRIPT = """
const svg = document.querySelector("svg"), about = document.getElementById("about");
document.querySelectorAll("input[data-class]").forEach(box => box.addEventListener("change", () =>
  svg.querySelectorAll("." + box.dataset.class).forEach(link => link.classList.toggle("hidden", !box.checked))));
let chosen = null;
svg.querySelectorAll(".device").forEach(device => device.addEventListener("click", () => {
  chosen = chosen === device ? null : device;
  svg.classList.toggle("dim", chosen !== null);
  svg.querySelectorAll(".device").forEach(each => each.classList.toggle("on", each === chosen));
  svg.querySelectorAll(".link").forEach(link => link.classList.toggle("on", chosen !== null &&
    (link.dataset.a === chosen.dataset.number || link.dataset.b === chosen.dataset.number)));
  about.textContent = chosen ? chosen.querySelector("title").textContent : "Click a device to see its links.";
}));
document.body.dataset.ready = svg.querySelectorAll(".device").length + " devices";
"""


def _place(at: int, count: int, radius: float = 230) -> tuple[float, float]:
    angle = 2 * math.pi * (at + 0.5) / max(count, 1) - math.pi / 2
    return _SIZE / 2 + radius * math.cos(angle), _SIZE / 2 + radius * math.sin(angle)


def _numa(machine: Machine, order: list[int]) -> list[str]:
    """An arc around the adjacent devices of each NUMA node."""
    shapes, begin = [], 0
    for at in range(1, len(order) + 1):
        node = machine.devices[order[begin]].numa
        if at < len(order) and machine.devices[order[at]].numa == node:
            continue
        if node is not None:
            count = len(order)
            points = [_place(begin + i * (at - begin - 1) / 24 if at - begin > 1 else begin + (i - 12) / 60, count, 276) for i in range(25)]
            shapes.append('<polyline class="numa" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
            x, y = _place((begin + at - 1) / 2, count, 312)
            shapes.append(f'<text class="label" x="{x:.1f}" y="{y:.1f}">NUMA {node}</text>')
        begin = at
    return shapes


def _drawing(machine: Machine, ring: Choice | None) -> str:
    count, classes = len(machine.devices), list(machine.classes().items())
    order = sorted(range(count), key=lambda i: (machine.devices[i].numa is None, machine.devices[i].numa or 0, i))
    at = {device: _place(i, count) for i, device in enumerate(order)}
    shapes = _numa(machine, order) if order else []
    for number, (path, pairs) in enumerate(classes if count <= MOST_DRAWN else ()):
        for a, b in pairs if path.rate else ():
            (x, y), (u, v) = at[a], at[b]
            bend = 0.18  # towards the center, so that links between neighbors do not coincide with the ring
            mx, my = (x + u) / 2 * (1 - bend) + _SIZE / 2 * bend, (y + v) / 2 * (1 - bend) + _SIZE / 2 * bend
            shapes.append(f'<path class="link c{number}" data-a="{a}" data-b="{b}" stroke="{_COLOURS[number % len(_COLOURS)]}" '
                          f'd="M{x:.1f} {y:.1f}Q{mx:.1f} {my:.1f} {u:.1f} {v:.1f}"><title>{a} - {b}: {html.escape(path.kind)}, {text.rate(path.rate)}</title></path>')
    if ring and len(ring.order) > 1:
        points = " ".join(f"{at[i][0]:.1f},{at[i][1]:.1f}" for i in ring.order)
        shapes.append(f'<polygon class="ring ringline" points="{points}"/>')
    radius = 20 if count <= 32 else max(2.0, 20 * 32 / count)
    for i, device in enumerate(machine.devices):
        x, y = at[i]
        words = [f"device {i}: {device.name}", device.place, "" if device.numa is None else f"NUMA node {device.numa}"]
        if count <= MOST_DRAWN:
            words += [f"{j}: {machine.path(i, j).kind} {text.rate(machine.rate(i, j))}" for j in range(count) if j != i]
        label = f'<text x="{x:.1f}" y="{y:.1f}">{i}</text>' if count <= MOST_DRAWN else ""
        shapes.append(f'<g class="device" data-number="{i}"><title>{html.escape(", ".join(filter(None, words)))}</title>'
                      f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>{label}</g>')
    return f'<svg viewBox="-40 0 {_SIZE + 80} {_SIZE}" role="img" aria-label="devices and links">{"".join(shapes)}</svg>'


def _row(cells, tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{each}</{tag}>" for each in cells) + "</tr>"


def page(machine: Machine, ring: Choice | None) -> str:
    """The text of the HTML file. `ring` is drawn over the links."""
    count, classes = len(machine.devices), machine.classes()
    side = []
    if not count:
        side.append("<p>No devices.</p>")
    if classes:
        drawn = count <= MOST_DRAWN
        rows = [_row(("", "class", "rate per direction", "pairs"), "th")]
        for number, (path, pairs) in enumerate(classes.items()):
            box = f'<input type="checkbox" checked data-class="c{number}">' if drawn and path.rate else ""
            rows.append(_row((box, f'<span class="swatch" style="background:{_COLOURS[number % len(_COLOURS)]}"></span>{html.escape(path.kind)}',
                              text.rate(path.rate) if path.rate else "none", len(pairs))))
        side.append(f"<h2>Bandwidth classes</h2><table>{''.join(rows)}</table>")
        if not drawn:
            side.append(f"<p>{count} devices: only the ring is drawn; all links are drawn for up to {MOST_DRAWN} devices.</p>")
    if ring:
        lines = "<br>".join(html.escape(line) for line in text.ring(machine, ring))
        side.append(f'<h2><label><input type="checkbox" checked data-class="ringline"> Best ring</label></h2><p>{lines}</p>')
    if machine.numa:
        rows = [_row(("node", "cores", "memory", "devices"), "th")]
        for node in machine.numa:
            here = [i for i, device in enumerate(machine.devices) if device.numa == node.number]
            rows.append(_row((node.number, node.cores or "", text.size(node.memory) if node.memory else "", text.numbers(here) or "none")))
        side.append(f"<h2>NUMA nodes</h2><table>{''.join(rows)}</table>")
    if machine.adapters:
        side.append("<h2>Network adapters</h2><p>" + "<br>".join(map(html.escape, machine.adapters)) + "</p>")
    side += [f"<p><small>{html.escape(note)}</small></p>" for note in machine.notes]
    title = html.escape(f"{machine.name}: {text.plural(count, 'device') if count else 'no devices'}")
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>\n'
            f'<body><h1>{title}</h1><p>From {html.escape(machine.format)}.</p>\n<main>{_drawing(machine, ring)}\n'
            f'<section><p id="about">Click a device to see its links.</p>{"".join(side)}</section></main>\n<script>{_SCRIPT}</script></body></html>\n')
