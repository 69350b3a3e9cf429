// SPDX-License-Identifier: Apache-2.0
// A bar of the parts of a whole, with a legend that has the figures.
import { html } from "../dom.js";

/** @param parts [{name, value, tone, text}]; tone is a class part-TONE of parts_bar.css */
export function Parts({ name, parts }) {
    const total = parts.reduce((sum, p) => sum + Math.max(0, p.value), 0);
    const shown = parts.filter((p) => p.value > 0);
    const width = (p) => ({ width: ((100 * p.value) / total).toFixed(2) + "%" });
    return html`<div class="parts-bar">
        <div class="parts-line" role="img" aria-label=${
            name + ": " + parts.map((p) => p.name + " " + p.text).join(", ")
        }>
            ${shown.map(
                (p) => html`<span key=${p.name} class="part-${p.tone}" style=${width(p)}
                title=${p.name + ": " + p.text}></span>`,
            )}</div>
        <ul class="legend" aria-hidden="true">${parts.map(
            (p) => html`<li key=${p.name}>
            <span class="legend-key part-${p.tone}"></span>${p.name} <b>${p.text}</b></li>`,
        )}
        </ul></div>`;
}
