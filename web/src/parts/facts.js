// SPDX-License-Identifier: Apache-2.0
// A list of names and values.
import { html } from "../dom.js";

/** @param rows [[name, value]]; rows with an empty value are left out */
export function Facts({ rows }) {
    const shown = rows.filter(
        ([, value]) => value !== null && value !== undefined && value !== "" && value !== false,
    );
    return html`<dl class="facts">${shown.map(
        ([name, value]) => html`<div key=${name}>
        <dt>${name}</dt><dd>${value}</dd></div>`,
    )}</dl>`;
}
