"use strict";
const shown = JSON.parse(document.getElementById("data").textContent), main = document.querySelector("main");
const colors = ["#0b6bcb", "#d9822b", "#2a9d58", "#9b3fb5", "#c0392b", "#5a6875", "#7a6a00", "#008b8b"];
function add(parent, tag, text, kind) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (kind) e.className = kind;
  parent.appendChild(e);
  return e;
}
const money = (v, digits) => (v < 0 ? "-$" : "$") + (Math.abs(v) / 1e6).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const percent = v => v === null ? "-" : (100 * v).toFixed(1) + " %";
function time(ms) {
  const units = [[86400e3, "d"], [3600e3, "h"], [60e3, "m"], [1e3, "s"]];
  for (let i = 0; i < units.length; i++) {
    if (ms < units[i][0]) continue;
    const n = Math.floor(ms / units[i][0]), rest = i < 3 ? Math.floor(ms % units[i][0] / units[i + 1][0]) : 0;
    return n + units[i][1] + (rest ? " " + rest + units[i + 1][1] : "");
  }
  return Math.round(ms) + "ms";
}
/* A row is its cells, or {cells, sum: true}. */
function table(parent, heads, rows, kind) {
  const t = add(add(parent, "div", undefined, "wide"), "table", undefined, kind), head = add(t, "tr");
  for (const h of heads) add(head, "th", h);
  for (const r of rows) {
    const tr = add(t, "tr", undefined, r.sum ? "sum" : undefined);
    for (const cell of r.cells || r) add(tr, "td", cell);
  }
  return t;
}
function plot(parent, title, rows, labels, options) {
  add(parent, "h3", title);
  const legend = add(parent, "div", undefined, "legend");
  new Dygraph(add(parent, "div", undefined, "plot"), rows, Object.assign({
    labels: labels, labelsDiv: legend, legend: "always", labelsUTC: true, includeZero: true, strokeWidth: 1.6, labelsSeparateLines: false,
    colors: colors, gridLineColor: "#e6eaee", axisLineColor: "#98a4af"
  }, options));
}
