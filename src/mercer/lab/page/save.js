// What is on screen as a file: the pictures of a room side by side, with their colours written into them.

const PAINTED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-size", "font-family", "text-anchor"];

function painted(svg) {
  const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of PAINTED) if (element.tagName !== "image") to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  return copy;
}

export function asSvg(pictures) {
  const outer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  let width = 0, height = 0;
  const paper = document.createElementNS(outer.namespaceURI, "rect");
  outer.append(paper);
  for (const svg of pictures) {
    const copy = painted(svg), [, , w, h] = svg.getAttribute("viewBox").split(" ").map(Number);
    for (const [name, value] of Object.entries({ x: width, y: 0, width: w, height: h })) copy.setAttribute(name, value);
    copy.removeAttribute("style");
    outer.append(copy);
    width += w;
    height = Math.max(height, h);
  }
  for (const made of [outer, paper]) { made.setAttribute("width", width); made.setAttribute("height", height); }
  outer.setAttribute("viewBox", `0 0 ${width} ${height}`);
  outer.setAttribute("xmlns", outer.namespaceURI);
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  return { text: new XMLSerializer().serializeToString(outer), width, height };
}

export async function asPng(pictures) {
  const { text, width, height } = asSvg(pictures), image = new Image(), canvas = document.createElement("canvas");
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  await image.decode();
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function save(name, content, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
