// SPDX-License-Identifier: Apache-2.0
// The ranks of a job on several nodes: where each is, what it does, and which one is behind.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { NONE, bytes, count, percent, rate } from "../format.js";
import { gangOf } from "../gang.js";
import { Badge } from "./badge.js";
import { Card } from "./card.js";
import { Stat, Stats } from "./stat.js";
import { Table } from "./table.js";
import { Ago, Lasted } from "./time.js";

export function JobGang({ d }) {
    const { job } = d;
    const load = useData(job.hidden ? null : "/api/v1/jobs/" + job.id + "/diagnose", {
        on: ["summary"],
    });
    const { rows, behind } = gangOf(d.attempts, load.data ? load.data.ranks : []);
    const last = job.last_checkpoint;
    const running = rows.filter((r) => !r.end && r.state === "running").length;
    return html`<${Card} title="Gang" more=${
        behind && html`<${Badge} word=${"rank " + behind.rank + " is behind"} tone="warn" />`
    }>
        <${Stats}>
            <${Stat} name="Ranks running" value=${count(running) + " of " + count(rows.length)}
                note=${
                    job.nodes_min < job.nodes
                        ? "elastic: " + job.nodes_min + " to " + job.nodes + " nodes"
                        : "all " + count(job.nodes) + " start together"
                } />
            <${Stat} name="All together" value=${rate(
                rows.reduce((sum, r) => sum + (r.end ? 0 : r.price_uusd_h || 0), 0),
            )} note="at the price of now" />
            ${
                job.checkpoint.method !== "none" &&
                html`<${Stat} name="Last checkpoint of all ranks" value=${
                    last ? html`<${Ago} at=${last.saved_at} />` : "none yet"
                } note=${last && "step " + count(last.progress) + ", " + bytes(last.bytes)} />`
            }
        </${Stats}>
        ${
            behind &&
            html`<p class="notice notice-warn">The other ranks wait ${percent(behind.part)} of
                their time, rank ${behind.rank} the least: it is the one for which they
                wait.</p>`
        }
        <${Table} caption="Ranks of the newest attempt" columns=${columns(behind)} rows=${rows}
            rowKey=${(r) => r.rank} /></${Card}>`;
}

const loaded = (fn) => (r) => (r.load && r.load.ms > 0 ? fn(r.load) : NONE);

function columns(behind) {
    return [
        {
            name: "Rank",
            cell: (r) =>
                html`${r.rank}${
                    behind &&
                    behind.rank === r.rank &&
                    html` <${Badge} word="behind" tone="warn" />`
                }`,
        },
        { name: "Node", cell: (r) => html`<a href=${"/console/nodes/" + r.node}>${r.node}</a>` },
        { name: "State", cell: (r) => html`<${Badge} word=${r.end || r.state} />` },
        {
            name: "Runs for",
            cell: (r) =>
                r.started_at ? html`<${Lasted} from=${r.started_at} to=${r.ended_at} />` : NONE,
            number: true,
        },
        { name: "CPUs used", cell: loaded((l) => (l.cpu_ms / l.ms).toFixed(2)), number: true },
        { name: "Memory", cell: loaded((l) => bytes(l.memory_bytes)), number: true },
        { name: "Read", cell: loaded((l) => bytes(l.read_bytes)), number: true },
        { name: "Written", cell: loaded((l) => bytes(l.write_bytes)), number: true },
        {
            name: "Waits for disks",
            cell: loaded((l) => percent(l.blocked_ms / l.ms)),
            number: true,
        },
        {
            name: "Waits for ranks",
            cell: loaded((l) => (l.waited_ms > 0 ? percent(l.waited_ms / l.ms) : NONE)),
            number: true,
        },
        { name: "Price", cell: (r) => rate(r.price_uusd_h), number: true },
    ];
}
