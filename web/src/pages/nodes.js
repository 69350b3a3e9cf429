// SPDX-License-Identifier: Apache-2.0
// All nodes: what they are, how full they are, what is wrong with them.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, rate } from "../format.js";
import { PageHead } from "../parts/card.js";
import { Choice, Field, Filters } from "../parts/fields.js";
import { PoolChoice, nodeColumns, nodeTroubles } from "../parts/node.js";
import { OlderButton, allRows, useOlder } from "../parts/older.js";
import { Empty, Loaded } from "../parts/states.js";
import { Stat, Stats } from "../parts/stat.js";
import { LongTable } from "../parts/table.js";

const PAGE = 1000; // rows of a page of belayd
const ROW_PX = 37; // of .table-long td in table.css
const SHOW = [
    ["live", "live"],
    ["troubled", "in trouble"],
    ["all", "also gone"],
];

export function Nodes({ query }) {
    const show = query.get("state") || "live",
        pool = query.get("pool") || "",
        name = query.get("name") || "";
    const path = "/api/v1/nodes?state=" + (show === "all" ? "all" : "live");
    const list = useData(path, { on: ["node", "summary"] });
    const older = useOlder(path, "nodes");
    return html`<${PageHead} title="Nodes" />
        <${Loaded} of=${list} lines=${8}>${(page) => {
            const nodes = allRows(older, page.nodes, PAGE);
            const shown = filtered(nodes, { show, pool, name });
            return html`<${Figures} nodes=${nodes.filter((n) => !n.gone_at)} />
                <${Filters}>
                    <${Choice} name="state" label="Show" value=${show} options=${SHOW} />
                    <${PoolChoice} rows=${nodes} pool=${pool} />
                    <${Field} name="name" label="Name" value=${name} type="search" />
                </${Filters}>
                ${
                    shown.length === 0
                        ? html`<${Nothing} any=${nodes.length > 0} />`
                        : html`<${LongTable} caption="Nodes" columns=${nodeColumns} rows=${shown}
                        rowKey=${(n) => n.id} rowHeight=${ROW_PX} />`
                }
                <${OlderButton} older=${older} page=${page} rows=${nodes} name="nodes" />`;
        }}</${Loaded}>`;
}

/** The nodes that the filter leaves. */
export function filtered(nodes, { show, pool, name }) {
    const part = name.toLowerCase();
    return nodes.filter(
        (n) =>
            (!pool || n.pool === pool) &&
            n.name.toLowerCase().includes(part) &&
            (show !== "troubled" || n.state !== "up" || nodeTroubles(n).length > 0),
    );
}

function Figures({ nodes }) {
    const sum = (fn) => nodes.reduce((total, n) => total + (fn(n) || 0), 0);
    const gpus = sum((n) => n.gpus),
        troubled = nodes.filter((n) => nodeTroubles(n).length > 0).length;
    return html`<${Stats}>
        <${Stat} name="Nodes" value=${count(nodes.length)}
            note=${count(nodes.filter((n) => n.jobs > 0).length) + " with jobs"} />
        <${Stat} name="In trouble" value=${count(troubled)} href="/console/nodes?state=troubled" />
        <${Stat} name="CPUs in use" value=${
            count(sum((n) => n.cpus - (n.cpus_free ?? n.cpus))) + " of " + count(sum((n) => n.cpus))
        } />
        ${
            gpus > 0 &&
            html`<${Stat} name="GPUs in use"
            value=${count(sum((n) => n.gpus - (n.gpus_free ?? n.gpus))) + " of " + count(gpus)} />`
        }
        <${Stat} name="Cost now" value=${rate(sum((n) => n.price_uusd_h))} />
        ${
            nodes.some((n) => n.watts !== null) &&
            html`<${Stat} name="Power" value=${count(sum((n) => n.watts)) + " W"}
                href="/console/racks" />`
        }
    </${Stats}>`;
}

function Nothing({ any }) {
    return any
        ? html`<${Empty} title="No node is like that">Remove a filter to see
        more.</${Empty}>`
        : html`<${Empty} title="No nodes yet">belayd launches the machines of elastic pools when
            jobs need them;
            a machine of your own joins with a token of <code>belay token create
                --join</code>.</${Empty}>`;
}
