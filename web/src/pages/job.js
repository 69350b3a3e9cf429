// SPDX-License-Identifier: Apache-2.0
import { useData } from "../data.js";
import { html } from "../dom.js";
import { PageHead } from "../parts/card.js";
import { Loaded } from "../parts/states.js";

export function Job({ params }) {
    const detail = useData("/api/v1/jobs/" + encodeURIComponent(params.ref), { on: ["job", "event"] });
    return html`<${Loaded} of=${detail}>${(d) => html`<${PageHead} title=${"Job " + d.job.ref} note=${d.job.name} />`}</${Loaded}>`;
}
