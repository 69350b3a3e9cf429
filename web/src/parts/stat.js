// SPDX-License-Identifier: Apache-2.0
// A figure with its name, and a bar of a whole and its parts.
import { html } from "../dom.js";
import { percent } from "../format.js";

export function Stats({ children }) {
    return html`<dl class="stats">${children}</dl>`;
}

/** @param note what the figure is compared with, in a line below */
export function Stat({ name, value, note, href }) {
    return html`<div class="stat"><dt>${name}</dt>
        <dd>${href ? html`<a href=${href}>${value}</a>` : value}</dd>
        ${note && html`<dd class="stat-note">${note}</dd>`}</div>`;
}

/** @param name says what the bar measures, for readers of the screen */
export function Meter({ name, used, total, tone }) {
    const part = total > 0 ? Math.min(1, used / total) : 0;
    const width = { width: (100 * part).toFixed(1) + "%" };
    return html`<span class="meter" role="img" aria-label=${name + ": " + percent(part)}>
        <span class="meter-bar meter-${tone || "plain"}" style=${width}></span></span>`;
}
