// SPDX-License-Identifier: Apache-2.0
// Which rank of a job on several nodes is shown.
import { html } from "../dom.js";

export function RankChoice({ ranks, rank, choose }) {
    return html`<label>Rank <select onChange=${(e) => choose(Number(e.target.value))}>
        ${Array.from(
            { length: ranks },
            (_, i) => html`<option value=${i} selected=${i === rank}>${i}</option>`,
        )}</select></label>`;
}
