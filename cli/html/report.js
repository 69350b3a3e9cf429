"use strict";
/* What draws the plots of a report. Everything else is in the page already. */
const shown = JSON.parse(document.getElementById("data").textContent);
/* A colour of the style sheet, as it is now: light or dark. */
function color(name) {
    const probe = document.createElement("span");
    probe.style.color = "var(--" + name + ")";
    document.body.appendChild(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
}
const series = ["series-1", "series-2", "series-3", "series-4", "series-5", "series-6"];
const drawn = [];
/* Draws at html_plot(id). names: of the style sheet's colours; titles of both axes are required. */
function plot(id, rows, labels, names, axes, options) {
    const place = document.getElementById("plot-" + id);
    const legend = document.createElement("div"),
        area = document.createElement("div");
    legend.className = "legend";
    area.className = "plot";
    place.appendChild(legend);
    place.appendChild(area);
    const paint = () => ({
        colors: names.map(color),
        gridLineColor: color("line"),
        axisLineColor: color("line-strong"),
    });
    const dashed = {};
    names.forEach((name, i) => {
        if (i >= series.length) dashed[labels[i + 1]] = { strokePattern: [6, 4] };
    });
    const graph = new Dygraph(
        area,
        rows,
        Object.assign(
            {
                labels: labels,
                labelsDiv: legend,
                legend: "always",
                labelsUTC: true,
                includeZero: true,
                strokeWidth: 1.6,
                labelsSeparateLines: false,
                xlabel: axes[0],
                ylabel: axes[1],
                xLabelHeight: 16,
                yLabelWidth: 16,
            },
            paint(),
            options,
            { series: Object.assign(dashed, options.series) },
        ),
    );
    drawn.push({
        paint: () => graph.updateOptions(paint()),
        resize: (...size) => graph.resize(...size),
    });
}
const cycle = (n) => Array.from({ length: n }, (_, i) => series[i % series.length]);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    drawn.forEach((d) => d.paint()),
);
/* A canvas keeps its size, and paper is narrower than most screens. */
addEventListener("beforeprint", () => drawn.forEach((d) => d.resize(640, 220)));
addEventListener("afterprint", () => drawn.forEach((d) => d.resize()));
const hint = document.createElement("p");
hint.className = "hint drawn";
hint.textContent = "Drag across a plot to look closer, double-click for all of it again.";
document.querySelector("h1").after(hint);
