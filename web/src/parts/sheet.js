// SPDX-License-Identifier: Apache-2.0
import { html } from "../dom.js";

/** The ground of a page that is one table: a card without a title. */
export function Sheet({ children }) {
    return html`<div class="card"><div class="card-body">${children}</div></div>`;
}
