// SPDX-License-Identifier: Apache-2.0
// The cost explorer: costs of a period by up to four keys, over time, and the dearest jobs.
import { withQuery } from "../api.js";
import { csvText, download } from "../csv.js";
import { useData } from "../data.js";
import { classes, html } from "../dom.js";
import { count, duration, money, percent, utcDay } from "../format.js";
import { LEDGER_KINDS, kindName, kindTone, savedOf } from "../ledger.js";
import { JobState } from "../parts/badge.js";
import { Bars, stacked } from "../parts/bars.js";
import { Card, PageHead } from "../parts/card.js";
import { Choice, Field, Filters } from "../parts/fields.js";
import { JobLink, JobName } from "../parts/job.js";
import { Parts } from "../parts/parts_bar.js";
import { Stat, Stats } from "../parts/stat.js";
import { Empty, Loaded } from "../parts/states.js";
import { HeadRow, Table } from "../parts/table.js";
import { Moment } from "../parts/time.js";
import { setQuery } from "../router.js";
import { KEYS, KEYS_MAX, PERIODS, keysOf, periodOf, stepOf, stepsOf } from "./cost_query.js";

const ROWS_MAX = 500;
const STEPS = [
    ["", "automatic"],
    ["day", "day"],
    ["week", "week"],
    ["month", "month"],
];

export function Cost({ query }) {
    const get = (name) => query.get(name) || "";
    const period = periodOf(get("period"), get("from"), get("to"), Date.now());
    const keys = keysOf(get("by"));
    const filter = {
        user: get("user"),
        team: get("team"),
        pool: get("pool"),
        from: midnight(period.from),
        to: midnight(period.to),
    };
    const of = useData(withQuery("/api/v1/cost", { ...filter, by: keys.join(",") }), {
        on: ["budget"],
    });
    return html`<${PageHead} title="Costs"
        note=${
            "From " +
            utcDay(period.from) +
            (period.to ? " to before " + utcDay(period.to) : " to now") +
            ", in days of UTC. An attempt counts when it has ended."
        }>
            <button type="button" disabled=${!of.data}
                onClick=${() => save(keys, period, of.data)}>Download CSV</button>
        </${PageHead}>
        <${CostFilters} query=${query} keys=${keys} />
        <${Loaded} of=${of}>${(d) => html`<${Totals} total=${d.total} />`}</${Loaded}>
        <${OverTime} filter=${filter} period=${period} by=${keys[0]} chosen=${get("step")} />
        <${Card} title=${"By " + keys.join(", ")}>
            <${Loaded} of=${of}>${(d) => html`<${Lines} keys=${keys}
                d=${d} />`}</${Loaded}></${Card}>
        <div class="columns"><${Dearest} filter=${filter} /><${Unusual} /></div>`;
}

function midnight(day) {
    return day && day + "T00:00:00Z";
}

function CostFilters({ query, keys }) {
    const get = (name) => query.get(name);
    const set = (i, value) => {
        const next = [...keys];
        next.splice(i, 1, ...(value ? [value] : []));
        setQuery({ by: [...new Set(next)].join(",") });
    };
    return html`<${Filters}>
        <${Choice} name="period" label="Period" value=${get("period")} options=${PERIODS} />
        ${
            get("period") === "custom" &&
            html`<${Field} name="from" label="First day" type="date" value=${get("from")} />
            <${Field} name="to" label="Last day" type="date" value=${get("to")} />`
        }
        ${[...keys, ""].slice(0, KEYS_MAX).map(
            (key, i) =>
                html`<${Key} key=${i + key} i=${i} value=${key}
            keys=${keys} set=${(value) => set(i, value)} />`,
        )}
        <${Choice} name="step" label="Bars of a" value=${get("step")} options=${STEPS} />
        <${Field} name="user" label="User" value=${get("user")} />
        <${Field} name="team" label="Team" value=${get("team")} />
        <${Field} name="pool" label="Pool" value=${get("pool")} /></${Filters}>`;
}

/** One of the keys; a label's has the name of the label beside it. */
function Key({ i, value, keys, set }) {
    const isLabel = value.startsWith("label:");
    const free = KEYS.filter((k) => k === value || !keys.includes(k));
    const options = [
        ...(i === 0 && keys.length === 1 ? [] : [["", i === 0 ? "–" : "nothing more"]]),
        ...free.map((k) => [k, k]),
        ["label:", "a label"],
    ];
    const name = i === 0 ? "By" : "then by";
    return html`<${Choice} name=${"key" + i} label=${name} value=${isLabel ? "label:" : value}
        options=${options}
            onChange=${(e) => set(e.target.value === "label:" ? "label:name" : e.target.value)} />
        ${
            isLabel &&
            html`<${Field} name=${"label" + i} label="Label" value=${value.slice(6)}
            onChange=${(e) =>
                set("label:" + (e.target.value.trim().replace(/,/g, "") || "name"))} />`
        }`;
}

function Totals({ total: t }) {
    const saved = t.on_demand_uusd - t.uusd;
    const lost = t.spent_uusd && t.spent_uusd.lost;
    const parts =
        t.spent_uusd &&
        LEDGER_KINDS.map((key) => ({
            name: kindName(key),
            tone: kindTone(key),
            value: t.spent_uusd[key] || 0,
            text: money(t.spent_uusd[key] || 0),
        })).filter((p) => p.value > 0);
    return html`<${Stats}>
            <${Stat} name="Spent" value=${money(t.uusd)}
                note=${
                    t.jobs !== null &&
                    count(t.jobs) + " jobs ended, " + count(t.succeeded) + " well"
                } />
            <${Stat} name="On-demand price" value=${money(t.on_demand_uusd)}
                note="of the same work" />
            <${Stat} name="Saved against on-demand" value=${money(saved)}
                note=${savedOf(t).note} />
            <${Stat} name="Lost to reclaims" value=${money(lost)}
                note=${
                    t.uusd > 0 &&
                    lost !== undefined &&
                    percent(lost / t.uusd) + " of what was spent, " + duration(t.lost_ms)
                } />
        </${Stats}>
        ${
            parts &&
            parts.length > 0 &&
            html`<${Card} title="What it was spent on">
            <${Parts} name="What it was spent on" parts=${parts} /></${Card}>`
        }`;
}

function OverTime({ filter, period, by, chosen }) {
    const step = stepOf(period, chosen, Date.now());
    const key = ["day", "week", "month"].includes(by) ? "market" : by;
    const of = useData(withQuery("/api/v1/cost", { ...filter, by: step + "," + key }));
    return html`<${Card} title="Over time"><${Loaded} of=${of}>${(d) => {
        if (!d.lines.some((l) => l.uusd > 0))
            return html`<${Empty} title="Nothing was spent in this period" />`;
        const steps = stepsOf(
            period,
            step,
            d.lines.map((l) => l.keys[0]),
            Date.now(),
        );
        const data = stacked(
            steps,
            d.lines.map((l) => ({
                at: l.keys[0],
                series: named(key, l.keys[1]),
                value: Math.max(0, l.uusd),
            })),
        );
        return html`<${Bars} name=${"Costs by " + key} unit=${"dollars a " + step} data=${data}
            label=${utcDay} format=${money} />`;
    }}</${Loaded}></${Card}>`;
}

/** A value of a key, in words where it is empty. */
export function named(key, value) {
    if (value !== "") return ["day", "week"].includes(key) ? utcDay(value) : value;
    return key.startsWith("label:") || key === "project" ? "(without the label)" : "(no job)";
}

const figures = [
    { name: "Cost", cell: (l) => money(l.uusd), number: true },
    { name: "On-demand price", cell: (l) => money(l.on_demand_uusd), number: true },
    {
        name: "Saved",
        cell: (l) => percent(savedOf(l).part),
        number: true,
    },
    {
        name: "Lost to reclaims",
        cell: (l) => money(l.spent_uusd && l.spent_uusd.lost),
        number: true,
    },
    { name: "Useful time", cell: (l) => duration(l.useful_ms), number: true },
    { name: "Lost time", cell: (l) => duration(l.lost_ms), number: true },
    { name: "Jobs ended", cell: (l) => count(l.jobs), number: true },
    { name: "Well", cell: (l) => count(l.succeeded), number: true },
];

function Lines({ keys, d }) {
    if (d.lines.length === 0)
        return html`<${Empty} title="Nothing was spent in this period">Choose a longer period,
            or remove a filter.</${Empty}>`;
    const isDated = ["day", "week", "month"].includes(keys[0]);
    const rows = isDated ? d.lines : [...d.lines].sort((a, b) => b.uusd - a.uusd);
    const columns = [
        ...keys.map((key, i) => ({ name: key, cell: (l) => named(key, l.keys[i]) })),
        ...figures,
    ];
    const cells = (l, isSum) =>
        columns.map(
            (c, i) =>
                html`<td class=${classes(c.number && "number")} data-name=${c.name}>
        ${!isSum || i >= keys.length ? c.cell(l) : i === 0 ? "Sum" : ""}</td>`,
        );
    return html`<div class="table-box" tabindex="0" role="region" aria-label="Costs"><table
        class="table">
            <caption class="sr-only">Costs by ${keys.join(", ")}</caption>
            <thead><${HeadRow} columns=${columns} /></thead>
            <tbody>${rows
                .slice(0, ROWS_MAX)
                .map((l) => html`<tr key=${l.key}>${cells(l, false)}</tr>`)}
                <tr class="sum">${cells(d.total, true)}</tr></tbody></table></div>
        ${
            rows.length > ROWS_MAX &&
            html`<p class="hint">The
            first ${ROWS_MAX} of ${count(rows.length)} lines; the CSV file has all.</p>`
        }`;
}

const usd = (uusd) => (uusd === null || uusd === undefined ? null : uusd / 1e6);

function save(keys, period, d) {
    const names = [
        ...keys,
        "usd",
        "on_demand_usd",
        "lost_usd",
        "useful_hours",
        "lost_hours",
        "jobs_ended",
        "succeeded",
    ];
    const rows = d.lines.map((l) => [
        ...l.keys,
        usd(l.uusd),
        usd(l.on_demand_uusd),
        usd(l.spent_uusd && l.spent_uusd.lost),
        l.useful_ms / 3600000,
        l.lost_ms / 3600000,
        l.jobs,
        l.succeeded,
    ]);
    download("belay-costs-" + period.from + ".csv", csvText([names, ...rows]));
}

const dearest = [
    { name: "Job", cell: (j) => html`<${JobLink} job=${j} />` },
    { name: "Name", cell: (j) => html`<${JobName} job=${j} />` },
    { name: "Cost", cell: (j) => money(j.cost_uusd), number: true },
    { name: "User", cell: (j) => j.user },
    { name: "End", cell: (j) => html`<${JobState} job=${{ ...j, state: "ended" }} />` },
    { name: "Reclaims", cell: (j) => count(j.reclaims), number: true },
    { name: "Lost", cell: (j) => duration(j.lost_ms), number: true },
    { name: "On-demand price", cell: (j) => money(j.on_demand_uusd), number: true },
    { name: "Ended", cell: (j) => html`<${Moment} at=${j.ended_at} />`, number: true },
];

function Dearest({ filter: { user, team, from, to } }) {
    const of = useData(withQuery("/api/v1/cost/jobs", { user, team, from, to, limit: 20 }), {
        on: ["job"],
    });
    return html`<${Card} title="Most expensive jobs that ended"><${Loaded} of=${of}>${(d) =>
        html`<${Table}
        caption="Most expensive jobs" columns=${dearest} rows=${d.jobs} rowKey=${(j) => j.id}
        empty=${html`<${Empty} title="No job ended in this period" />`} />`}</${Loaded}></${Card}>`;
}

const unusual = [
    { name: "Day", cell: (a) => utcDay(a.day) },
    { name: "Of", cell: (a) => a.of + " " + a.subject },
    { name: "Spent", cell: (a) => money(a.uusd), number: true },
    { name: "Usual", cell: (a) => money(a.usual_uusd), number: true },
];

function Unusual() {
    const of = useData("/api/v1/anomalies?days=28");
    return html`<${Card} title="Unusual spending in the last 28 days"><${Loaded} of=${of}>${(d) =>
        html`<${Table}
        caption="Unusual spending" columns=${unusual} rows=${d.items}
            rowKey=${(a) => a.of + a.subject + a.day}
        empty=${html`<${Empty} title="None">A day is unusual when a user,
            a team or a pool spends far more than on
            the same weekday of ${d.weeks} weeks before, and at
                least ${money(d.at_least_uusd)} more.</${Empty}>`} />
    `}</${Loaded}></${Card}>`;
}
