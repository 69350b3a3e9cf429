// SPDX-License-Identifier: Apache-2.0
// Cron entries: their state, next times and last outcomes, and a calendar of the next nights.
import { withQuery } from "../api.js";
import { useData } from "../data.js";
import { html } from "../dom.js";
import { NONE, duration } from "../format.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { Choice, Field, Filters } from "../parts/fields.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Ago, Moment } from "../parts/time.js";
import { Calendars } from "./calendars.js";
import { Calendar } from "./cron_calendar.js";
import { NIGHTS } from "./cron_nights.js";

const SHOWN = [
    ["", "all"],
    ["active", "active"],
    ["paused", "paused"],
    ["failing", "last run not well"],
];

export function Crons({ query }) {
    const user = query.get("user"),
        show = query.get("show"),
        name = query.get("name") || "";
    const crons = useData(withQuery("/api/v1/crons", { user, runs: 5 }), { on: ["cron", "job"] });
    const plan = useData("/api/v1/crons/plan?days=" + (NIGHTS + 1), { on: ["cron"] });
    const usual = new Map(plan.data ? plan.data.crons.map((c) => [c.id, c.usual_ms]) : []);
    const wanted = (c) =>
        c.name.includes(name) && (!show || (show === "failing" ? isFailing(c) : c.state === show));
    const inPlan = (p) => ({
        ...p,
        crons: p.crons.filter((c) => (!user || c.user === user) && c.name.includes(name)),
    });
    return html`<${PageHead} title="Cron" note="Jobs that belay submits by a schedule" />
        <${Filters}>
            <${Choice} name="show" label="Show" value=${show} options=${SHOWN} />
            <${Field} name="name" label="Name has" value=${name} />
            <${Field} name="user" label="User" value=${user} />
        </${Filters}>
        <${Card} title="Entries"><${Loaded} of=${crons}>${(d) =>
            html`<${Table} caption="Cron entries"
            columns=${columnsOf(usual)} rows=${d.crons.filter(wanted)} rowKey=${(c) => c.id}
            empty=${html`<${Empty} title="No entry is like that">
                <code>belay cron add "30 2 * * *" script.sh</code> adds
                    one.</${Empty}>`} />`}</${Loaded}></${Card}>
        <${Card} title=${"The next " + NIGHTS + " nights"}><${Loaded} of=${plan} lines=${8}>
            ${(d) => html`<${Calendar} plan=${inPlan(d)} />`}</${Loaded}></${Card}>
        <${Calendars} />`;
}

/** Whether the newest run that is over did not end well. */
export function isFailing(cron) {
    const over = (cron.runs || []).find((r) => r.outcome !== "started" || r.end !== null);
    return (
        over !== undefined &&
        (over.outcome === "refused" ||
            over.outcome === "missed" ||
            (over.outcome === "started" && over.end !== "succeeded"))
    );
}

/** Its times, in the words of its schedule. */
export function scheduleText(c) {
    if (c.after !== null)
        return (
            "after " +
            (c.after_name || "entry " + c.after) +
            (c.after_end === "well" ? ", if it ended well" : "")
        );
    return c.schedule + (c.zone === "UTC" ? " (UTC)" : " (" + c.zone + ")");
}

/** How a run ended, in a word that leads to its job. */
export function Outcome({ run }) {
    const word =
        run.outcome !== "started" ? run.outcome : run.end || (run.ended_at ? "ended" : "running");
    const tone = { missed: "bad", refused: "bad", skipped: "warn" }[word];
    const badge = html`<${Badge} word=${word} tone=${tone} />`;
    return run.job
        ? html`<a href=${"/console/jobs/" + run.job}
        title=${"job " + run.job}>${badge}</a>`
        : badge;
}

function columnsOf(usual) {
    const ms = (c) => usual.get(c.id);
    return [
        { name: "Entry", cell: (c) => html`<a href=${"/console/cron/" + c.id}>${c.name}</a>` },
        { name: "User", cell: (c) => c.user },
        {
            name: "State",
            cell: (c) => html`<${Badge} word=${c.state}
            tone=${c.state === "paused" ? "warn" : undefined} />
            ${c.why && html`<p class="notice notice-bad">${c.why}</p>`}`,
        },
        { name: "Runs", cell: (c) => html`<code>${scheduleText(c)}</code>` },
        {
            name: "Next",
            cell: (c) =>
                c.next_at
                    ? html`<${Ago} at=${c.next_at} /> <span class="quiet">(<${Moment}
            at=${c.next_at} />)</span>`
                    : NONE,
        },
        { name: "Usually", cell: (c) => (ms(c) ? duration(ms(c)) : NONE), number: true },
        {
            name: "Last outcomes",
            cell: (c) =>
                html`<span class="outcomes">${(c.runs || []).map(
                    (r) => html`<${Outcome}
            key=${r.number} run=${r} />`,
                )}${(c.runs || []).length === 0 && NONE}</span>`,
        },
    ];
}
