// SPDX-License-Identifier: Apache-2.0
// Racks: power against the limit, heat, and what runs where.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, percent, plural } from "../format.js";
import { Card, PageHead } from "../parts/card.js";
import { PowerBar, RackTiles, drawOf, powerText } from "../parts/rack.js";
import { Empty, Loaded } from "../parts/states.js";
import { Stat, Stats } from "../parts/stat.js";

export function Racks() {
    const racks = useData("/api/v1/racks", { on: ["node", "summary"] });
    const nodes = useData("/api/v1/nodes", { on: ["node", "summary"] });
    return html`<${PageHead} title="Racks" note="Power and heat of your own machines" />
        <${Loaded} of=${racks}>${({ racks: list }) =>
            list.length === 0
                ? html`<${Empty} title="No racks">belayd's configuration has no
                section <code>racks</code>: it names
                the nodes of a rack and its power limit, and belay keeps jobs within it.</${Empty}>`
                : html`<${Loaded} of=${nodes}>${(d) =>
                      html`<${Figures} racks=${list} nodes=${d.nodes} />
                <${Legend} /><div class="columns">${list.map(
                    (r) =>
                        html`<${Rack} key=${r.name} rack=${r}
                    nodes=${d.nodes.filter((n) => n.rack === r.name)} />`,
                )}</div>`}</${Loaded}>`}</${Loaded}>`;
}

function Figures({ racks, nodes }) {
    const sum = (name) => racks.reduce((total, r) => total + r[name], 0);
    const hot = nodes.filter((n) => n.rack && n.throttled !== "none").length;
    return html`<${Stats}>
        <${Stat} name="Racks" value=${count(racks.length)}
            note=${plural(sum("joined"), "node") + " joined"} />
        <${Stat} name="Power" value=${count(sum("watts")) + " W"}
            note=${
                percent(sum("watts") / sum("max_watts")) + " of " + count(sum("max_watts")) + " W"
            } />
        <${Stat} name="Throttled" value=${plural(hot, "node")} />
    </${Stats}>`;
}

const LEGEND = [
    ["power-idle", "without load"],
    ["power-jobs", "of jobs"],
    ["power-measured", "measured beyond that"],
];

function Legend() {
    return html`<ul class="legend">${LEGEND.map(
        ([mark, text]) => html`<li key=${mark}>
        <span class=${"legend-key " + mark}></span>${text}</li>`,
    )}</ul>`;
}

function Rack({ rack, nodes }) {
    const left = drawOf(rack).left,
        hot = nodes.filter((n) => n.throttled !== "none").length;
    return html`<${Card} title=${"Rack " + rack.name} more=${html`<span>${powerText(rack)}</span>`}>
        <${PowerBar} rack=${rack} />
        ${
            rack.watts > rack.max_watts &&
            html`<p class="notice notice-bad">
            The rack draws more than its limit; no job starts there until it draws less.</p>`
        }
        ${
            hot > 0 &&
            html`<p class="notice notice-warn">${plural(hot, "node")} with throttled GPUs:
            no job starts there until that is over.</p>`
        }
        <p class="hint">${count(left)} W left for further jobs${
            rack.measured_watts > 0 &&
            `; ${count(rack.measured_watts)} W more were measured than its jobs should draw`
        }${
            rack.pue !== null &&
            `; ${count(Math.round(rack.watts * rack.pue))} W at the site's meter (PUE ${rack.pue})`
        }.</p>
        <${RackTiles} rack=${rack} nodes=${nodes} /></${Card}>`;
}
