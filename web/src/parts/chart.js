// SPDX-License-Identifier: Apache-2.0
// Charts over time by uPlot, in the page's colours, with the same data as a table below them.
import uPlot from "uplot";
import { html, useEffect, useRef, useState } from "../dom.js";
import { absolute, axisTimes } from "../format.js";

const SERIES_COLOURS = 6; // --series-1 ... of tokens.css

/** What a colour of tokens.css is now, in light or dark. */
export function colour(name) {
    const probe = document.createElement("span");
    probe.style.color = "var(" + name + ")";
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
}

/**
 * @param name of the chart, for readers of the screen and the table
 * @param times ms since 1970, ascending
 * @param series [{name, values, colour: of tokens.css (may be left out), band: index of the series
 *   to which the space is filled}]; null in values is a gap
 * @param format value => text, with its unit
 * @param kind "line", "step" or "bars"; bars stand on each other
 * @param range [from ms, to ms] of the time axis; may be left out
 * @param marks [{at: ms, name}] vertical lines
 */
export function Chart({
    name,
    times,
    series,
    format,
    kind = "line",
    range,
    marks = [],
    height = 220,
}) {
    const box = useRef(null),
        [open, setOpen] = useState(false); // the table, which may have hundreds of rows
    useEffect(() => {
        let plot = null;
        const draw = () => {
            if (plot) plot.destroy();
            const width = Math.max(200, box.current.clientWidth);
            const o = options({ series, format, kind, range, marks, width, height });
            plot = new uPlot(
                o,
                [times.map((t) => t / 1000), ...columns(series, kind)],
                box.current,
            );
        };
        draw();
        const dark = matchMedia("(prefers-color-scheme: dark)");
        const resized = new ResizeObserver(() => {
            if (!box.current) return; // removed from the page, and not cleaned up yet
            const width = Math.max(200, box.current.clientWidth);
            if (width !== plot.width) plot.setSize({ width, height });
        });
        resized.observe(box.current);
        dark.addEventListener("change", draw);
        addEventListener("themechange", draw);
        return () => {
            resized.disconnect();
            dark.removeEventListener("change", draw);
            removeEventListener("themechange", draw);
            plot.destroy();
        };
    }, [times, series, kind, height, range && range.join(), marks.length]);
    return html`<figure class="chart">
        <div class="chart-plot" ref=${box} role="img"
            aria-label=${name + ", as a chart; the table below has the same"}></div>
        <${Legend} series=${series} />
        <details onToggle=${(e) => setOpen(e.target.open)}><summary>As a table</summary>
            ${
                open &&
                html`<${DataTable} name=${name} times=${times} series=${series}
                format=${format} />`
            }</details>
    </figure>`;
}

function colourOf(series, i) {
    return series.colour || "--series-" + (1 + (i % SERIES_COLOURS));
}

function Legend({ series }) {
    if (series.length < 2) return null;
    return html`<ul class="legend">${series
        .filter((s) => s.name)
        .map(
            (s, i) => html`<li key=${s.name}>
        <span class="legend-key" style=${{
            background: "var(" + colourOf(s, i) + ")",
        }}></span>${s.name}</li>`,
        )}</ul>`;
}

function DataTable({ name, times, series, format }) {
    const named = series.filter((s) => s.name);
    return html`<div class="table-box table-data" tabindex="0" role="region"
        aria-label=${name}><table class="table">
        <caption class="sr-only">${name}</caption>
        <thead><tr><th scope="col">Time</th>${named.map(
            (s) => html`<th scope="col" class="number">${s.name}</th>`,
        )}</tr></thead>
        <tbody>${times.map(
            (t, i) => html`<tr><th scope="row">${absolute(t)}</th>
            ${named.map((s) => html`<td class="number">${format(s.values[i])}</td>`)}</tr>`,
        )}</tbody></table></div>`;
}

/** Values as they are drawn: bars of the later series stand on those before them. */
export function columns(series, kind) {
    if (kind !== "bars") return series.map((s) => s.values);
    const below = series.length ? series[0].values.map(() => 0) : [];
    const sums = series.map((s) => s.values.map((v, i) => (below[i] += v || 0)));
    return sums.reverse(); // the highest is drawn first, the others over it
}

/** Of a time axis, in s: uPlot shows years around a single moment. */
export function timeRange(u, min, max) {
    return min === max && min !== null ? [min - 60, max + 60] : [min, max];
}

/** Labels of an axis, without those that repeat the one before: ticks finer than the format. */
export function distinct(labels) {
    return labels.map((label, i) => (label === labels[i - 1] ? "" : label));
}

/** Of the axis of values, in px: its longest label, a tick and a gap. */
function labelsWidth(u, labels) {
    u.ctx.font = 12 * devicePixelRatio + "px system-ui";
    const widths = (labels || []).map((l) => u.ctx.measureText(l).width / devicePixelRatio);
    return Math.ceil(Math.max(72, ...widths.map((w) => w + 18)));
}

function options({ series, format, kind, range, marks, width, height }) {
    const text = colour("--quiet"),
        line = colour("--line");
    const axis = {
        stroke: text,
        grid: { stroke: line, width: 1 },
        ticks: { stroke: line, width: 1 },
        font: "12px system-ui",
    };
    const drawn = series.map((s, i) => ({ s, stroke: colour(colourOf(s, i)) }));
    if (kind === "bars") drawn.reverse();
    const paths = {
        line: undefined,
        step: uPlot.paths.stepped({ align: 1 }),
        bars: uPlot.paths.bars({ size: [0.7, 60] }),
    }[kind];
    return {
        width,
        height,
        legend: { show: false },
        padding: [null, 24, null, null], // half of the last label
        cursor: { drag: { x: false, y: false } },
        scales: {
            x: { range: range ? [range[0] / 1000, range[1] / 1000] : timeRange },
            y: { range: (u, min, max) => [Math.min(0, min), max > 0 ? max * 1.08 : 1] },
        },
        axes: [
            {
                ...axis,
                space: 70,
                values: (u, ticks, i, space, step) =>
                    axisTimes(
                        ticks.map((t) => 1000 * t),
                        1000 * step,
                    ),
            },
            {
                ...axis,
                size: labelsWidth,
                values: (u, ticks) => distinct(ticks.map((v) => format(v))),
            },
        ],
        series: [
            {},
            ...drawn.map(({ s, stroke }) => ({
                stroke,
                fill: kind === "bars" ? stroke : undefined,
                width: kind === "bars" ? 0 : 2,
                dash: s.dash,
                paths: s.dash ? undefined : paths,
                points: {
                    show: kind === "step" || (kind === "line" && s.values.length < 60 && !s.dash),
                    filter: kind === "step" ? lastPoint : undefined,
                    size: 5,
                    fill: stroke,
                },
            })),
        ],
        bands: series.flatMap((s, i) =>
            s.band === undefined
                ? []
                : [{ series: [i + 1, s.band + 1], fill: colour("--plain-ground") }],
        ),
        hooks: { draw: [(u) => drawMarks(u, marks)] },
    };
}

/** Of a step line: its last value, which may have lasted for less than a pixel. */
function lastPoint(u, i) {
    return [u.data[i].length - 1];
}

function drawMarks(u, marks) {
    const ctx = u.ctx,
        ratio = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--bad");
    ctx.font = 12 * ratio + "px system-ui";
    for (const { at, name } of marks) {
        const x = u.valToPos(at / 1000, "x", true);
        ctx.beginPath();
        ctx.moveTo(x, u.bbox.top);
        ctx.lineTo(x, u.bbox.top + u.bbox.height);
        ctx.stroke();
        const size = ctx.measureText(name).width,
            isRight = x + size + 8 * ratio > u.bbox.left + u.bbox.width;
        ctx.fillText(name, isRight ? x - size - 4 * ratio : x + 4 * ratio, u.bbox.top + 12 * ratio);
    }
    ctx.restore();
}
