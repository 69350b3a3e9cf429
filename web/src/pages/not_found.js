// SPDX-License-Identifier: Apache-2.0
import { html } from "../dom.js";
import { PageHead } from "../parts/card.js";

export function NotFound() {
    return html`<${PageHead} title="There is no such page" />
        <p>The link may be of another version of belay. <a href="/">Go to the overview</a>.</p>`;
}
