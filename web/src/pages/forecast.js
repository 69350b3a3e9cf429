// SPDX-License-Identifier: Apache-2.0
// What this month is expected to cost, by team and against the budgets.
import { withQuery } from "../api.js";
import { useData } from "../data.js";
import { html, useMemo } from "../dom.js";
import {
    HISTORY_DAYS,
    LEAST_DAYS,
    capReachedAt,
    costQueryOf,
    daySums,
    endOf,
    historyOf,
    linesOf,
    modelOf,
    monthOf,
    monthSeries,
    standing,
    sumOf,
} from "../forecast.js";
import { DAY_MS, NONE, count, dayOf, money, percent } from "../format.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { Chart } from "../parts/chart.js";
import { Choice, Filters } from "../parts/fields.js";
import { Empty, Loaded } from "../parts/states.js";
import { Stat, Stats } from "../parts/stat.js";
import { HeadRow, Row, Table } from "../parts/table.js";
import { Moment } from "../parts/time.js";

const BUDGETS_MAX = 30; // each is a reading of its own
const TONES = {
    kept: "good",
    "may be exceeded": "warn",
    "likely exceeded": "bad",
    exceeded: "bad",
};

function since() {
    return dayOf(Date.now() - HISTORY_DAYS * DAY_MS) + "T00:00:00Z";
}

export function Forecast({ query }) {
    const chosen = query.get("team"),
        team = chosen ? (chosen === "-" ? "" : chosen) : null;
    const of = useData(withQuery("/api/v1/cost", { by: "day,team", from: since() }));
    return html`<${PageHead} title="Cost forecast" note="What this month, and the period of each
            budget, will have cost at its end" />
        <${Loaded} of=${of} lines=${8}>${({ lines }) =>
            html`<${Month} lines=${lines} team=${team} chosen=${chosen} />
                <${Teams} lines=${lines} />`}</${Loaded}>
        <${Budgets} />
        <${Method} />`;
}

/** Everything that is shown of some lines of days. */
function outlook(lines) {
    const now = Date.now(),
        sums = daySums(lines),
        history = historyOf(sums, now),
        model = modelOf(history),
        [from, until] = monthOf(now);
    const spent = sumOf(sums, from, until);
    const lastFrom = monthOf(from - 1)[0];
    return {
        now,
        sums,
        model,
        history,
        spent,
        last: now - lastFrom <= HISTORY_DAYS * DAY_MS ? sumOf(sums, lastFrom, from) : null,
        end: endOf(model, spent, now, until),
    };
}

const teamName = (team) => team || "(no team)";
const range = (end) => (end ? money(end.low) + " to " + money(end.high) : NONE);

function Month({ lines, team, chosen }) {
    const teams = [...new Set(lines.map((l) => l.keys[1]))].sort();
    const [o, chart] = useMemo(() => {
        const all = outlook(team === null ? lines : lines.filter((l) => l.keys[1] === team));
        return [all, monthSeries(all.sums, all.model, all.now)];
    }, [lines, team]);
    const options = [["", "all teams"], ...teams.map((t) => [t || "-", teamName(t)])];
    return html`<${Filters}><${Choice} name="team" label="Team" value=${chosen}
            options=${options} /></${Filters}>
        <${Stats}>
            <${Stat} name="Spent this month" value=${money(o.spent)} />
            <${Stat} name="Expected at its end" value=${o.end ? money(o.end.uusd) : NONE}
                note=${o.end && "8 of 10: " + range(o.end)} />
            ${
                o.last !== null &&
                html`<${Stat} name="Last month" value=${money(o.last)}
                note=${
                    o.end && o.last > 0 && "expected: " + percent(o.end.uusd / o.last) + " of it"
                } />`
            }
        </${Stats}>
        <${Card} title="This month">
            ${!o.model && html`<${TooLittle} days=${o.history.length} />`}
            <${Chart} name="Spent this month, and expected" times=${chart.times}
                series=${chart.series} format=${money} range=${monthOf(o.now)} height=${280} />
        </${Card}>`;
}

function TooLittle({ days }) {
    return html`<p class="hint">A forecast needs ${LEAST_DAYS} days with costs; there
        are ${count(days)} before today.</p>`;
}

const teamColumns = [
    {
        name: "Team",
        cell: (t) =>
            html`<a href=${withQuery("/console/forecast", { team: t.team || "-" })}>${teamName(
                t.team,
            )}</a>`,
    },
    { name: "Spent this month", cell: (t) => money(t.spent), number: true },
    { name: "Expected at its end", cell: (t) => (t.end ? money(t.end.uusd) : NONE), number: true },
    { name: "8 of 10", cell: (t) => range(t.end), number: true },
    { name: "Last month", cell: (t) => money(t.last), number: true },
];

function Teams({ lines }) {
    const rows = useMemo(
        () =>
            [...new Set(lines.map((l) => l.keys[1]))]
                .map((team) => ({ team, ...outlook(lines.filter((l) => l.keys[1] === team)) }))
                .sort((a, b) => (b.end || b).uusd - (a.end || a).uusd || b.spent - a.spent),
        [lines],
    );
    return html`<${Card} title="By team"><${Table} caption="The month of each team"
        columns=${teamColumns} rows=${rows} rowKey=${(t) => t.team}
        empty=${html`<${Empty} title="Nothing was spent in the last ${HISTORY_DAYS} days">A
            forecast follows from what ended attempts have cost.</${Empty}>`} /></${Card}>`;
}

const budgetColumns = [
    { name: "Budget", cell: (b) => html`<a href="/console/budgets">${b.name}</a>` },
    { name: "Period", cell: (b) => (b.period === "window" ? b.window : b.period) },
    { name: "Ends", cell: (b) => html`<${Moment} at=${b.until} />` },
    { name: "Spent", cell: (b) => money(b.spent_uusd), number: true },
    { name: "Expected at its end", cell: (b) => (b.end ? money(b.end.uusd) : NONE), number: true },
    { name: "8 of 10", cell: (b) => range(b.end), number: true },
    { name: "Cap", cell: (b) => money(b.cap_uusd), number: true },
    {
        name: "The cap is",
        cell: (b) =>
            b.end
                ? html`<${Badge} word=${b.standing} tone=${TONES[b.standing]} />`
                : html`<span class="quiet">${b.why}</span>`,
    },
    {
        name: "Reached",
        cell: (b) =>
            b.reached ? html`<${Moment} at=${new Date(b.reached).toISOString()} />` : NONE,
    },
];

function Budgets() {
    const of = useData("/api/v1/budgets", { on: ["budget"] });
    return html`<${Card} title="Against the budgets"><${Loaded} of=${of}>${({ budgets }) =>
        budgets.length === 0
            ? html`<${Empty} title="There are no budgets">An administrator sets them in budgets:
                of belayd's configuration.</${Empty}>`
            : html`<div class="table-box" tabindex="0" role="region"
                aria-label="Budgets"><table class="table">
                <caption class="sr-only">The period of each budget</caption>
                <thead><${HeadRow} columns=${budgetColumns} /></thead>
                <tbody>${budgets
                    .slice(0, BUDGETS_MAX)
                    .map((b) => html`<${BudgetRow} key=${b.name} b=${b} />`)}</tbody></table></div>
            ${
                budgets.length > BUDGETS_MAX &&
                html`<p class="hint">The first ${BUDGETS_MAX} of ${count(budgets.length)}.</p>`
            }`}</${Loaded}></${Card}>`;
}

function BudgetRow({ b }) {
    const cost = costQueryOf(b.match);
    const of = useData(cost && withQuery("/api/v1/cost", { ...cost, from: since() }));
    return html`<${Row} columns=${budgetColumns} row=${{ ...b, ...budgetOutlook(b, cost, of) }} />`;
}

/** The forecast of a budget, or why there is none. */
function budgetOutlook(b, cost, of) {
    if (!cost) return { why: "unknown: costs are not kept by what it covers" };
    if (b.state === "outside" || !b.until) return { why: "nothing counts now" };
    if (of.error && !of.data) return { why: of.error.message };
    if (!of.data) return { why: "loading" };
    const now = Date.now(),
        until = Date.parse(b.until),
        history = historyOf(daySums(linesOf(b.match, of.data.lines)), now),
        model = modelOf(history);
    if (!model) return { why: "unknown: only " + count(history.length) + " days of costs" };
    const end = endOf(model, b.spent_uusd, now, until);
    return {
        end,
        standing: standing(end, b.cap_uusd),
        reached: capReachedAt(model, b.spent_uusd, b.cap_uusd, now, until),
    };
}

function Method() {
    return html`<${Card} title="How it is computed"><p class="prose">A day to come is expected to
        cost the mean of the same weekday in the last ${HISTORY_DAYS} days. In 8 of 10 cases the end
        is in the range, if the days to come vary like those before; a new large job or a changed
        price is not foreseen. Days are those of UTC. An attempt counts on the day on which it ends;
        what running jobs have cost so far is in the sums of the budgets alone.</p>
        <p class="prose">What one job will cost on each offer: <code>belay cost forecast</code>,
        whose result <a href="/console/report">Reports</a> shows.</p></${Card}>`;
}
