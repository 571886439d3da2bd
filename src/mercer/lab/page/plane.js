// The picture with points in it: they are added by a click, moved by dragging or by keys, and drawn with what is known of them.

import { brief, clip, contour, frame, node, path, shades } from "./draw.js";

export class Plane {
  constructor(parent, told) {
    this.parent = parent;
    this.told = told; // {added(x, y), moved(i, x, y, done), chose(i), removed(i), flipped(i)}
    this.dragged = null;
  }

  draw(state, answer) {
    const hadFocus = this.made && document.activeElement === this.made.svg;
    const made = frame(this.parent, state.box, { role: "application", label: state.label, ratio: 1, tallest: 545 });
    this.made = made;
    this.state = state;
    clip(made);
    made.svg.setAttribute("tabindex", "0");
    made.svg.setAttribute("aria-describedby", "hint");
    if (answer?.grid) this.surface(answer);
    if (answer?.curve) this.line(answer);
    this.points(answer);
    made.svg.addEventListener("pointerdown", (event) => this.pressed(event));
    made.svg.addEventListener("keydown", (event) => this.keyed(event));
    this.parent.replaceChildren(made.svg);
    if (hadFocus) made.svg.focus({ preventScroll: true });
  }

  surface(answer) {
    const made = this.made, [x0, x1, y0, y1] = this.state.box, values = answer.grid.flat();
    const scale = Math.max(1e-12, answer.levels.includes(1) ? 1 : 0.5 * Math.max(...values.map(Math.abs)));
    node("image", { href: shades(answer.grid, scale), x: made.x(x0), y: made.y(y1), width: made.x(x1) - made.x(x0),
      height: made.y(y0) - made.y(y1), preserveAspectRatio: "none" }, made.inside);
    for (const level of answer.levels) {
      const text = contour(answer.grid, level, this.state.box)
        .map(([a, b]) => `M${made.x(a[0]).toFixed(1)} ${made.y(a[1]).toFixed(1)}L${made.x(b[0]).toFixed(1)} ${made.y(b[1]).toFixed(1)}`).join("");
      if (text) node("path", { class: level === 0 ? "level nought" : "level", d: text }, made.inside);
    }
  }

  line(answer) {
    const made = this.made;
    if (answer.tube !== null) {
      for (const side of [-1, 1]) path(made, answer.at, answer.curve.map((v) => v + side * answer.tube), { class: "curve dashed" });
    }
    path(made, answer.at, answer.curve, { class: "curve" });
    answer.left_out?.forEach((value, i) => {
      const [x, y] = this.state.points[i] ?? [];
      if (x !== undefined) node("line", { class: "left", x1: made.x(x), x2: made.x(x), y1: made.y(y), y2: made.y(value) }, made.inside);
    });
  }

  points(answer) {
    const made = this.made, { points, chosen } = this.state, many = points.length > 300;
    const largest = Math.max(1e-12, ...(answer?.alpha ?? []).map(Math.abs)), radius = many ? 3 : 5.2;
    points.forEach(([x, y, label], i) => {
      const style = label === undefined ? "only" : label > 0 ? "plus" : "minus", [px, py] = [made.x(x), made.y(y)];
      const alpha = answer?.alpha?.[i] ?? 0;
      if (alpha && answer.ringed) node("circle", { class: "ring", cx: px, cy: py, r: radius + 2 + 5 * Math.abs(alpha) / largest }, made.inside);
      const mark = style === "minus"
        ? node("rect", { x: px - radius * 0.9, y: py - radius * 0.9, width: 1.8 * radius, height: 1.8 * radius }, made.inside)
        : node("circle", { cx: px, cy: py, r: radius }, made.inside);
      mark.setAttribute("class", `point ${style}`);
      mark.dataset.index = i;
      node("title", {}, mark, this.state.describe(i));
    });
    for (const i of [answer?.visited, chosen]) {
      if (points[i]) node("circle", { class: "chosen", cx: made.x(points[i][0]), cy: made.y(points[i][1]), r: 12 }, made.inside);
    }
  }

  place(event) {
    const { svg, width, height } = this.made, seen = svg.getBoundingClientRect();
    const [x, y] = this.made.fromPixels(((event.clientX - seen.left) * width) / seen.width, ((event.clientY - seen.top) * height) / seen.height);
    const [x0, x1, y0, y1] = this.state.box;
    return [Math.min(Math.max(x, x0), x1), Math.min(Math.max(y, y0), y1)];
  }

  // A press on a point drags it; one beside them, if it is let go where it began, adds one.
  pressed(event) {
    if (event.button !== 0) return;
    const index = event.target.dataset?.index, from = [event.clientX, event.clientY];
    const isNear = (e) => Math.hypot(e.clientX - from[0], e.clientY - from[1]) < 5;
    let moved = false;
    if (index !== undefined) { this.told.chose(+index); event.preventDefault(); this.made.svg.focus({ preventScroll: true }); }
    const move = (e) => {
      if (index === undefined || (!moved && isNear(e))) return;
      moved = true;
      this.told.moved(+index, ...this.place(e), false);
    };
    const up = (e) => {
      stop();
      if (index !== undefined && moved) this.told.moved(+index, ...this.place(e), true);
      else if (index === undefined && isNear(e)) this.told.added(...this.place(e));
    };
    const stop = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", up);
      window.removeEventListener("pointercancel", stop);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", up);
    window.addEventListener("pointercancel", stop);
  }

  keyed(event) {
    const { points, chosen, box } = this.state, [x0, x1, y0, y1] = box, step = event.shiftKey ? 0.05 : 0.01;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const count = points.length, key = event.key.toLowerCase();
    if (event.key in arrows && points[chosen]) {
      const [dx, dy] = arrows[event.key], [x, y] = points[chosen];
      this.told.moved(chosen, Math.min(Math.max(x + dx * step * (x1 - x0), x0), x1), Math.min(Math.max(y + dy * step * (y1 - y0), y0), y1), true);
    } else if (key === "n" && count) this.told.chose(((chosen ?? -1) + 1) % count);
    else if (key === "p" && count) this.told.chose(((chosen ?? count) - 1 + count) % count);
    else if (key === "a") this.told.added((x0 + x1) / 2, (y0 + y1) / 2);
    else if ((key === "delete" || key === "backspace") && points[chosen]) this.told.removed(chosen);
    else if (key === "f" && points[chosen]) this.told.flipped(chosen);
    else if (key === "escape") this.told.chose(null);
    else return;
    event.preventDefault();
  }
}

export function described(point, i, count, answer) {
  const [x, y, label] = point, parts = [`point ${i + 1} of ${count}`, `(${brief(x)}, ${brief(y)})`];
  if (label !== undefined) parts.push(`class ${label > 0 ? "+1" : "−1"}`);
  if (answer?.alpha?.[i] !== undefined) parts.push(`α = ${brief(answer.alpha[i])}`);
  if (answer?.values?.[i] !== undefined) parts.push(`f = ${brief(answer.values[i])}`);
  return parts.join(", ");
}
