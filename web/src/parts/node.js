// SPDX-License-Identifier: Apache-2.0
// A node in a list and in a rack: its state, what is wrong with it, and how full it is.
import { html } from "../dom.js";
import { count, duration, mebibytes, rate } from "../format.js";
import { Badge } from "./badge.js";
import { Choice } from "./fields.js";
import { Meter } from "./stat.js";
import { Ago } from "./time.js";

const SILENT_MS = 10000; // an agent calls each few seconds
const THROTTLED = {
    heat: "its GPUs are too hot",
    power: "its GPUs lack power",
    board: "its board slows its GPUs down",
};

/** @param node with id and name */
export function NodeLink({ node }) {
    return html`<a href=${"/console/nodes/" + node.id}>${node.name}</a>`;
}

export function PoolLink({ pool }) {
    return html`<a href=${"/console/pools/" + encodeURIComponent(pool)}>${pool}</a>`;
}

/** A filter by pool: those of these rows. */
export function PoolChoice({ rows, pool }) {
    const pools = [...new Set(rows.map((row) => row.pool))].sort();
    return html`<${Choice} name="pool" label="Pool" value=${pool}
        options=${[["", "all"], ...pools.map((p) => [p, p])]} />`;
}

export function NodeState({ node }) {
    const draining = node.drain && node.state === "up";
    return html`<${Badge} word=${draining ? "draining" : node.state}
        tone=${
            !draining && node.state === "up" && nodeTroubles(node).length > 0 ? "warn" : undefined
        } />`;
}

/** What is wrong with a node, or will be: texts, the most urgent first. */
export function nodeTroubles(node) {
    if (node.gone_at) return [];
    return [
        node.notice && "notice of its provider: " + node.notice,
        node.silent_ms > SILENT_MS && "silent for " + duration(node.silent_ms),
        node.throttled !== "none" && "throttled: " + (THROTTLED[node.throttled] || node.throttled),
        node.disk === "full" && "disk full" + (node.disk_text ? ": " + node.disk_text : ""),
        node.fault && "fault: " + node.fault,
        node.drain && "drained: " + (node.drain_text || "by an operator"),
    ].filter(Boolean);
}

/** How much of one thing is in use; null where it is not known. */
export function usedOf(total, free) {
    return free === null || free === undefined ? null : total - free;
}

/** A bar with "3 of 4" beside it. */
export function Share({ name, total, free, text = count }) {
    const used = usedOf(total, free);
    if (!total) return null;
    if (used === null) return text(total);
    return html`<span class="share"><${Meter} name=${name} used=${used} total=${total} />
        <span>${text(used)} of ${text(total)}</span></span>`;
}

/** The columns of every table of nodes. */
export const nodeColumns = [
    { name: "Node", size: 130, cell: (n) => html`<${NodeLink} node=${n} />` },
    { name: "State", size: 95, cell: (n) => html`<${NodeState} node=${n} />` },
    { name: "Pool", size: 100, cell: (n) => html`<${PoolLink} pool=${n.pool} />` },
    {
        name: "Price",
        size: 175,
        cell: (n) => (n.price_uusd_h ? rate(n.price_uusd_h) + " " : "") + n.market,
    },
    { name: "Jobs", size: 50, cell: (n) => count(n.jobs), number: true },
    {
        name: "CPUs",
        size: 130,
        cell: (n) => html`<${Share} name="CPUs" total=${n.cpus}
        free=${n.cpus_free} />`,
    },
    {
        name: "GPUs",
        size: 110,
        cell: (n) => html`<${Share} name="GPUs" total=${n.gpus}
        free=${n.gpus_free} />`,
    },
    {
        name: "Memory",
        size: 215,
        cell: (n) =>
            html`<${Share} name="Memory" total=${n.memory_mib} free=${n.memory_free_mib}
            text=${mebibytes} />`,
    },
    { name: "Notes", cell: (n) => html`<${Notes} node=${n} />`, wide: true },
];

function Notes({ node }) {
    if (node.gone_at) return html`gone <${Ago} at=${node.gone_at} />`;
    const texts = [
        ...nodeTroubles(node),
        node.reservation && "reserved: " + node.reservation,
    ].filter(Boolean);
    return html`<span class="clip" title=${texts.join("; ")}>${texts.join("; ")}</span>`;
}
