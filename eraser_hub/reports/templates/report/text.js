"use strict";
// Helpers. Every text reaches the page through textContent; nothing is ever parsed as markup.
document.documentElement.dataset.script = "yes";
const byId = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const visible = (text) => text.replace(STEERING, (c) => {
  const code = c.codePointAt(0);
  return code < 32 ? String.fromCharCode(0x2400 + code) : "<U+" + code.toString(16).toUpperCase().padStart(4, "0") + ">";
});
const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(3).replace(/^-(0\.0+)$/, "$1"));
const lost = (value) => value === null || value === undefined;
const option = (select, value, text) => {
  const node = make("option", "", text);
  node.value = value;
  select.append(node);
};
const swatch = (system) => {
  const node = byId("swatches").children[system];
  return node ? node.cloneNode(true) : "";
};
// JSON in gzip in base64
async function unpack(id) {
  const packed = atob(byId(id).textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i += 1) bytes[i] = packed.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

