// SPDX-License-Identifier: Apache-2.0
// Stacked bars over time, as elements of the page: they follow its width, fonts and colours, and a
// table beside them says the same.
import { classes, html } from "../dom.js";

const SERIES_MAX = 6; // colours of tokens.css; what is beyond is shown together
const LABELS_MAX = 8;

/**
 * The largest series by their sum, and "others" for the rest.
 * @param points [{at, series, value}] @returns {ats, series: [{name, values, sum}]}
 */
export function stacked(ats, points) {
    const at = new Map(ats.map((a, i) => [a, i])),
        byName = new Map();
    for (const p of points) {
        if (!byName.has(p.series))
            byName.set(p.series, { name: p.series, values: ats.map(() => 0), sum: 0 });
        const one = byName.get(p.series);
        one.values[at.get(p.at)] += p.value;
        one.sum += p.value;
    }
    const all = [...byName.values()].sort((a, b) => b.sum - a.sum);
    if (all.length <= SERIES_MAX) return { ats, series: all };
    const rest = all.slice(SERIES_MAX - 1);
    const others = {
        name: rest.length + " others",
        isOthers: true,
        values: ats.map((_, i) => rest.reduce((sum, s) => sum + s.values[i], 0)),
        sum: rest.reduce((sum, s) => sum + s.sum, 0),
    };
    return { ats, series: [...all.slice(0, SERIES_MAX - 1), others] };
}

/** The least of 1, 2, 5, 10 ... that is not below the value. */
export function roundUp(value) {
    if (!(value > 0)) return 1;
    const size = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((n) => n * size).find((n) => n >= value * 0.999999);
}

function toneOf(series, i) {
    return series.isOthers ? "other" : i + 1;
}

/**
 * @param data of stacked()
 * @param label of a moment, as text; `format` of a value; `name` and `unit` say what is shown
 */
export function Bars({ name, unit, data, label, format }) {
    const totals = data.ats.map((_, i) => data.series.reduce((sum, s) => sum + s.values[i], 0));
    const top = roundUp(Math.max(...totals, 0));
    const every = Math.ceil(data.ats.length / LABELS_MAX);
    /* none where the window's edge would cut it off */
    const hasLabel = (i) => i % every === 0 && (i === 0 || data.ats.length - i > every / 2);
    const highest = totals.indexOf(Math.max(...totals));
    const summary =
        `${name}: ${data.ats.length} bars from ${label(data.ats[0])} to ` +
        `${label(data.ats[data.ats.length - 1])}, the highest ${format(totals[highest])} at ` +
        `${label(data.ats[highest])}; the table has the figures`;
    return html`<figure class="bars"><figcaption>${name}, ${unit}</figcaption>
        <div class="bars-plot">
            <div class="bars-axis" aria-hidden="true"><span>${format(top)}</span>
                <span>${format(top / 2)}</span><span>${format(0)}</span></div>
            <div class="bars-area" role="img" aria-label=${summary}>
                ${data.ats.map(
                    (at, i) => html`<div class="bar" key=${at}>
                    <${Bar} data=${data} i=${i} top=${top} title=${label(at)} format=${format} />
                    <span class=${classes("bar-label", i % (4 * every) !== 0 && "bar-label-more")}>
                        ${hasLabel(i) ? label(at) : ""}</span></div>`,
                )}
            </div></div>
        <ul class="legend">${data.series.map(
            (s, i) => html`<li key=${s.name}>
            <span class="legend-key part-${toneOf(s, i)}"></span>${s.name} <b>${format(s.sum)}</b>
        </li>`,
        )}</ul></figure>`;
}

function Bar({ data, i, top, title, format }) {
    const shown = data.series.map((s, k) => ({ s, k })).filter(({ s }) => s.values[i] > 0);
    const text = ({ s }) => s.name + " " + format(s.values[i]);
    return html`<div class="bar-stack" title=${title + "\n" + shown.map(text).join("\n")}>
        ${shown.reverse().map(
            ({ s, k }) => html`<span key=${s.name} class="part-${toneOf(s, k)}"
            style=${{ height: ((100 * s.values[i]) / top).toFixed(2) + "%" }}></span>`,
        )}</div>`;
}
