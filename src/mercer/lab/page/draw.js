// What all pictures are made of: elements of SVG, axes, curves, and the lines where a function has a value.

const SVG = "http://www.w3.org/2000/svg";

export function node(name, attributes = {}, parent = null, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

export function html(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A number with three digits, as short as it can be.
export function brief(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e5) return String(value).replace("-", "−");
  const size = Math.abs(value);
  const text = size >= 1e4 || (size < 1e-3 && size > 0) ? value.toExponential(digits - 1) : String(+value.toPrecision(digits));
  return text.replace("-", "−").replace("e+", "e");
}

// Round numbers between two others, about as many as asked for.
export function ticks(low, high, count = 6) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12) + step * 1e-9; i++) found.push(+(i * step).toPrecision(12));
  return found;
}

// A frame with axes; `x` and `y` take numbers to places. The width is that of the element it is put into.
export function frame(parent, box, options = {}) {
  const width = Math.max(220, Math.floor(parent.clientWidth || 320));
  const height = Math.round(Math.min(options.tallest ?? 560, width * (options.ratio ?? 1)));
  const left = options.left ?? 34, bottom = options.below ? 36 : 22, top = 8, right = 8;
  const [x0, x1, y0, y1] = box;
  const x = (value) => left + ((value - x0) / (x1 - x0)) * (width - left - right);
  const y = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - top - bottom);
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: options.role ?? "img", "aria-label": options.label ?? "" });
  svg.style.height = `${height}px`;
  node("rect", { class: "frame", x: left, y: top, width: width - left - right, height: height - top - bottom }, svg);
  const inside = node("g", { class: "inside" }, svg);
  for (const at of ticks(x0, x1, Math.max(3, Math.round(width / 90))).filter((at) => !options.whole || Number.isInteger(at))) {
    node("line", { class: "grid", x1: x(at), x2: x(at), y1: height - bottom, y2: height - bottom + 4 }, svg);
    node("text", { x: x(at), y: height - bottom + 15, "text-anchor": "middle" }, svg, brief(at));
  }
  const shown = options.logarithmic ? (value) => `1e${value}`.replace("-", "−") : (value) => brief(value);
  const heights = ticks(y0, y1, Math.max(3, Math.round(height / 70))).filter((at) => !options.logarithmic || Number.isInteger(at));
  for (const at of heights) {
    node("line", { class: "grid", x1: left - 4, x2: left, y1: y(at), y2: y(at) }, svg);
    node("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, svg, shown(at));
  }
  if (options.below) node("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, svg, options.below);
  return { svg, inside, x, y, width, height, left, right, top, bottom, box,
    fromPixels: (px, py) => [x0 + ((px - left) / (width - left - right)) * (x1 - x0), y0 + ((height - bottom - py) / (height - top - bottom)) * (y1 - y0)] };
}

// A path through numbers; it is broken where one is missing, and kept within the frame.
export function path(made, xs, ys, attributes, parent = made.inside) {
  const [, , y0, y1] = made.box, far = 3 * (y1 - y0);
  let text = "", open = false;
  xs.forEach((at, i) => {
    const value = ys[i];
    if (value === null || value === undefined) { open = false; return; }
    const kept = Math.min(Math.max(value, y0 - far), y1 + far);
    text += `${open ? "L" : "M"}${made.x(at).toFixed(1)} ${made.y(kept).toFixed(1)}`;
    open = true;
  });
  return node("path", { d: text, ...attributes }, parent);
}

let clips = 0;
export function clip(made) {
  const id = `clip${clips++}`, defs = node("defs", {}, made.svg), area = node("clipPath", { id }, defs);
  node("rect", { x: made.left, y: made.top, width: made.width - made.left - made.right, height: made.height - made.top - made.bottom }, area);
  made.inside.setAttribute("clip-path", `url(#${id})`);
}

// Several curves over one axis. `series`: [{x, y, name, style}].
export function chart(parent, series, options = {}) {
  const all = series.flatMap((s) => s.y).filter((v) => v !== null && Number.isFinite(v));
  let low = Math.min(...all, options.least ?? Infinity), high = Math.max(...all, options.most ?? -Infinity);
  if (!all.length) [low, high] = [0, 1];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  const xs = series.flatMap((s) => s.x);
  const made = frame(parent, [Math.min(...xs), Math.max(...xs) + (xs.length < 2 ? 1 : 0), low - room, high + room],
    { ratio: 0.62, tallest: 330, left: 44, ...options });
  clip(made);
  if (low - room < 0 && high + room > 0) node("line", { class: "zero", x1: made.left, x2: made.width - made.right, y1: made.y(0), y2: made.y(0) }, made.inside);
  for (const s of series) path(made, s.x, s.y, { class: `curve ${s.style ?? ""}` });
  parent.append(made.svg);
  return made;
}

// Stems with dots: eigenvalues, shares. Values that are negative are marked.
export function stems(parent, values, options = {}) {
  const logs = options.logarithmic ? values.map((v) => (Math.abs(v) > 0 ? Math.log10(Math.abs(v)) : null)) : values;
  const known = logs.filter((v) => v !== null);
  let top = Math.max(...known, options.logarithmic ? -Infinity : 0);
  let bottom = options.logarithmic ? Math.max(Math.min(...known), top - 17) : Math.min(0, ...known);
  if (options.logarithmic && top - bottom < 1) [top, bottom] = [Math.ceil(top + 0.01), Math.floor(bottom - 0.01)];
  const made = frame(parent, [0.2, values.length + 0.8, bottom - 0.05 * (top - bottom || 1), top + 0.08 * (top - bottom || 1)],
    { ratio: 0.75, tallest: 260, left: 44, whole: true, ...options });
  clip(made);
  logs.forEach((value, i) => {
    if (value === null) return;
    const style = values[i] < 0 ? " below" : "", floor = options.logarithmic ? made.height - made.bottom : made.y(0);
    node("line", { class: `stem${style}`, x1: made.x(i + 1), x2: made.x(i + 1), y1: floor, y2: made.y(value) }, made.inside);
    node("circle", { class: `dot${style}`, cx: made.x(i + 1), cy: made.y(value), r: 2.6 }, made.inside);
  });
  parent.append(made.svg);
  return made;
}

// Where a function on a grid has the value `level`: segments through the squares of the grid.
export function contour(grid, level, box) {
  const rows = grid.length, columns = grid[0].length, [x0, x1, y0, y1] = box, found = [];
  const px = (j) => x0 + (j / (columns - 1)) * (x1 - x0), py = (i) => y0 + (i / (rows - 1)) * (y1 - y0);
  for (let i = 0; i + 1 < rows; i++) {
    for (let j = 0; j + 1 < columns; j++) {
      const corners = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]], cuts = [];
      for (let k = 0; k < 4; k++) {
        const [ai, aj] = corners[k], [bi, bj] = corners[(k + 1) % 4], a = grid[ai][aj] - level, b = grid[bi][bj] - level;
        if (a < 0 === b < 0) continue;
        const t = a / (a - b);
        cuts.push([px(aj + t * (bj - aj)), py(ai + t * (bi - ai))]);
      }
      for (let k = 0; k + 1 < cuts.length; k += 2) found.push([cuts[k], cuts[k + 1]]);
    }
  }
  return found;
}

export function colour(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const full = text.length === 4 ? text.replace(/[0-9a-f]/gi, "$&$&") : text;
  return [1, 3, 5].map((i) => parseInt(full.slice(i, i + 2), 16));
}

// A grid as a picture of two colours, the stronger the larger |f| is; rows come from the bottom.
export function shades(grid, scale) {
  const rows = grid.length, columns = grid[0].length, canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows), plus = colour("--plus"), minus = colour("--minus");
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) {
    const value = grid[rows - 1 - i][j], [r, g, b] = value > 0 ? plus : minus, at = 4 * (i * columns + j);
    image.data.set([r, g, b, 26 + 84 * Math.tanh(Math.abs(value) / scale)], at);
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}
