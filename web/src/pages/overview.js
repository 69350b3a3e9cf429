// SPDX-License-Identifier: Apache-2.0
// What runs, what waits and why, what it costs.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, mebibytes, money, percent, plural, rate } from "../format.js";
import { savedOf } from "../ledger.js";
import { Card, PageHead } from "../parts/card.js";
import { EventList } from "../parts/events.js";
import { JobLink, JobName } from "../parts/job.js";
import { Empty, Loaded } from "../parts/states.js";
import { Meter, Stat, Stats } from "../parts/stat.js";
import { Table } from "../parts/table.js";
import { Ago, Lasted } from "../parts/time.js";

const MONTH = "/api/v1/cost?by=month&from=" + encodeURIComponent(monthStart());
const RECLAIM_KINDS = ["notice", "save-failed", "lost", "requeued"];

export function Overview() {
    const summary = useData("/api/v1/summary", { on: ["summary", "job", "node"] });
    return html`<${PageHead} title="Overview" />
        <${Loaded} of=${summary} lines=${4}>${(s) => html`<${Figures} s=${s} />`}</${Loaded}>
        <div class="columns">
            <div><${Running} /><${Money} /></div><div><${Waiting} /><${Reclaims} /></div>
        </div>
        <${Loaded} of=${summary}>${(s) => html`<${Pools} pools=${s.pools} />`}</${Loaded}>`;
}

function monthStart() {
    const now = new Date();
    return new Date(now.getFullYear(), now.getMonth(), 1).toISOString();
}

function Figures({ s }) {
    const saved = s.on_demand_uusd_h > 0 ? 1 - s.uusd_h / s.on_demand_uusd_h : null;
    const nodes = [
        s.coming && count(s.coming) + " coming",
        s.nodes.noticed && count(s.nodes.noticed) + " with notice",
        s.nodes.draining && count(s.nodes.draining) + " draining",
        s.nodes.lost && count(s.nodes.lost) + " lost",
    ];
    return html`<${Stats}>
        <${Stat} name="Running" value=${count(s.jobs.running)} href="/console/jobs?state=running" />
        <${Stat} name="Waiting" value=${count(s.jobs.pending)} href="/console/jobs?state=pending"
            note=${s.jobs.waiting > 0 && count(s.jobs.waiting) + " held or for later"} />
        <${Stat} name="Nodes" value=${count(s.nodes.up)} note=${nodes.filter(Boolean).join(", ")}
            href="/console/nodes" />
        ${
            s.gpus.total > 0 &&
            html`<${Stat} name="GPUs in use"
            value=${count(s.gpus.used) + " of " + count(s.gpus.total)} />`
        }
        <${Stat} name="CPUs in use" value=${count(s.cpus.used) + " of " + count(s.cpus.total)}
            note=${mebibytes(s.memory_mib.used) + " of memory"} />
        <${Stat} name="Cost now" value=${rate(s.uusd_h)}
            note=${saved !== null && percent(saved) + " below on-demand"} />
    </${Stats}>`;
}

const runningColumns = [
    { name: "Job", cell: (j) => html`<${JobLink} job=${j} />` },
    { name: "Name", cell: (j) => html`<${JobName} job=${j} />`, wide: true },
    { name: "User", cell: (j) => j.user },
    { name: "Runs", cell: (j) => html`<${Lasted} from=${j.attempt_started_at} />`, number: true },
    { name: "Cost", cell: (j) => money(j.cost_uusd), number: true },
];

function Running() {
    const jobs = useData("/api/v1/jobs?state=running&limit=8", { on: ["job"] });
    return html`<${Card} title="Running"
        more=${html`<a href="/console/jobs?state=running">All</a>`}>
        <${Loaded} of=${jobs}>${(
            d,
        ) => html`<${Table} caption="Running jobs" columns=${runningColumns} rows=${d.jobs}
            rowKey=${(j) => j.id} empty=${html`<${Empty}
                title="No job runs" />`} />`}</${Loaded}></${Card}>`;
}

const waitingColumns = [
    {
        name: "Job",
        cell: (j) => html`<span><${JobLink} job=${j} /> <${JobName} job=${j} /></span>`,
    },
    { name: "Why it waits", cell: (j) => (j.why ? j.why.text : ""), wide: true },
    { name: "Submitted", cell: (j) => html`<${Ago} at=${j.submitted_at} />`, number: true },
];

function Waiting() {
    const jobs = useData("/api/v1/jobs?state=pending&limit=8&why=1", { on: ["job", "node"] });
    return html`<${Card} title="Waiting"
        more=${html`<a href="/console/jobs?state=pending">All</a>`}>
        <${Loaded} of=${jobs}>${(
            d,
        ) => html`<${Table} caption="Waiting jobs" columns=${waitingColumns} rows=${d.jobs}
            rowKey=${(j) => j.id} empty=${html`<${Empty}
                title="No job waits" />`} />`}</${Loaded}></${Card}>`;
}

function Money() {
    const cost = useData(MONTH, { on: ["budget"] });
    const budgets = useData("/api/v1/budgets", { on: ["budget"] });
    return html`<${Card} title="This month" more=${html`<a href="/console/cost">Costs</a>`}>
        <${Loaded} of=${cost}>${({ total: t }) => html`<${Stats}>
            <${Stat} name="Spent" value=${money(t.uusd)} note=${plural(t.jobs, "job")} />
            <${Stat} name="Saved against on-demand" value=${money(t.on_demand_uusd - t.uusd)}
                note=${savedOf(t).note} />
        </${Stats}>`}</${Loaded}>
        <${Loaded} of=${budgets}>${(d) =>
            d.budgets.map((b) => html`<${Budget} key=${b.name} b=${b} />`)}</${Loaded}>
    </${Card}>`;
}

function Budget({ b }) {
    const tone = b.left_uusd <= 0 ? "bad" : b.spent_uusd > 0.8 * b.cap_uusd ? "warn" : "good";
    return html`<div class="budget-line"><span>${b.name}</span>
        <${Meter} name=${"budget " + b.name} used=${b.spent_uusd} total=${b.cap_uusd}
            tone=${tone} />
        <span>${money(b.spent_uusd)} of ${money(b.cap_uusd)}</span></div>`;
}

function Reclaims() {
    const events = useData("/api/v1/events?tail=500", { on: ["event"] });
    return html`<${Card} title="Reclaims">
        <${Loaded} of=${events}>${(d) => {
            const shown = d.events.filter((e) => RECLAIM_KINDS.includes(e.kind)).slice(-8);
            return html`<${EventList} events=${shown} empty="No reclaims of late" />`;
        }}</${Loaded}></${Card}>`;
}

const poolColumns = [
    { name: "Pool", cell: (p) => html`<a href="/console/pools">${p.pool}</a>`, wide: true },
    { name: "Jobs", cell: (p) => count(p.jobs), number: true },
    {
        name: "Nodes",
        cell: (p) => count(p.nodes.up) + (p.coming ? " + " + p.coming : ""),
        number: true,
    },
    {
        name: "CPUs",
        cell: (p) =>
            html`<${Meter} name="CPUs in use" used=${p.cpus.used} total=${p.cpus.total} />`,
    },
    {
        name: "GPUs",
        cell: (p) =>
            p.gpus.total
                ? html`<${Meter} name="GPUs in use" used=${p.gpus.used} total=${p.gpus.total} />`
                : "",
    },
    { name: "Cost", cell: (p) => rate(p.uusd_h), number: true },
];

function Pools({ pools }) {
    return html`<${Card} title="Pools"><${Table} caption="Pools" columns=${poolColumns}
        rows=${pools} rowKey=${(p) => p.pool}
        empty=${html`<${Empty} title="No pools">belayd's configuration has none:
            docs/how-to/pools-and-users.md</${Empty}>`} /></${Card}>`;
}
