// Tables as CSV, LaTeX and Markdown; figures as SVG and PNG. A star is the verdict `better`, here as in the page.
function save(name, type, content) {
  const link = make("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
// lines of [text, small print, is better]
function read(table) {
  return [...table.rows].map((row) => [...row.cells].map((cell) => {
    const small = cell.querySelector("small"), whole = cell.textContent, print = small ? small.textContent : "";
    const text = (small ? whole.slice(0, whole.lastIndexOf(print)) : whole).trim();
    return [text.replace(/^★\s*|\u00ad/g, ""), print.trim(), text.startsWith("★")];
  }));
}
const FORMATS = {
  CSV: ["csv", "text/csv", (lines) => {
    const quoted = (text) => '"' + (/^[=+@\t-]/.test(text) && !/^[+-]?[\d.]+$/.test(text) ? "'" : "") + text.replace(/"/g, '""') + '"';
    const smalls = lines[0].map((_, k) => lines.some((line) => line[k] && line[k][1]));
    return lines.map((line, at) => line.flatMap(([text, small], k) => {
      const own = [quoted(text)];
      if (smalls[k]) own.push(quoted(at ? small : text + ", small print"));
      return own;
    }).join(",")).join("\r\n") + "\r\n";
  }],
  LaTeX: ["tex", "application/x-tex", (lines) => {
    const signs = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "↑": "$\\uparrow$", "↓": "$\\downarrow$", "–": "--", "∞": "$\\infty$", "·": "$\\cdot$", "±": "$\\pm$", "<": "$<$", ">": "$>$", "−": "$-$", "\u00a0": "~", "τ": "$\\tau$", "κ": "$\\kappa$", "α": "$\\alpha$" };
    const escaped = (text) => text.replace(/[\\~^↑↓–∞·±<>−τκα\u00a0]|[&%$#_{}]/g, (c) => signs[c] || "\\" + c);
    const cell = ([text, small, better]) => (better ? "\\textbf{" + escaped(text) + "}$^{*}$" : escaped(text)) + (small ? " {\\scriptsize " + escaped(small) + "}" : "");
    const body = lines.map((line) => line.map(cell).join(" & ") + " \\\\");
    body.splice(1, 0, "\\midrule");
    return ["\\begin{tabular}{l" + "r".repeat(lines[0].length - 1) + "}", "\\toprule", ...body, "\\bottomrule", "\\end{tabular}", ""].join("\n");
  }],
  Markdown: ["md", "text/markdown", (lines) => {
    const escaped = (text) => text.replace(/[\\|*_`<\[\]]/g, "\\$&");
    const cell = ([text, small, better]) => (better ? "**" + escaped(text) + "**" : escaped(text)) + (small ? " " + escaped(small) : "");
    const body = lines.map((line) => "| " + line.map(cell).join(" | ") + " |");
    body.splice(1, 0, "| --- |" + " ---: |".repeat(lines[0].length - 1));
    return body.join("\n") + "\n";
  }],
};
const MARGIN = 10; // around a saved figure
// in dark ink whatever the page's theme: the file has no ground of its own, and goes onto paper
function drawable(svg) {
  const copy = svg.cloneNode(true), { x, y, width, height } = svg.viewBox.baseVal, sides = [width + 2 * MARGIN, height + 2 * MARGIN];
  copy.setAttribute("xmlns", svg.namespaceURI);
  copy.setAttribute("color", "#1c1c1c");
  copy.setAttribute("viewBox", [x - MARGIN, y - MARGIN, ...sides].join(" "));
  copy.setAttribute("width", sides[0]);
  copy.setAttribute("height", sides[1]);
  return new XMLSerializer().serializeToString(copy);
}
// drawn shape by shape: the page's policy loads no image, not even its own
function paintCanvas(svg, scale) {
  const canvas = make("canvas"), box = svg.viewBox.baseVal, context = canvas.getContext("2d");
  canvas.width = (box.width + 2 * MARGIN) * scale;
  canvas.height = (box.height + 2 * MARGIN) * scale;
  context.scale(scale, scale);
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.translate(MARGIN, MARGIN);
  const value = (node, name) => Number(node.getAttribute(name) || 0);
  for (const node of svg.querySelectorAll("path, rect, circle, text")) {
    const style = getComputedStyle(node);
    context.save();
    const turn = node.transform.baseVal.consolidate();
    if (turn) context.transform(turn.matrix.a, turn.matrix.b, turn.matrix.c, turn.matrix.d, turn.matrix.e, turn.matrix.f);
    context.fillStyle = style.fill;
    if (node.tagName === "text") {
      context.font = style.fontWeight + " " + style.fontSize + " " + style.fontFamily;
      context.textAlign = { middle: "center", end: "right" }[style.textAnchor] || "left";
      context.fillText(node.textContent, value(node, "x"), value(node, "y"));
    } else {
      const path = node.tagName === "path" ? new Path2D(node.getAttribute("d")) : new Path2D();
      if (node.tagName === "rect") path.rect(value(node, "x"), value(node, "y"), value(node, "width"), value(node, "height"));
      if (node.tagName === "circle") path.arc(value(node, "cx"), value(node, "cy"), value(node, "r"), 0, 2 * Math.PI);
      context.globalAlpha = Number(style.fillOpacity);
      if (style.fill !== "none" && style.fill !== "rgba(0, 0, 0, 0)") context.fill(path);
      context.globalAlpha = Number(style.strokeOpacity);
      context.setLineDash((node.getAttribute("stroke-dasharray") || "").split(" ").filter(Boolean).map(Number));
      context.strokeStyle = style.stroke;
      context.lineWidth = parseFloat(style.strokeWidth);
      if (style.stroke !== "none") context.stroke(path);
    }
    context.restore();
  }
  return canvas;
}
function makeBar(buttons) {
  const node = make("div", "saving");
  for (const [text, label, act] of buttons) {
    const button = make("button", "", text);
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    node.append(button);
  }
  return node;
}
function saveFigure(svg, name) {
  return makeBar([
    ["SVG", "Save the figure as SVG: " + svg.getAttribute("aria-label"), () => save(name + ".svg", "image/svg+xml", drawable(svg))],
    ["PNG", "Save the figure as PNG: " + svg.getAttribute("aria-label"), () => paintCanvas(svg, 3).toBlob((blob) => save(name + ".png", "image/png", blob))],
  ]);
}
function addSaving() {
  for (const table of document.querySelectorAll("main .scroll > table")) {
    const what = table.caption ? table.caption.textContent : table.parentNode.getAttribute("aria-label"), name = table.id || "table";
    table.parentNode.after(makeBar(Object.entries(FORMATS).map(([format, [suffix, type, write]]) => [format, "Save the table as " + format + ": " + what, () => save(name + "." + suffix, type, write(read(table)))])));
  }
  for (const svg of document.querySelectorAll("figure > svg, .panel > svg")) {
    const name = svg.parentNode.id || svg.getAttribute("aria-label").replace(/\W+/g, "_").toLowerCase();
    svg.after(saveFigure(svg, name));
  }
}

