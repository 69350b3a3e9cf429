// SPDX-License-Identifier: Apache-2.0
// A rack as a drawing: its draw against its limit, and its nodes as tiles.
import { classes, html } from "../dom.js";
import { count, percent, plural } from "../format.js";
import { nodeTroubles } from "./node.js";

/** What the tile of a node shows, in one word. */
export function tileState(node) {
    if (node.throttled !== "none") return node.throttled;
    if (node.state !== "up" || nodeTroubles(node).length > 0)
        return node.state === "up" ? "trouble" : node.state;
    return node.jobs > 0 ? "busy" : "idle";
}

const TONES = {
    heat: "bad",
    power: "bad",
    board: "bad",
    lost: "bad",
    noticed: "warn",
    draining: "warn",
    trouble: "warn",
    busy: "busy",
    idle: "plain",
};

/** The parts of a rack's draw in watts: without load, by its jobs, measured beyond that. */
export function drawOf(rack) {
    const computed = rack.watts - rack.measured_watts;
    const idle = Math.min(rack.idle_watts, computed);
    return {
        idle,
        jobs: computed - idle,
        measured: rack.measured_watts,
        left: Math.max(0, rack.max_watts - rack.watts),
    };
}

export function PowerBar({ rack }) {
    const draw = drawOf(rack),
        whole = Math.max(rack.max_watts, rack.watts);
    const text =
        `${count(draw.idle)} W without load, ${count(draw.jobs)} W of jobs, ` +
        `${count(draw.measured)} W measured beyond that, ${count(draw.left)} W left`;
    const part = (name) =>
        draw[name] > 0 &&
        html`<span class=${"power-" + name} key=${name}
        style=${{ width: ((100 * draw[name]) / whole).toFixed(1) + "%" }}></span>`;
    return html`<div class="power" role="img" aria-label=${text} title=${text}>
        ${["idle", "jobs", "measured"].map(part)}</div>`;
}

export function RackTiles({ rack, nodes }) {
    const missing = Math.max(0, rack.nodes - nodes.length);
    return html`<ul class="rack" aria-label=${"Nodes of rack " + rack.name}>
        ${nodes.map((n) => html`<${Tile} key=${n.id} node=${n} />`)}
        ${
            missing > 0 &&
            html`<li class="tile-missing">${plural(missing, "node")} not
            joined</li>`
        }</ul>`;
}

function Tile({ node }) {
    const state = tileState(node);
    const more = [
        plural(node.jobs, "job"),
        node.watts !== null && count(node.watts) + " W",
        ...nodeTroubles(node),
    ];
    return html`<li><a class=${classes("tile", "tile-" + (TONES[state] || "warn"))}
        href=${"/console/nodes/" + node.id}
        title=${more.filter(Boolean).join("; ")}><b>${node.name}</b>
        <span>${state}${node.watts !== null && `, ${count(node.watts)} W`}</span></a></li>`;
}

/** "25,640 W of 40,000 W (64 %)" */
export function powerText(rack) {
    const part = rack.max_watts > 0 ? ` (${percent(rack.watts / rack.max_watts)})` : "";
    return `${count(rack.watts)} W of ${count(rack.max_watts)} W${part}`;
}
