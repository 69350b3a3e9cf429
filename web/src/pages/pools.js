// SPDX-License-Identifier: Apache-2.0
// All pools: what they have, what they may have, what they keep.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, plural, rate } from "../format.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { PoolLink, Share } from "../parts/node.js";
import { baseLoadText } from "../parts/pool.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";

const columns = [
    { name: "Pool", cell: (p) => html`<${PoolLink} pool=${p.name} />`, wide: true },
    { name: "Kind", cell: (p) => [p.kind, p.provider, p.region].filter(Boolean).join(", ") },
    { name: "State", cell: (p) => html`<${State} pool=${p} />` },
    { name: "Jobs", cell: (p) => p.now && count(p.now.jobs), number: true },
    { name: "Nodes", cell: nodes, number: true },
    { name: "CPUs", cell: (p) => p.now && html`<${Share} name="CPUs" ...${free(p.now.cpus)} />` },
    { name: "GPUs", cell: (p) => p.now && html`<${Share} name="GPUs" ...${free(p.now.gpus)} />` },
    { name: "Keeps", cell: (p) => baseLoadText(p.base_load) },
    { name: "Cost", cell: (p) => p.now && rate(p.now.uusd_h), number: true },
    {
        name: "Limit",
        cell: (p) => p.max_uusd_per_hour !== null && rate(p.max_uusd_per_hour),
        number: true,
    },
];

function free({ total, used }) {
    return { total, free: total - used };
}

function nodes(p) {
    const now = p.now
        ? count(p.now.nodes.up) + (p.now.coming ? ` + ${p.now.coming} coming` : "")
        : "";
    return p.max_nodes === null ? now : `${now} of ${count(p.max_nodes)}`;
}

function State({ pool }) {
    if (pool.boots)
        return html`<${Badge} word=${plural(pool.boots.failed, "failed boot")} tone="bad" />`;
    if (isShut(pool.offers)) return html`<${Badge} word="no open offer" tone="warn" />`;
    return html`<${Badge} word="ok" tone="good" />`;
}

/** Whether no machine can be launched now, because each offer is avoided or withdrawn. */
export function isShut(offers) {
    return offers.length > 0 && offers.every((o) => o.withdrawn || o.avoided_until);
}

export function Pools() {
    const pools = useData("/api/v1/pools", { on: ["node", "instance", "pool"] });
    const offers = useData("/api/v1/offers", { on: ["pool"] });
    const summary = useData("/api/v1/summary", { on: ["summary"] });
    return html`<${PageHead} title="Pools" />
        <${Loaded} of=${pools}>${(d) => {
            const now = new Map(summary.data ? summary.data.pools.map((p) => [p.pool, p]) : []);
            const rows = d.pools.map((p) => ({
                ...p,
                now: now.get(p.name),
                offers: offers.data ? offers.data.offers.filter((o) => o.pool === p.name) : [],
            }));
            return html`<${Card} title="Pools"><${Table} caption="All pools" columns=${columns}
                rows=${rows}
                rowKey=${(p) => p.name} empty=${html`<${Empty}
                    title="No pools">belayd's configuration has none.
                    docs/how-to/pools-and-users.md says how to add one.</${Empty}>`} /></${Card}>`;
        }}</${Loaded}>`;
}
