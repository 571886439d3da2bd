// What stands beside the picture: numbers, the certificate, the Gram matrix, eigenvalues, coefficients.

import { brief, colour, html, node, clip, frame, stems } from "./draw.js";

export function facts(list, parent) {
  parent.replaceChildren(...list.map(({ name, value, note }) => {
    const row = html("div", {}, html("dt", {}, name), html("dd", {}, brief(value, 4)));
    if (note) row.append(html("dd", {}, note));
    return row;
  }));
}

export function notes(list, parent) {
  parent.replaceChildren(...list.map((text) => html("li", {}, text)));
}

const WORDS = { proved: "proved: it is a kernel", refuted: "refuted: it is no kernel", unknown: "unknown: neither proved nor refuted" };

export function certificate(found, parent, isWhole) {
  parent.replaceChildren(html("h2", {}, "Certificate"));
  if (!found) { parent.append(html("p", {}, "…")); return; }
  parent.append(html("p", { class: `verdict ${found.verdict}` }, WORDS[found.verdict] + found.conditions.map((c) => `, for ${c}`).join("")), html("p", {}, found.reason));
  if (found.conditional) parent.append(html("p", {}, `It is ${found.conditional}.`));
  if (found.steps) {
    const proof = html("details", isWhole ? { open: "" } : {}, html("summary", {}, "The proof"));
    proof.append(html("ul", { class: "proof" }, branch(found.steps)));
    parent.append(proof);
  }
  if (found.witness) parent.append(witness(found.witness, isWhole));
}

function branch(step) {
  const item = html("li", {}, html("code", {}, step.subject), `: ${step.rule}`);
  if (step.needs.length) item.append(` [${step.needs.join("; ")}]`);
  if (step.parts.length) item.append(html("ul", {}, ...step.parts.map(branch)));
  return item;
}

function witness(found, isWhole) {
  const made = html("details", isWhole ? { open: "" } : {}, html("summary", {}, `The witness: ${found.number} point${found.number > 1 ? "s" : ""}`));
  const head = html("tr", {}, ...(found.vector ? ["c", "point"] : ["point"]).map((t) => html("th", {}, t)));
  const rows = found.points.map((point, i) => {
    const place = (Array.isArray(point) ? point : [point]).map((v) => brief(v)).join(", ");
    return html("tr", {}, ...(found.vector ? [brief(found.vector[i]), place] : [place]).map((t) => html("td", {}, t)));
  });
  made.append(html("p", {}, `eigenvalues of its Gram matrix from ${brief(found.eigenvalues[1])} to ${brief(found.eigenvalues[0])}`),
    html("div", { class: "scroll" }, html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows))));
  if (found.points.length < found.number) made.append(html("p", {}, `the ${found.points.length} of largest |c| are shown`));
  return made;
}

function figure(parent, title, caption) {
  const body = html("div"), made = html("figure", {}, html("h2", {}, title), body, html("figcaption", {}, caption));
  parent.append(made);
  return body;
}

// K as a picture: one colour for positive values, the other for negative ones.
export function gram(found, parent) {
  const rows = found.rows, some = found.points > rows ? `${rows} of ${found.points} points` : `${rows} points`;
  const values = found.values.flat().map((v) => v ?? 0), largest = Math.max(1e-300, ...values.map(Math.abs));
  const body = figure(parent, "Gram matrix", `k(xᵢ, xⱼ) of ${some}, in order; the deepest colour is ${brief(largest)}`);
  const canvas = html("canvas", { width: rows, height: rows, role: "img", "aria-label": `Gram matrix of ${some}` });
  const context = canvas.getContext("2d"), image = context.createImageData(rows, rows), plus = colour("--plus"), minus = colour("--minus");
  values.forEach((value, i) => image.data.set([...(value >= 0 ? plus : minus), 255 * Math.abs(value) / largest], 4 * i));
  context.putImageData(image, 0, 0);
  body.append(canvas);
}

export function eigenvalues(found, parent) {
  const values = found.eigenvalues, caption = `the largest ${values.length} of ${found.points}; the least is ${brief(found.lowest)}`;
  const body = figure(parent, "Eigenvalues of the Gram matrix", caption);
  stems(body, values, { logarithmic: true, label: caption, below: "number of the eigenvalue" });
}

export function shares(values, parent) {
  const body = figure(parent, "Variance in each component", "shares of the variance in feature space");
  stems(body, values, { label: "shares of the variance", below: "component" });
}

// The points with the largest coefficients.
export function coefficients(answer, points, chosen, choose, parent) {
  const order = answer.alpha.map((_, i) => i).filter((i) => answer.alpha[i]).sort((a, b) => Math.abs(answer.alpha[b]) - Math.abs(answer.alpha[a])).slice(0, 100);
  const body = figure(parent, `Coefficients α, ${answer.support ?? order.length} of ${points.length} not zero`, "the largest first; a row chooses its point");
  const head = html("tr", {}, ...["point", "x", "y", "α", "f"].map((t) => html("th", {}, t)));
  const rows = order.map((i) => {
    const cells = [i + 1, ...points[i].slice(0, 2), answer.alpha[i], answer.values[i]].map((v) => html("td", {}, brief(v)));
    const row = html("tr", i === chosen ? { class: "chosen", tabindex: "0" } : { tabindex: "0" }, ...cells);
    row.addEventListener("click", () => choose(i));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(i); } });
    return row;
  });
  body.append(html("div", { class: "scroll" }, html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows))));
}

// Where the points lie along two components.
export function scores(answer, points, parent) {
  const xs = answer.scores.map((row) => row[0]), ys = answer.scores.map((row) => row[1] ?? 0);
  const wide = (values) => { const low = Math.min(...values), high = Math.max(...values), room = 0.08 * (high - low || 1); return [low - room, high + room]; };
  const made = frame(parent, [...wide(xs), ...wide(ys)], { ratio: 0.72, tallest: 390, label: "the points in feature space", below: "first and second component" });
  clip(made);
  xs.forEach((x, i) => {
    const style = points[i]?.[2] > 0 ? "plus" : "minus", [px, py] = [made.x(x), made.y(ys[i])];
    const mark = style === "plus" ? node("circle", { cx: px, cy: py, r: 5 }, made.inside) : node("rect", { x: px - 4.5, y: py - 4.5, width: 9, height: 9 }, made.inside);
    mark.setAttribute("class", `point ${style}`);
  });
  parent.append(made.svg);
}
