// SPDX-License-Identifier: Apache-2.0
// What is held and not used, what was forgotten, and what to do about it.
import { get, post, withQuery } from "../api.js";
import { useData } from "../data.js";
import { html, useState } from "../dom.js";
import { DAY_MS, NONE, bytes, count, money, plural, rate } from "../format.js";
import { AskButton, useAsk } from "../parts/ask.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { Choice, Field, Filters } from "../parts/fields.js";
import { Stat, Stats } from "../parts/stat.js";
import { Empty, Failure, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Ago } from "../parts/time.js";
import { hasRole } from "../session.js";

const UNUSED = [
    ["", "30 days"],
    ["1", "a day"],
    ["7", "7 days"],
    ["14", "14 days"],
    ["90", "90 days"],
];
const VOLUMES = [
    ["", "no volumes"],
    ["own", "volumes of the cluster"],
    ["all", "all volumes of the accounts"],
];
const INSTANCES = [
    ["", "none"],
    ["all", "of others in the accounts"],
];

export function Advice({ query, user }) {
    const owner = query.get("user") || "",
        days = Number(query.get("days")),
        volumes = query.get("volumes") || "",
        instances = query.get("instances") || "";
    const advice = useData(withQuery("/api/v1/advice", { user: owner }), { on: ["job"] });
    const forgotten = useData(
        withQuery("/api/v1/forgotten", {
            user: owner,
            for_ms: days > 0 ? days * DAY_MS : null,
            volumes: volumes || (owner ? null : "none"),
            instances: owner ? null : instances,
        }),
    );
    const questions = useAsk(advice.reload);
    return html`<${PageHead} title="Advice"
        note="What costs money and does nothing, the most expensive first" />
        <${Filters}>
            <${Field} name="user" label="User" value=${owner} />
            <${Choice} name="days" label="Forgotten: not used for" value=${query.get("days")}
                options=${UNUSED} />
            ${
                !owner &&
                html`<${Choice} name="volumes" label="And of providers" value=${volumes}
                options=${hasRole("admin") ? VOLUMES : VOLUMES.slice(0, 2)} />`
            }
            ${
                !owner &&
                hasRole("admin") &&
                html`<${Choice} name="instances" label="And instances" value=${instances}
                options=${INSTANCES} />`
            }
        </${Filters}>
        ${questions.dialog}
        <${Card} title="Held and not used"><${Loaded} of=${advice}>
            ${(d) => html`<${Held} first=${d} owner=${owner} questions=${questions}
                user=${user} />`}</${Loaded}></${Card}>
        <${Card} title="Forgotten"><${Loaded} of=${forgotten}>${(d) =>
            html`<${Forgotten} d=${d} />`}</${Loaded}></${Card}>`;
}

function heldColumns(questions, user) {
    return [
        {
            name: "Of",
            cell: (a) =>
                a.job
                    ? html`<a href=${"/console/jobs/" + a.job}>job ${a.ref}</a> ${a.name}`
                    : html`node ${a.name}`,
        },
        { name: "User", cell: (a) => a.user || "" },
        { name: "Finding", cell: (a) => html`<${Badge} word=${a.code} tone="warn" />` },
        { name: "What is measured", cell: (a) => a.text, wide: true },
        { name: "What to do", cell: (a) => html`<code>${a.remedy}</code>` },
        {
            name: "Wasted",
            cell: (a) => (a.waste_uusd_per_hour > 0 ? rate(a.waste_uusd_per_hour) : NONE),
            number: true,
        },
        { name: "Costs", cell: (a) => rate(a.uusd_per_hour), number: true },
        {
            name: "Actions",
            cell: (a) =>
                a.can_reclaim &&
                (a.user === user.user || hasRole("operator")) &&
                html`<${AskButton} of=${questions} question=${asideQuestion(a)} label="Put aside"
                name=${"Put job " + a.ref + " aside"} />`,
        },
    ];
}

function asideQuestion(a) {
    return {
        title: "Put job " + a.ref + " aside",
        verb: "Save and stop it",
        danger: true,
        act: () => post("/api/v1/jobs/" + a.job + "/reclaim"),
        body: html`<p>The running attempt of ${a.name} is saved and stopped,
            and the job is held until it is released.
            Then it goes on from what was saved. Its owner may release it.</p>`,
    };
}

/** The first page is read with the others of the page; further ones on demand. */
function Held({ first, owner, questions, user }) {
    const [more, setMore] = useState({ of: null, items: [], next: null, looked: 0, error: null });
    const own = more.of === first ? more : { items: [], next: first.next, looked: 0, error: null };
    const read = async () => {
        try {
            const d = await get(withQuery("/api/v1/advice", { user: owner, after: own.next }));
            setMore({
                of: first,
                items: [...own.items, ...d.items],
                next: d.next,
                looked: own.looked + d.looked_at,
                error: null,
            });
        } catch (error) {
            setMore({ ...own, of: first, error });
        }
    };
    const rows = [...first.items, ...own.items];
    const waste = rows.reduce((sum, a) => sum + a.waste_uusd_per_hour, 0);
    return html`${
        rows.length > 0 &&
        html`<${Stats}><${Stat} name="Wasted now" value=${rate(waste)}
            note=${"in " + plural(rows.length, "finding")} /></${Stats}>`
    }
        <${Table} caption="Held and not used" columns=${heldColumns(questions, user)} rows=${rows}
            rowKey=${(a) => a.code + a.job + "." + a.node}
                empty=${html`<${Empty} title="Nothing is held without use">
                ${count(first.looked_at + own.looked)} running jobs were looked at.</${Empty}>`} />
        ${own.error && html`<${Failure} error=${own.error} />`}
        ${
            own.next !== null &&
            html`<button type="button" onClick=${read}>Look at more running
            jobs</button>`
        }`;
}

const forgottenColumns = [
    { name: "What", cell: (f) => html`<${Badge} word=${f.code} tone="warn" />` },
    {
        name: "Of",
        cell: (f) =>
            f.job ? html`<a href=${"/console/jobs/" + f.job}>job ${f.ref}</a> ${f.name}` : f.name,
        wide: true,
    },
    { name: "User", cell: (f) => f.user || "" },
    { name: "Not used since", cell: (f) => html`<${Ago} at=${f.since} />` },
    { name: "Size", cell: (f) => (f.bytes > 0 ? bytes(f.bytes) : NONE), number: true },
    {
        name: "Costs a day",
        cell: (f) => (f.uusd_per_day > 0 ? money(f.uusd_per_day) : NONE),
        number: true,
    },
    { name: "What to do", cell: (f) => html`<code>${f.remedy}</code>` },
];

function Forgotten({ d }) {
    return html`<${Table} caption="Forgotten" columns=${forgottenColumns} rows=${d.items}
            rowKey=${(f) => f.code + f.job + "." + f.node + "." + f.name}
                empty=${html`<${Empty} title="Nothing was forgotten">
                Kept checkpoints, held jobs, idle nodes and volumes stand here when nobody has used
                    them for${" "}
                ${plural(Math.round(d.for_ms / DAY_MS), "day")}.</${Empty}>`} />
        ${d.more && html`<p class="hint">There are over 500 of one kind; not all are shown.</p>`}
        ${d.unlisted.map(
            (u) => html`<p
            class="notice notice-warn">Pool ${u.pool} (${u.provider} ${u.region}) gave no list
            of${" "}
            ${u.what}: ${u.text}</p>`,
        )}`;
}
