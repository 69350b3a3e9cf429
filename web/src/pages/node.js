// SPDX-License-Identifier: Apache-2.0
// One node: its state and size, the jobs on it, its machine, its events.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, duration, mebibytes, rate } from "../format.js";
import { JobState } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { EventList } from "../parts/events.js";
import { Facts } from "../parts/facts.js";
import { instanceColumns } from "../parts/instance.js";
import { JobLink, JobName } from "../parts/job.js";
import { NodeState, PoolLink, Share, nodeTroubles } from "../parts/node.js";
import { NodeActions } from "../parts/node_actions.js";
import { Empty, Loaded } from "../parts/states.js";
import { onlyRow } from "../parts/older.js";
import { Stat, Stats } from "../parts/stat.js";
import { Table } from "../parts/table.js";
import { Ago, Lasted, Moment } from "../parts/time.js";

export function Node({ params }) {
    const live = useData("/api/v1/nodes", { on: ["node", "job"] });
    const isHere = (n) => String(n.id) === params.id || n.name === params.id;
    const here = live.data && live.data.nodes.find(isHere);
    const all = useData(live.data && !here ? "/api/v1/nodes?state=all" + onlyRow(params.id) : null);
    const of = here || !live.data ? live : all;
    const rows = of.data ? of.data.nodes.filter(isHere) : [];
    const node = rows[rows.length - 1];
    return html`<${PageHead} title=${"Node " + (node ? node.name : params.id)} note=${
        node && html`<${NodeState} node=${node} /> in pool <${PoolLink} pool=${node.pool} />`
    }>
            ${node && html`<${NodeActions} node=${node} done=${live.reload} />`}</${PageHead}>
        <${Loaded} of=${of}>${() =>
            node
                ? html`<${Shown} node=${node} />`
                : html`<${Empty} title="There is no such node">
                      It may have left so long ago that its row was deleted. All nodes are in
                      ${" "}<a href="/console/nodes">the list</a>.</${Empty}>`}
        </${Loaded}>`;
}

function Shown({ node }) {
    return html`${nodeTroubles(node).map(
        (text) => html`<p class="notice notice-warn"
            key=${text}>${text}</p>`,
    )}
        ${
            node.reservation &&
            html`<p class="notice">Reserved for maintenance,
            as <a href="/console/reservations">${node.reservation}</a>:
            ${" " + node.reservation_text}</p>`
        }
        <${Figures} node=${node} />
        ${!node.gone_at && html`<${Jobs} node=${node} />`}
        <div class="columns"><${About} node=${node} />${
            node.instance && html`<${Machine} node=${node} />`
        }</div>
        <${Events} node=${node} />`;
}

function Figures({ node: n }) {
    const row = (name, total, free, text) =>
        total > 0 &&
        html`<${Stat} name=${name}
        value=${html`<${Share} name=${name} total=${total} free=${free} text=${text} />`} />`;
    return html`<${Stats}>
        ${!n.gone_at && html`<${Stat} name="Jobs" value=${count(n.jobs)} />`}
        ${row("CPUs", n.cpus, n.cpus_free)} ${row("GPUs", n.gpus, n.gpus_free)}
        ${row("Memory", n.memory_mib, n.memory_free_mib, mebibytes)}
        ${Object.keys(n.resources).map((name) =>
            row(name, n.resources[name], n.resources_free && n.resources_free[name]),
        )}
        <${Stat} name="Used by jobs" value=${
            count(Math.round(n.usage.cpu_milli / 100) / 10) + " CPUs"
        }
            note=${mebibytes(n.usage.memory_bytes / 1048576)} />
        <${Stat} name="Price" value=${rate(n.price_uusd_h)} note=${n.market} />
        ${
            n.watts !== null &&
            html`<${Stat} name="Power" value=${count(n.watts) + " W"}
            note=${n.rack && "rack " + n.rack} href="/console/racks" />`
        }
    </${Stats}>`;
}

const jobColumns = [
    { name: "Job", cell: (j) => html`<${JobLink} job=${j} />` },
    { name: "Name", cell: (j) => html`<${JobName} job=${j} />`, wide: true },
    { name: "User", cell: (j) => j.user },
    { name: "State", cell: (j) => html`<${JobState} job=${j} />` },
    { name: "CPUs", cell: (j) => count(j.cpus), number: true },
    { name: "GPUs", cell: (j) => (j.gpus ? count(j.gpus) : ""), number: true },
    { name: "Memory", cell: (j) => (j.memory_mib ? mebibytes(j.memory_mib) : ""), number: true },
    { name: "Runs", cell: (j) => html`<${Lasted} from=${j.attempt_started_at} />`, number: true },
];

function Jobs({ node }) {
    const jobs = useData(`/api/v1/jobs?node=${node.id}&limit=200`, { on: ["job", "node"] });
    return html`<${Card} title="Jobs on it"><${Loaded}
        of=${jobs}>${(d) => html`<${Table} caption="Jobs on this node"
        columns=${jobColumns} rows=${d.jobs} rowKey=${(j) => j.id}
            empty=${html`<${Empty} title="No job is on it" />`} />`}</${Loaded}></${Card}>`;
}

function About({ node: n }) {
    const criu = { unknown: null, no: "no", cpu: "of CPU jobs", gpu: "of CPU and GPU jobs" }[
        n.criu
    ];
    const rows = [
        [
            "GPUs",
            n.gpus > 0 &&
                [n.gpu_model, n.gpu_memory_mib && mebibytes(n.gpu_memory_mib)]
                    .filter(Boolean)
                    .join(", "),
        ],
        ["Features", n.features.join(", ")],
        ["Saves by CRIU", criu && criu + (n.criu_text ? ": " + n.criu_text : "")],
        ["Address", n.address],
        ["Agent", n.version && "version " + n.version],
        ["Last heard of", n.silent_ms !== null && duration(n.silent_ms) + " ago"],
        ["Rack", n.rack && html`<a href="/console/racks">${n.rack}</a>`],
        ["Joined", html`<${Ago} at=${n.joined_at} />`],
        ["Leaves by", n.notice_deadline && html`<${Moment} at=${n.notice_deadline} />`],
        ["Left", n.gone_at && html`<${Moment} at=${n.gone_at} />`],
    ];
    return html`<${Card} title="About it"><${Facts} rows=${rows} /></${Card}>`;
}

function Machine({ node }) {
    const list = useData("/api/v1/instances?state=" + (node.gone_at ? "all" : "live"), {
        on: ["instance"],
    });
    return html`<${Card} title="Its machine"><${Loaded} of=${list}>${({ instances }) => {
        const i = instances.find((one) => one.id === node.instance);
        return i
            ? html`<${Facts} rows=${instanceColumns.map((c) => [c.name, c.cell(i)])} />`
            : html`<${Empty} title="Its row was deleted" />`;
    }}</${Loaded}></${Card}>`;
}

function Events({ node }) {
    const of = useData(`/api/v1/events?node=${node.id}&tail=50`, {
        on: ["event"],
        concerns: (e) => !e || !("node" in e) || e.node === node.id,
    });
    return html`<${Card} title="Events" more=${html`<a href=${
        "/console/events?node=" + node.id
    }>All</a>`}>
        <${Loaded} of=${of}>${(d) => html`<${EventList} events=${d.events}
            here=${node.id} />`}</${Loaded}></${Card}>`;
}
