// SPDX-License-Identifier: Apache-2.0
// A job: what it does, its attempts over time, its output, checkpoints, costs, and why it waits.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { NONE, bytes, count, duration, mebibytes, money, percent, rate } from "../format.js";
import { Badge, JobState } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { partsOf } from "../parts/events.js";
import { Facts } from "../parts/facts.js";
import { Gantt } from "../parts/gantt.js";
import { JobActions } from "../parts/job_actions.js";
import { JobCheckpoints } from "../parts/job_checkpoints.js";
import { JobCost, costOf } from "../parts/job_cost.js";
import { JobGang } from "../parts/job_gang.js";
import { JobLoad } from "../parts/job_load.js";
import { JobProgress } from "../parts/job_progress.js";
import { JobTasks } from "../parts/job_tasks.js";
import { JobWhy } from "../parts/job_why.js";
import { Log } from "../parts/log.js";
import { Loaded } from "../parts/states.js";
import { Stat, Stats } from "../parts/stat.js";
import { Table } from "../parts/table.js";
import { Ago, Lasted, Moment, useNow } from "../parts/time.js";
import { timeline } from "../timeline.js";

const EVENTS_SHOWN = 100; // in the list; the timeline has more

export function Job({ params }) {
    const path = "/api/v1/jobs/" + encodeURIComponent(params.ref);
    const detail = useData(path, { on: ["job", "event"], concerns: (e) => isOf(e, params.ref) });
    return html`<${Loaded} of=${detail} lines=${10} title=${"Job " + params.ref}>${(d) =>
        html`<${JobPage} key=${d.job.id} d=${d} changed=${detail.reload} />`}</${Loaded}>`;
}

/** Whether an event of the stream may concern the job of this page. */
function isOf(e, ref) {
    return !e || [e.id, e.job].some((id) => String(id) === ref) || ref.includes("_");
}

function JobPage({ d, changed }) {
    const { job } = d;
    const events = useData("/api/v1/jobs/" + job.id + "/events?tail=500", {
        on: ["event"],
        concerns: (e) => !e || e.job === job.id,
    });
    return html`<${PageHead} title=${"Job " + job.ref + (job.hidden ? "" : ": " + job.name)}
            note=${html`<${JobState} job=${job} /> ${job.user}${
                job.team && job.team !== job.user ? ", team " + job.team : ""
            }${
                job.cron &&
                html`, from <a href=${"/console/cron/" + job.cron}>cron entry ${job.cron}</a>`
            }
                ${
                    isWeb(job.url) &&
                    html` · <a href=${job.url} rel="noreferrer noopener"
                    target="_blank">experiment</a>`
                }`}>
            <${JobActions} job=${job} changed=${changed} /></${PageHead}>
        ${
            job.hidden &&
            html`<p class="notice">Its owner does not show this job to you; you see that
            it exists and what it uses.</p>`
        }
        <${Figures} d=${d} />
        ${job.state === "pending" && html`<${JobWhy} job=${job} changed=${changed} />`}
        ${d.array && html`<${JobTasks} job=${job} array=${d.array} />`}
        ${job.ranks > 1 && d.attempts.length > 0 && html`<${JobGang} d=${d} />`}
        ${d.attempts.length > 0 && html`<${Attempts} d=${d} events=${events} />`}
        ${d.job.progress_total > 0 && html`<${JobProgress} d=${d} />`}
        ${
            d.attempts.length > 0 &&
            !job.hidden &&
            html`<${Card} title="Output"><${Log} job=${job} ranks=${job.ranks || 1} /></${Card}>`
        }
        ${d.attempts.length > 0 && html`<${JobLoad} job=${job} />`}
        ${
            job.checkpoint.method !== "none" &&
            d.attempts.length > 0 &&
            html`<${JobCheckpoints} d=${d} />`
        }
        <div class="columns">${d.attempts.length > 0 && html`<${JobCost} d=${d} />`}
            <${Asked} d=${d} /><${Events} events=${events} /></div>`;
}

function isWeb(url) {
    return typeof url === "string" && /^https?:\/\//i.test(url);
}

function Figures({ d }) {
    const { job } = d;
    const saved = job.on_demand_uusd > 0 ? 1 - job.cost_uusd / job.on_demand_uusd : null;
    const last = job.last_checkpoint;
    return html`<${Stats}>
        <${Stat} name="Submitted" value=${html`<${Ago} at=${job.submitted_at} />`} />
        ${
            job.started_at &&
            html`<${Stat} name=${job.state === "ended" ? "Took" : "Since its start"}
                value=${html`<${Lasted} from=${job.started_at} to=${job.ended_at} />`}
            note=${job.node && "on " + job.node} />`
        }
        <${Stat} name="Reclaims survived" value=${count(job.reclaims)}
            note=${
                job.lost_ms > 0
                    ? duration(job.lost_ms) + " done again"
                    : job.attempts > 1 && "nothing done again"
            } />
        <${Stat} name="Cost" value=${money(job.cost_uusd)}
            note=${saved !== null && percent(saved) + " below on-demand"} />
        ${
            job.progress !== null &&
            html`<${Stat} name="Progress" value=${
                count(job.progress) + (job.progress_total ? " of " + count(job.progress_total) : "")
            }
            note=${job.progress_total && percent(job.progress / job.progress_total)} />`
        }
        ${
            last &&
            html`<${Stat} name="Last checkpoint" value=${html`<${Ago} at=${last.saved_at} />`}
            note=${bytes(last.bytes)} />`
        }
    </${Stats}>`;
}

const attemptColumns = [
    { name: "Attempt", cell: (a) => a.attempt + (a.rank ? " rank " + a.rank : "") },
    { name: "Node", cell: (a) => html`<a href=${"/console/nodes/" + a.node}>${a.node}</a>` },
    {
        name: "End",
        cell: (a) =>
            a.end ? html`<${Badge} word=${a.end} />` : html`<${Badge} word=${a.state} />`,
    },
    { name: "Began", cell: (a) => html`<${Moment} at=${a.started_at || a.assigned_at} />` },
    {
        name: "Ran",
        cell: (a) =>
            a.started_at ? html`<${Lasted} from=${a.started_at} to=${a.ended_at} />` : NONE,
        number: true,
    },
    {
        name: "Resumed from",
        cell: (a) => (a.restored ? a.restored.attempt + "." + a.restored.sequence : "the start"),
    },
    { name: "Restore", cell: (a) => (a.restored ? duration(a.restore_ms) : NONE), number: true },
    { name: "Price", cell: (a) => rate(a.price_uusd_h), number: true },
    { name: "Memory, most", cell: (a) => bytes(a.memory_peak_bytes), number: true },
    { name: "Why it ended", cell: (a) => a.text || "", wide: true },
];

/** About what a pixel of the timeline is. */
function pixelMs(job) {
    return Math.max(1000, Math.round((Date.now() - Date.parse(job.submitted_at)) / 600000) * 1000);
}

function Attempts({ d, events }) {
    const now = useNow(pixelMs(d.job));
    const line = timeline(
        d,
        events.data ? events.data.events : [],
        d.job.state === "ended" ? Date.parse(d.job.ended_at) : now,
    );
    return html`<${Card} title="Attempts">
        <${Gantt} line=${line} describe=${(row, span) => costOf(d, row, span)} />
        <${Table} caption="Attempts" columns=${attemptColumns} rows=${d.attempts}
            rowKey=${(a) => a.attempt + "." + a.rank} /></${Card}>`;
}

function Asked({ d }) {
    const { job, spec } = d;
    const rows = [
        [
            "CPUs, GPUs, memory",
            count(job.cpus) +
                ", " +
                count(job.gpus) +
                (job.gpu_model ? " × " + job.gpu_model : "") +
                ", " +
                (job.memory_mib ? mebibytes(job.memory_mib) : "any"),
        ],
        job.nodes > 1 && [
            "Nodes",
            job.nodes_min < job.nodes ? job.nodes_min + " to " + job.nodes : job.nodes,
        ],
        ["Pool, market", (job.pool || "any") + ", " + job.market],
        ["Time limit", job.time_limit_ms ? duration(job.time_limit_ms) : "none"],
        job.finish_by && ["Finish by", html`<${Moment} at=${job.finish_by} />`],
        job.qos && ["QOS", job.qos],
        [
            "Checkpoints",
            job.checkpoint.method +
                (job.checkpoint.every_ms ? ", every " + duration(job.checkpoint.every_ms) : ""),
        ],
        job.max_uusd && ["Most it may cost", money(job.max_uusd)],
        job.constraint && ["Features", job.constraint],
        spec &&
            Object.keys(spec.labels || {}).length > 0 && [
                "Labels",
                Object.entries(spec.labels)
                    .map(([k, v]) => k + "=" + v)
                    .join(", "),
            ],
        d.depends.length > 0 && [
            "Depends on",
            d.depends.map((x) => x.kind + ":" + (x.job || "") + " (" + x.state + ")").join(", "),
        ],
        spec && ["Directory", html`<code>${spec.cwd}</code>`],
    ].filter(Boolean);
    return html`<${Card} title="What it asked for">
        <${Facts} rows=${rows} />
        ${
            spec &&
            html`<details><summary>Script</summary><pre class="script"
            tabindex="0">${spec.script}</pre></details>`
        }</${Card}>`;
}

function Events({ events }) {
    return html`<${Card} title="Events"><${Loaded} of=${events}>${(
        d,
    ) => html`<ol class="events events-tall" tabindex="0" aria-label="Events">
        ${d.events
            .slice(-EVENTS_SHOWN)
            .reverse()
            .map(
                (e) => html`<li key=${e.id}><${Moment}
            at=${e.at} /> <b>${partsOf(e).word}</b> ${partsOf(e).rest}</li>`,
            )}</ol>`}</${Loaded}></${Card}>`;
}
