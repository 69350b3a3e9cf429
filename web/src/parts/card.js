// SPDX-License-Identifier: Apache-2.0
import { html } from "../dom.js";

/** A titled part of a page. `more` stands at the right of the title: a link or a control. */
export function Card({ title, more, children }) {
    return html`<section class="card" aria-label=${title}>
        <header class="card-head"><h2>${title}</h2>${more}</header>
        <div class="card-body">${children}</div></section>`;
}

/** The title of a page, with its actions. */
export function PageHead({ title, note, children }) {
    return html`<header class="page-head"><div><h1>${title}</h1>${
        note && html`<p class="page-note">${note}</p>`
    }</div>
        ${children && html`<div class="page-actions">${children}</div>`}</header>`;
}
