// The lab: what is chosen, the requests to the engine, and the rooms.

import { brief, chart, html } from "./draw.js";
import { Plane, described } from "./plane.js";
import * as panels from "./panels.js";
import { asPng, asSvg, save } from "./save.js";

const KERNELS = ["gaussian(sigma=1)", "laplacian(gamma=1)", "matern(nu=1.5)", "rationalquadratic", "wendland(radius=2)", "periodic(period=2)",
  "linear", "polynomial(2)", "polynomial(3)", "polynomial(2, c=0)", "arccosine", "cosine", "sigmoid(0.5, -1)", "ballindicator",
  "gaussian(sigma=median)", "2*gaussian(1) + linear", "exp(-r)", "max(1 - r, 0)", "where(r < 1, 1, 0)"];
const PLANE_KEYS = "Click adds a point, dragging moves it. Keys in the picture: <kbd>N</kbd> <kbd>P</kbd> next and previous point, "
  + "arrows move it (<kbd>Shift</kbd>: further), <kbd>A</kbd> adds, <kbd>Delete</kbd> removes";

// Settings of a room: [name, label, kind, value, low, high]; "log" turns powers of ten.
const C = ["C", "C, the weight of errors", "log", 1, -2, 4], LAM = ["lam", "λ, the weight of ‖f‖²", "log", 0.01, -8, 1];
const ROOMS = {
  classify: { lead: "Two classes, a kernel and a learner: where is the boundary, and what holds it?", points: "plane", dim: 2,
    learners: { svm: [C], logistic: [C], ridge: [LAM], perceptron: [] }, examples: ["moons", "xor", "circles", "spirals", "blobs"] },
  curve: { lead: "Points (x, y) and a function through them: smooth by its kernel, close by its penalty.", points: "curve", dim: 1,
    learners: { ridge: [LAM], svr: [C, ["epsilon", "ε, errors that cost nothing", "linear", 0.1, 0, 1]] }, examples: ["sine", "step"] },
  certify: { lead: "Is it a kernel? A proof, rule by rule; or points that witness that it is none.",
    settings: [["dim", "dimension of the points (0: any)", "whole", 0, 0, 8]] },
  perceptron: { lead: "Every visit of a point: a mistake adds y k(x, ·) to f. The proof is in the second picture.", points: "plane", dim: 2,
    settings: [["step", "visits so far", "step", -1, 0, 1], ["intercept", "with an intercept", "flag", true]], examples: ["xor", "blobs", "moons", "circles", "spirals"] },
  features: { lead: "Where the points lie in feature space: above one component as a function, below the first two as coordinates.", points: "plane", dim: 2,
    settings: [["component", "component that colours the plane", "whole", 1, 1, 6]], examples: ["circles", "moons", "xor", "spirals", "blobs"] },
  spectrum: { lead: "φ(r) and its Fourier transform v(ω). It is a kernel exactly when v is nowhere negative (Bochner).",
    settings: [["dim", "dimension of the points", "whole", 1, 1, 8]] },
};

const at = (id) => document.getElementById(id);
const sets = { plane: { points: [], box: [-3, 3, -3, 3] }, curve: { points: [], box: [-3, 3, -2, 2] } };
const kernels = { certify: "max(1 - r, 0)", spectrum: "max(1 - r, 0)", perceptron: "polynomial(2, c=0)" };
const values = {}; // settings by room
const drawn = {}; // the example of each room; points that somebody changed go along from room to room
const state = { room: "classify", kernel: "gaussian(sigma=1)", parameters: {}, chosen: null, answer: null, version: 0 };
const room = () => ROOMS[state.room];
const set = () => sets[room().points];
const learner = () => values[state.room].learner;

// --- requests -------------------------------------------------------------------------------------------

async function ask(name, request) {
  let response;
  try {
    response = await fetch(`room/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) });
  } catch {
    throw new Error("the lab does not answer: is mercer lab still running?");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function request() {
  const wanted = { kernel: state.kernel, parameters: { ...state.parameters }, ...values[state.room] };
  return room().points ? { ...wanted, points: set().points, box: set().box } : wanted;
}

let isBusy = false, isWaiting = false, later = 0;

// Whether something was done that is not answered yet; for those who look at the page from outside.
function busy(is) { document.body.dataset.state = is ? "busy" : "quiet"; }

// One request at a time; what changed meanwhile is asked after it.
async function refresh() {
  if (isBusy) { isWaiting = true; return; }
  isBusy = true;
  busy(true);
  const version = ++state.version, asked = request(), name = state.room;
  clearTimeout(later);
  try {
    const answer = await ask(name, asked);
    if (name === state.room) {
      answer.ringed = name === "classify" ? ["svm", "perceptron"].includes(asked.learner) : name === "curve" ? asked.learner === "svr" : name === "perceptron";
      state.answer = answer;
      state.certificate = name === "certify" ? answer : state.asks === answer.kernel.asks ? state.certificate : null;
      refuse(null);
      if (Object.keys(asked.parameters).length && state.kernel === asked.kernel) {
        for (const [key, value] of Object.entries(asked.parameters)) if (state.parameters[key] === value) delete state.parameters[key];
        state.kernel = answer.kernel.text;
        at("kernel").value = state.kernel;
      }
      show();
      later = setTimeout(() => slowly(version, name, asked), 350);
    }
  } catch (error) {
    if (name === state.room) refuse(error.message);
  }
  isBusy = false;
  if (isWaiting) { isWaiting = false; refresh(); } else busy(false);
}

// What takes longer: the certificate, and errors left out where they need as many fits as points.
async function slowly(version, name, asked) {
  const isCurrent = () => version === state.version && name === state.room;
  try {
    if (name !== "certify" && !state.certificate) {
      const about = state.answer.kernel.asks ?? state.kernel, found = await ask("certify", { kernel: about, dim: room().dim ?? values[name].dim });
      if (!isCurrent()) return;
      [state.certificate, state.asks] = [found, about];
      showCertificate();
    }
    if (room().learners && !state.answer.facts.some((f) => f.name === "leave-one-out error")) {
      const found = await ask(`${name}_left_out`, asked);
      if (!isCurrent()) return;
      state.answer.facts.splice(1, 0, ...found.facts);
      state.answer.notes.push(...found.notes);
      showNumbers();
    }
  } catch (error) {
    if (isCurrent()) refuse(error.message);
  }
}

// A sentence, and below it the place of the text that it is about.
function refuse(sentence) {
  const box = at("error"), [first, ...rest] = (sentence ?? "").split("\n");
  box.hidden = !sentence;
  box.replaceChildren(first, ...(rest.length ? [html("pre", {}, rest.map((line) => line.slice(4)).join("\n"))] : []));
  at("kernel").setAttribute("aria-invalid", String(Boolean(sentence) && /kernel|φ/.test(first)));
  for (const id of ["second", "told", "figures"]) at(id).classList.toggle("old", Boolean(sentence));
  if (sentence && room().points) drawPlane(null);
}

// --- what is shown --------------------------------------------------------------------------------------

const plane = new Plane(at("plane"), {
  added(x, y) { place(set().points.length, x, y); state.chosen = set().points.length - 1; changed(); },
  moved(i, x, y) { place(i, x, y); changed(); },
  chose(i) { state.chosen = i; drawPlane(); drawFigures(); },
  removed(i) { set().example = null; set().points.splice(i, 1); state.chosen = set().points.length ? Math.min(i, set().points.length - 1) : null; changed(); },
  flipped(i) { if (room().points === "plane") { set().example = null; set().points[i][2] *= -1; changed(); } },
});

function place(i, x, y) {
  const points = set().points, rest = room().points === "curve" ? [] : [points[i]?.[2] ?? +document.querySelector("[name=class]:checked").value];
  if (points.length >= 2000 && i >= points.length) return;
  set().example = null;
  points[i] = [+x.toPrecision(4), +y.toPrecision(4), ...rest];
}

function changed() {
  if (values[state.room].step !== undefined) values[state.room].step = -1;
  drawPlane(state.answer);
  refresh();
}

function drawPlane(answer = state.answer) {
  if (!room().points) { at("plane").replaceChildren(); return; }
  const { points, box } = set(), fits = answer?.values?.length === points.length || answer?.scores?.length === points.length ? answer : answer && { ...answer, alpha: undefined, values: undefined, left_out: undefined };
  const describe = (i) => described(points[i], i, points.length, fits);
  plane.draw({ points, box, chosen: state.chosen, describe, label: `${points.length} points; ${ROOMS[state.room].lead}` }, fits);
  at("status").textContent = points[state.chosen] ? describe(state.chosen) : "";
  at("flip").disabled = at("remove").disabled = !points[state.chosen];
  at("flip").hidden = room().points === "curve";
}

function show() {
  drawPlane();
  drawSecond();
  showSliders(state.answer.kernel.sliders ?? []);
  showNumbers();
  showCertificate();
  drawFigures();
  at("code").querySelector("pre").textContent = state.answer.code;
}

function showNumbers() {
  panels.facts(state.answer.facts ?? [], at("facts"));
  panels.notes(state.answer.notes ?? [], at("notes"));
}

function showCertificate() { panels.certificate(state.certificate, at("certificate"), state.room === "certify"); }

function titled(parent, title) { parent.append(html("h2", {}, title)); }

function drawSecond() {
  const parent = at("second"), answer = state.answer;
  parent.replaceChildren();
  if (state.room === "features") panels.scores(answer, set().points, parent);
  if (state.room === "perceptron" && answer.proof.norm.length) {
    const j = answer.proof.norm.map((_, i) => i + 1);
    titled(parent, "‖w‖² after j mistakes, between j max k(x,x) above and (jρ)² below");
    const lower = answer.proof.lower.some((v) => v !== null) ? [{ x: j, y: answer.proof.lower, style: "third dashed" }] : [];
    chart(parent, [{ x: j, y: answer.proof.upper, style: "second dashed" }, { x: j, y: answer.proof.norm }, ...lower],
      { label: "the norm grows with the mistakes, between the bounds of the proof", below: "mistakes j", least: 0, ratio: 0.5, whole: true });
  }
  if (state.room === "certify" && answer.shape) {
    titled(parent, "k(0, x) along the first axis");
    chart(parent, [{ x: answer.shape.at, y: answer.shape.values }], { label: "k(0, x)", below: "x", least: 0 });
  }
  if (state.room === "spectrum") {
    titled(parent, "φ(r)");
    chart(parent, [{ x: answer.r, y: answer.profile }], { label: "φ of the distance", below: "distance r", least: 0, ratio: 0.5 });
    titled(parent, "v(ω), the Fourier transform");
    const below = answer.density.map((v, i) => (v + answer.error[i] < 0 ? v : null));
    chart(parent, [{ x: answer.omega, y: answer.density }, { x: answer.omega, y: below, style: "second" }],
      { label: "the spectral density", below: "frequency ω", least: 0, ratio: 0.5 });
  }
}

function drawFigures() {
  const parent = at("figures"), answer = state.answer;
  parent.replaceChildren();
  if (!answer?.gram) return;
  panels.gram(answer.gram, parent);
  panels.eigenvalues(answer.gram, parent);
  if (answer.shares) panels.shares(answer.shares, parent);
  if (answer.alpha && answer.alpha.length === set().points.length) panels.coefficients(answer, set().points, state.chosen, (i) => { state.chosen = i; drawPlane(); drawFigures(); }, parent);
}

// --- sliders --------------------------------------------------------------------------------------------

function slider(id, label, kind, value, low, high, turned) {
  const isLog = kind === "log", input = html("input", { type: "range", id, min: low, max: high, step: kind === "whole" || kind === "step" ? 1 : 0.01 });
  const output = html("output", { for: id }), row = html("div", { class: "slider" }, html("label", { for: id }, label), output, input);
  row.put = (given) => { input.value = isLog ? Math.log10(given) : given; output.textContent = brief(given); };
  row.put(value);
  input.addEventListener("input", () => {
    const given = isLog ? +(10 ** +input.value).toPrecision(3) : +input.value;
    output.textContent = brief(given);
    turned(given);
  });
  return row;
}

// The numbers of the kernel; a slider that is being turned stays where it is.
function showSliders(list) {
  const parent = at("sliders"), names = list.map((s) => s.name + s.kind).join();
  if (parent.dataset.names === names) {
    list.forEach((s, i) => { if (!parent.children[i].contains(document.activeElement) && !(s.name in state.parameters)) parent.children[i].put(s.value); });
    return;
  }
  parent.dataset.names = names;
  parent.replaceChildren(...list.map(({ name, label, value, kind }) => {
    const turned = (given) => { state.parameters[name] = given; refresh(); };
    const GREEK = { sigma: "σ", gamma: "γ", nu: "ν", eta: "η" }, title = GREEK[label] ? `${GREEK[label]} (${label})` : label.replace("_", " ");
    if (kind === "whole") return slider(`k-${name}`, title, "whole", value, 1, Math.max(10, value), turned);
    if (kind === "positive" && value > 0) {
      const ten = Math.log10(value);
      return slider(`k-${name}`, title, "log", value, Math.min(-2, Math.floor(ten)), Math.max(2, Math.ceil(ten)), turned);
    }
    return slider(`k-${name}`, title, "linear", value, kind === "real" ? Math.min(-5, value) : 0, Math.max(5, value), turned);
  }));
}

function showSettings() {
  const parent = at("settings"), mine = values[state.room];
  parent.replaceChildren();
  if (room().learners) {
    const select = html("select", { id: "learner" }, ...Object.keys(room().learners).map((name) => html("option", {}, name)));
    select.value = mine.learner;
    select.addEventListener("change", () => { mine.learner = select.value; showSettings(); refresh(); });
    parent.append(html("label", { for: "learner" }, "Learner"), select);
  }
  for (const [name, label, kind, , low, high] of [...(room().settings ?? []), ...(room().learners?.[mine.learner] ?? [])]) {
    const turned = (given) => { mine[name] = given; refresh(); };
    if (kind === "flag") {
      const box = html("input", { type: "checkbox", id: `s-${name}` });
      box.checked = mine[name];
      box.addEventListener("change", () => turned(box.checked));
      parent.append(html("label", {}, box, label));
    } else if (kind === "step") parent.append(...walk(mine));
    else parent.append(slider(`s-${name}`, label, kind, mine[name], low, high, turned));
  }
}

// The steps of the perceptron: back, forward, to the next mistake.
function walk(mine) {
  const count = () => state.answer?.visits?.mistake.length ?? 0, now = () => (mine.step < 0 ? count() : mine.step);
  const go = (step) => { mine.step = Math.min(Math.max(step, 0), count()); refresh(); };
  const next = () => { const found = state.answer.visits.mistake.findIndex((m, i) => m && i >= now()); go(found < 0 ? count() : found + 1); };
  const button = (id, text, act) => { const made = html("button", { type: "button", id }, text); made.addEventListener("click", act); return made; };
  return [html("label", {}, "Visits"), html("div", { class: "row" }, button("start", "start", () => go(0)), button("back", "back", () => go(now() - 1)),
    button("forward", "step", () => go(now() + 1)), button("mistake", "next mistake", next), button("end", "end", () => go(count())))];
}

// --- rooms and controls ---------------------------------------------------------------------------------

async function enter(name) {
  if (state.room !== name) { kernels[state.room] = state.kernel; state.kernel = kernels[name] ?? (ROOMS[name].points ? "gaussian(sigma=1)" : state.kernel); }
  Object.assign(state, { room: name, answer: null, chosen: null, certificate: null, asks: null, parameters: {} });
  values[name] ??= { ...(ROOMS[name].learners ? { learner: Object.keys(ROOMS[name].learners)[0] } : {}),
    ...Object.fromEntries([...(ROOMS[name].settings ?? []), ...Object.values(ROOMS[name].learners ?? {}).flat()].map((s) => [s[0], s[3]])) };
  for (const tab of at("rooms").children) {
    tab.setAttribute("aria-selected", String(tab.dataset.room === name));
    tab.tabIndex = tab.dataset.room === name ? 0 : -1;
  }
  history.replaceState(null, "", `#${name}`);
  at("lead").textContent = room().lead;
  at("kernel").value = state.kernel;
  at("points").hidden = at("edit").hidden = at("hint").hidden = !room().points;
  at("classes").hidden = room().points === "curve";
  at("hint").innerHTML = PLANE_KEYS + (room().points === "curve" ? "." : ", <kbd>F</kbd> flips its class.");
  for (const id of ["facts", "notes", "certificate", "second", "figures", "sliders", "status"]) at(id).replaceChildren();
  delete at("sliders").dataset.names;
  at("example").replaceChildren(...(room().examples ?? []).map((example) => html("option", {}, example)));
  showSettings();
  const own = drawn[name] ?? room().examples?.[0];
  if (own) at("example").value = own;
  if (room().points && (!set().points.length || (set().example && set().example !== own))) await drawExample(own);
  else { drawPlane(); await refresh(); }
}

function take(points, example = null) {
  Object.assign(set(), { points, example });
  const span = (k, least) => { const found = points.map((p) => p[k]); return [Math.min(-least, ...found), Math.max(least, ...found)]; };
  const isCurve = room().points === "curve", far = points.some((p) => Math.abs(p[0]) > 3 || Math.abs(p[1]) > (isCurve ? 2 : 3));
  const tight = (k) => { const found = points.map((p) => p[k]), low = Math.min(...found), high = Math.max(...found), room_ = 0.08 * (high - low || 1); return [low - room_, high + room_]; };
  set().box = far ? [...tight(0), ...tight(1)] : [...span(0, 3), ...span(1, isCurve ? 2 : 3)];
  state.chosen = null;
  changed();
}

async function drawExample(name) {
  busy(true);
  const asked = state.room;
  drawn[asked] = name;
  try {
    const { points } = await ask("example", { name, number: +at("number").value });
    if (asked === state.room) take(points, name);
  } catch (error) { refuse(error.message); busy(false); }
}

let typing = 0;
at("kernel").addEventListener("input", () => {
  clearTimeout(typing);
  busy(true);
  typing = setTimeout(() => { state.kernel = at("kernel").value; state.parameters = {}; refresh(); }, 250);
});
at("menu").append(html("option", { value: "" }, "choose…"), ...KERNELS.map((text) => html("option", {}, text)));
at("menu").addEventListener("change", () => {
  if (!at("menu").value) return;
  state.kernel = at("kernel").value = at("menu").value;
  state.parameters = {};
  at("menu").value = "";
  refresh();
});
at("draw").addEventListener("click", () => drawExample(at("example").value));
at("clear").addEventListener("click", () => { set().points = []; state.chosen = null; state.answer = null; drawPlane(); refresh(); });
at("flip").addEventListener("click", () => plane.told.flipped(state.chosen));
at("remove").addEventListener("click", () => plane.told.removed(state.chosen));
at("load").addEventListener("click", () => at("file").click());
at("file").addEventListener("change", async () => {
  const [file] = at("file").files;
  at("file").value = "";
  if (!file) return;
  busy(true);
  try { take((await ask("table", { text: await file.text(), room: state.room })).points); } catch (error) { refuse(error.message); busy(false); }
});

const pictures = () => [...document.querySelectorAll("#plane svg, #second svg")];
at("png").addEventListener("click", async () => save(`${state.room}.png`, await asPng(pictures())));
at("svg").addEventListener("click", () => save(`${state.room}.svg`, asSvg(pictures()).text, "image/svg+xml"));
at("python").addEventListener("click", () => save(`${state.room}.py`, state.answer?.code ?? "", "text/x-python"));
at("copy").addEventListener("click", async () => {
  const code = at("code");
  code.open = true;
  getSelection().selectAllChildren(code.querySelector("pre"));
  try { await navigator.clipboard.writeText(state.answer?.code ?? ""); at("status").textContent = "The code is copied."; } catch { at("status").textContent = "The code is marked: copy it with Ctrl-C."; }
});

at("rooms").addEventListener("click", (event) => { if (event.target.dataset.room) enter(event.target.dataset.room); });
at("rooms").addEventListener("keydown", (event) => {
  const tabs = [...at("rooms").children], step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  enter(next.dataset.room);
});
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; if (state.answer) show(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (state.answer) show(); });
enter(location.hash.slice(1) in ROOMS ? location.hash.slice(1) : "classify");
