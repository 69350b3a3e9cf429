// SPDX-License-Identifier: Apache-2.0
// Budgets: what is spent, set aside and left, when it is used up, and which jobs wait for it.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { NONE, count, money, percent, rate } from "../format.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { Facts } from "../parts/facts.js";
import { JobLink, JobName } from "../parts/job.js";
import { Parts } from "../parts/parts_bar.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Ago, Moment } from "../parts/time.js";

const WAITING = "/api/v1/jobs?state=pending&why=1&limit=200";
const HOUR_MS = 3600000;
const AT_LIMIT = {
    alert: "notifies only",
    "stop-new": "no further job starts",
    park: "running jobs are saved and stopped, and go on in the next period",
};

export function Budgets() {
    const budgets = useData("/api/v1/budgets", { on: ["budget", "job"] });
    const waiting = useData(WAITING, { on: ["job", "budget"] });
    return html`<${PageHead} title="Budgets" note="Caps on what jobs may cost in a period" />
        <${Loaded} of=${budgets}>${(d) =>
            d.budgets.length === 0
                ? html`<${Empty} title="There are no budgets">
                An administrator sets them in budgets: of belayd's configuration.</${Empty}>`
                : d.budgets.map(
                      (b) => html`<${Budget} key=${b.name} b=${b}
                jobs=${waiting.data && waitingFor(b.name, waiting.data.jobs)}
                all=${waiting.data && waiting.data.next === null} />`,
                  )}</${Loaded}>`;
}

/** The pending jobs whose first reason to wait is this budget. */
export function waitingFor(name, jobs) {
    return jobs.filter(
        (j) => j.why && j.why.code === "budget" && j.why.text.startsWith("budget " + name + ":"),
    );
}

/** When the cap is reached at the present rate: ms of the clock, or null within this period. */
export function usedUpAt(b, nowMs) {
    if (b.uusd_per_hour <= 0 || b.state === "outside") return null;
    const at = nowMs + (Math.max(0, b.cap_uusd - b.spent_uusd) / b.uusd_per_hour) * HOUR_MS;
    return b.until && at > Date.parse(b.until) ? null : at;
}

/** What the period will have cost at its end at the present rate, or null. */
export function expectedAtEnd(b, nowMs) {
    if (!b.until || b.state === "outside") return null;
    const hours = Math.max(0, Date.parse(b.until) - nowMs) / HOUR_MS;
    return b.spent_uusd + Math.round(b.uusd_per_hour * hours);
}

function covers(match) {
    const parts = ["team", "user", "pool", "job"]
        .filter((k) => match[k] !== null)
        .map((k) => k + " " + match[k]);
    for (const [name, value] of Object.entries(match.labels))
        parts.push("label " + name + "=" + value);
    return parts.length > 0 ? parts.join(", ") : "all jobs";
}

function periodOf(b) {
    const name = b.period === "window" ? "each opening of " + b.window : "each " + b.period;
    return b.zone && b.zone !== "UTC" ? name + " (" + b.zone + ")" : name;
}

function Lasts({ b }) {
    const at = usedUpAt(b, Date.now());
    if (b.state === "outside") return "nothing counts now";
    if (b.spent_uusd >= b.cap_uusd) return "used up";
    if (b.uusd_per_hour === 0) return "nothing runs that counts";
    return at === null
        ? "lasts to the end of the period"
        : html`<${Ago} at=${new Date(at).toISOString()} /> (<${Moment}
            at=${new Date(at).toISOString()} />)`;
}

function toneOf(b) {
    const part = b.spent_uusd / b.cap_uusd;
    return b.state === "used-up" || part >= 1 ? "bad" : part >= 0.8 ? "warn" : "good";
}

function Budget({ b, jobs, all }) {
    const end = expectedAtEnd(b, Date.now());
    const parts = [
        { name: "spent", value: b.spent_uusd, tone: toneOf(b), text: money(b.spent_uusd) },
        {
            name: "set aside for running jobs",
            value: b.aside_uusd,
            tone: "aside",
            text: money(b.aside_uusd),
        },
        { name: "left", value: b.left_uusd, tone: "rest", text: money(b.left_uusd) },
    ];
    const state = html`<${Badge} word=${b.state}
        tone=${{ open: "good", "used-up": "bad" }[b.state]} />`;
    return html`<${Card} title=${b.name} more=${state}>
        <p>${money(b.spent_uusd)} of ${money(b.cap_uusd)} are spent
            (${percent(b.spent_uusd / b.cap_uusd)}).</p>
        <${Parts} name=${"budget " + b.name} parts=${parts} />
        <${Facts} rows=${[
            ["Covers", covers(b.match)],
            ["Period", periodOf(b)],
            ["Ends", html`<${Ago} at=${b.until} />`],
            [
                "Costs now",
                rate(b.uusd_per_hour) + (b.jobs ? ", " + count(b.jobs) + " running" : ""),
            ],
            ["Used up", html`<${Lasts} b=${b} />`],
            ["At its end", end === null ? NONE : money(end) + " at this rate"],
            ["At the limit", AT_LIMIT[b.at_limit]],
            ["Notifies at", b.alert_at.map((p) => p + " %").join(", ")],
            ["Last notified", b.told_percent && b.told_percent + " %"],
        ]} />
        <${Waiting} jobs=${jobs} all=${all} /></${Card}>`;
}

const columns = [
    { name: "Job", cell: (j) => html`<${JobLink} job=${j} />` },
    { name: "Name", cell: (j) => html`<${JobName} job=${j} />` },
    { name: "User", cell: (j) => j.user },
    { name: "Why it waits", cell: (j) => j.why.text, wide: true },
];

function Waiting({ jobs, all }) {
    if (!jobs || jobs.length === 0) return null;
    return html`<h3 class="card-part">Jobs that wait for
        it${!all && ", of the first 200 that wait"}</h3>
        <${Table} caption="Jobs that wait for this budget" columns=${columns} rows=${jobs}
            rowKey=${(j) => j.id} />`;
}
