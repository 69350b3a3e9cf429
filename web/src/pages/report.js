// SPDX-License-Identifier: Apache-2.0
// A report file of the command line, opened in the browser: its figures in the console's tables and
// charts. belayd never sees the file, and nothing that is in it runs.
import { html, useMemo, useState } from "../dom.js";
import { NONE, absolute, count, duration, money, percent, plural } from "../format.js";
import { Card, PageHead } from "../parts/card.js";
import { Chart } from "../parts/chart.js";
import { FormRow } from "../parts/fields.js";
import { Empty, Failure } from "../parts/states.js";
import { Stat, Stats } from "../parts/stat.js";
import { Table } from "../parts/table.js";
import { FILE_MAX, readReport, summed, together, waitOf } from "../report_file.js";

export function Report() {
    const [shown, setShown] = useState(null);
    const open = async (event) => {
        const file = event.target.files[0];
        if (file) setShown(await opened(file));
    };
    return html`<${PageHead} title="Reports" note="Opens what belay simulate or belay cost forecast
            has written" />
        <${Card} title="File">
            <${FormRow} label="Report" hint="Of belay simulate --html or --json, or belay cost
                forecast --json. The file stays in this browser.">
                <input type="file" name="report" accept=".html,.htm,.json"
                    onChange=${open} /></${FormRow}></${Card}>
        ${
            shown === null
                ? html`<${Empty} title="No report is open">For example: <code>belay simulate
                --jobs jobs.csv --pools pools.yaml --html report.html</code></${Empty}>`
                : shown.error
                  ? html`<${Failure} error=${shown.error} />`
                  : html`<${Opened} key=${shown.name} name=${shown.name} report=${shown.report} />`
        }`;
}

async function opened(file) {
    try {
        if (file.size > FILE_MAX)
            throw new Error(
                "The file is larger than 16 MiB: simulate fewer days or files of pools",
            );
        return { name: file.name, report: readReport(await file.text()) };
    } catch (error) {
        return { name: file.name, error };
    }
}

function Opened({ name, report }) {
    return report.kind === "simulate"
        ? html`<${Simulations} name=${name} all=${report.simulations} />`
        : html`<${Offers} name=${name} report=${report} />`;
}

/* ---- belay simulate ---- */

const FIGURES = [
    ["Cost", (s) => money(s.cost_uusd)],
    ["of owned machines", (s) => money(s.byMarket.owned)],
    ["of spot", (s) => money(s.byMarket.spot)],
    ["of on-demand", (s) => money(s.byMarket.on_demand)],
    ["Its useful work on-demand", (s) => money(s.useful_on_demand_uusd)],
    ["Length", (s) => duration(s.length_ms)],
    ["Jobs that ended", (s) => count(s.all.ended) + " of " + count(s.all.jobs)],
    ["Wait, median", (s) => duration(s.all.wait_ms.median)],
    ["Wait, 95 of 100", (s) => duration(s.all.wait_ms.p95)],
    ["Late", (s) => count(s.all.late) + " of " + count(s.all.with_deadline)],
    ["Launches", (s) => count(s.launches)],
    ["Refused", (s) => count(s.refusals)],
    ["Reclaims", (s) => count(s.reclaims)],
    ["Lost", (s) => duration(s.all.lost_ms)],
    ["CPUs in use", (s) => percent(s.use.cpus)],
    ["GPUs in use", (s) => percent(s.use.gpus)],
];
const WAITS = [50, 75, 90, 95, 99, 100];

function Simulations({ name, all }) {
    const columns = [
        { name: "Figure", cell: ([figure]) => figure },
        ...all.map((s) => ({ name: s.file, cell: ([, of]) => of(s), number: true })),
    ];
    const waits = WAITS.map((p) => [p + " %", (s) => duration(waitOf(s.waits, p))]);
    const lines = useMemo(
        () => [
            together(all, (s) => summed(s.lines.spent_usd.map((v) => v * 1e6))),
            together(all, (s) => s.lines.waiting),
        ],
        [all],
    );
    return html`<${Card} title=${name}
            more=${html`<span class="quiet">from ${absolute(all[0].start)}</span>`}>
            <${Table} caption="Sums" columns=${columns} rows=${FIGURES} rowKey=${(f) => f[0]} />
        </${Card}>
        <div class="columns">
            <${Card} title="Spent so far"><${Chart} name="Dollars spent so far" format=${money}
                ...${lines[0]} /></${Card}>
            <${Card} title="Jobs waiting"><${Chart} name="Number of jobs waiting" kind="step"
                format=${level} ...${lines[1]} /></${Card}></div>
        <${Card} title="How long jobs waited"><${Table} caption="Longest wait of a part of the jobs"
            columns=${[{ ...columns[0], name: "Of the jobs" }, ...columns.slice(1)]} rows=${waits}
            rowKey=${(w) => w[0]} /></${Card}>
        ${all.map((s, i) => html`<${Simulation} key=${i} s=${s} />`)}`;
}

const level = (v) => (v === null ? NONE : String(Number(v.toFixed(1))));

function Simulation({ s }) {
    const [machines, jobs] = useMemo(
        () =>
            [
                ["owned", "spot", "on_demand"],
                ["running", "waiting"],
            ].map((names) => {
                const times = s.lines[names[0]].map((_, k) => s.start + k * s.lines.bin_ms);
                const series = names.map((n) => ({
                    name: n.replace("_", "-"),
                    values: times.map((_t, k) => s.lines[n][k] ?? null),
                }));
                return { times, series };
            }),
        [s],
    );
    return html`<${Card} title=${s.file}>
        <div class="columns">
            <div><h3>Machines paid for</h3><${Chart} name=${"Machines with " + s.file} kind="step"
                format=${level} ...${machines} /></div>
            <div><h3>Jobs</h3><${Chart} name=${"Jobs with " + s.file} kind="step" format=${level}
                ...${jobs} /></div></div>
        <h3 class="card-part">Pools</h3>
        <${Table} caption=${"Pools of " + s.file} columns=${poolColumns} rows=${s.pools}
            rowKey=${(p) => p.pool} />
        <h3 class="card-part">Teams</h3>
        <${Table} caption=${"Teams with " + s.file} columns=${teamColumns} rows=${s.teams}
            rowKey=${(t) => t.team} />
        ${s.notes.map((note) => html`<p class="hint">${note}.</p>`)}</${Card}>`;
}

const waitColumns = [
    { name: "Wait, mean", cell: (j) => duration(j.wait_ms.mean), number: true },
    { name: "95 of 100", cell: (j) => duration(j.wait_ms.p95), number: true },
    { name: "Late", cell: (j) => count(j.late), number: true },
];
const poolColumns = [
    { name: "Pool", cell: (p) => p.pool },
    { name: "Jobs", cell: (p) => count(p.jobs.jobs), number: true },
    ...waitColumns.map((c) => ({ ...c, cell: (p) => c.cell(p.jobs) })),
    { name: "Cost", cell: (p) => money(p.cost_uusd), number: true },
    { name: "CPUs in use", cell: (p) => percent(p.cpu_utilisation), number: true },
    { name: "GPUs in use", cell: (p) => percent(p.gpu_utilisation), number: true },
    { name: "Launches", cell: (p) => count(p.launches), number: true },
    { name: "Refused", cell: (p) => count(p.refusals), number: true },
    { name: "Reclaims", cell: (p) => count(p.reclaims), number: true },
];
const teamColumns = [
    { name: "Team", cell: (t) => t.team || "(no team)" },
    { name: "Jobs", cell: (t) => count(t.jobs), number: true },
    { name: "Cost", cell: (t) => money(t.cost_uusd), number: true },
    ...waitColumns,
    { name: "Reclaims", cell: (t) => count(t.reclaims), number: true },
    { name: "Lost", cell: (t) => duration(t.lost_ms), number: true },
];

/* ---- belay cost forecast ---- */

const offerColumns = [
    {
        name: "On",
        cell: (o) => (o.name ? o.name + " " + o.market : html`<b>all, as belay chooses</b>`),
    },
    { name: "Cost, mean", cell: (o) => money(o.cost.mean), number: true },
    { name: "Median", cell: (o) => money(o.cost.median), number: true },
    { name: "95 of 100", cell: (o) => money(o.cost.p95), number: true },
    { name: "Done after", cell: (o) => duration(o.done_ms.median), number: true },
    { name: "95 of 100 after", cell: (o) => duration(o.done_ms.p95), number: true },
    { name: "Late", cell: (o) => (o.starts ? percent(o.late / o.starts) : NONE), number: true },
    { name: "Reclaims", cell: (o) => level(o.reclaims), number: true },
];

function Offers({ name, report: { offers, more, infeasibleByMs } }) {
    const all = offers.find((o) => !o.name);
    return html`${
        infeasibleByMs !== null &&
        html`<p class="notice notice-warn">The deadline cannot be kept: the fastest run is
            ${duration(infeasibleByMs)} too slow.</p>`
    }
        ${
            all &&
            html`<${Stats}>
            <${Stat} name="Cost, as belay chooses" value=${money(all.cost.mean)}
                note=${"95 of 100: at most " + money(all.cost.p95)} />
            <${Stat} name="Done after" value=${duration(all.done_ms.median)}
                note=${"95 of 100: " + duration(all.done_ms.p95)} />
            <${Stat} name="Reclaims" value=${level(all.reclaims)} />
            <${Stat} name="Simulated" value=${plural(all.starts, "start")} /></${Stats}>`
        }
        <${Card} title=${name}><${Table} caption="The job on each offer" columns=${offerColumns}
            rows=${offers} rowKey=${(o) => o.name + o.market}
            empty=${html`<${Empty} title="No offer suits the job" />`} />
            ${
                more > 0 &&
                html`<p class="hint">${plural(more, "more offer")} are left out of the
                file (--limit).</p>`
            }</${Card}>`;
}
