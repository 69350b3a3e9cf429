// SPDX-License-Identifier: Apache-2.0
// The audit log: who changed what, from where, with which result; and whether it is complete.
import { get, withQuery } from "../api.js";
import { useData } from "../data.js";
import { html, useState } from "../dom.js";
import { count } from "../format.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { Choice, Field, Filters } from "../parts/fields.js";
import { Sheet } from "../parts/sheet.js";
import { Empty, Failure, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Moment } from "../parts/time.js";
import { setQuery } from "../router.js";

const PAGE = 100;
const NEWEST = Number.MAX_SAFE_INTEGER;
const SINCE = [
    ["", "any time"],
    ["1", "last 24 hours"],
    ["7", "last 7 days"],
    ["30", "last 30 days"],
];
const RESULTS = [
    ["", "any result"],
    ["refused", "not done"],
    ["ok", "done"],
];

export function AuditLog({ query }) {
    const days = Number(query.get("days")),
        result = query.get("result"),
        route = query.get("route") || "";
    const [openedAt] = useState(Date.now());
    const path = withQuery("/api/v1/admin/audit-log", {
        before: query.get("before") || NEWEST,
        user: query.get("user"),
        limit: PAGE,
        since: days > 0 ? new Date(openedAt - days * 86400000).toISOString() : null,
    });
    const of = useData(path, { on: ["job", "node", "cron"] });
    const shown = (row) =>
        (!result || (row.result === "ok") === (result === "ok")) &&
        (!route || (row.route + " " + row.object).toLowerCase().includes(route.toLowerCase()));
    return html`<${PageHead} title="Audit log"
            note="Every call that changed something, or tried to; the newest first" />
        <${Chain} />
        <${Filters}>
            <${Choice} name="days" label="Made in the" value=${query.get("days")}
                options=${SINCE} />
            <${Field} name="user" label="User" value=${query.get("user")} />
            <${Choice} name="result" label="Result" value=${result} options=${RESULTS} />
            <${Field} name="route" label="Call or object has" value=${route} hint="jobs" />
        </${Filters}>
        <${Loaded} of=${of} lines=${8}>${(d) => html`<${Sheet}>
            <${Table} caption="Calls" columns=${columns} rows=${d.rows.filter(shown)}
                rowKey=${(r) => r.seq}
                empty=${html`<${Empty} title="No call is like that">${
                    d.rows.length === PAGE &&
                    "None of the " + PAGE + " on this page; older ones may be."
                }</${Empty}>`} />
            <${Pages} rows=${d.rows} isFirst=${!query.get("before")} /></${Sheet}>`}</${Loaded}>`;
}

const columns = [
    { name: "Row", cell: (r) => r.seq, number: true },
    { name: "When", cell: (r) => html`<${Moment} at=${r.at} />` },
    { name: "User", cell: (r) => r.user || html`<span class="quiet">unknown</span>` },
    { name: "Call", cell: (r) => html`<code>${r.route}</code>` },
    { name: "Object", cell: (r) => r.object },
    {
        name: "Result",
        cell: (r) => html`<${Badge} word=${r.result} tone=${r.result === "ok" ? "good" : "bad"} />`,
    },
    {
        name: "From",
        cell: (r) => html`<span class="quiet"
        title=${"request " + r.request}>${r.source}</span>`,
    },
];

function Pages({ rows, isFirst }) {
    const go = (before) => {
        setQuery({ before });
        scrollTo(0, 0);
    };
    return html`<nav class="page-actions" aria-label="Pages of the log">
        <button type="button" disabled=${isFirst} onClick=${() => go("")}>Newest</button>
        <button type="button" disabled=${rows.length < PAGE}
            onClick=${() => go(String(rows[rows.length - 1].seq))}>Older</button></nav>`;
}

/** Checks the chain of hashes when asked to: it reads the whole log. */
function Chain() {
    const [state, setState] = useState({});
    const verify = async () => {
        setState({ busy: true });
        try {
            setState({ found: await get("/api/v1/admin/audit-log/verify") });
        } catch (error) {
            setState({ error });
        }
    };
    return html`<${Card} title="Completeness"
        more=${html`<button type="button" disabled=${state.busy}
            onClick=${verify}>${state.busy ? "Verifying …" : "Verify"}</button>`}>
        <p class="hint">Each row holds the hash of the one before, so a row that was changed,
            removed or inserted
            is found. Keep the head elsewhere: a log that lacks a head from before was cut.</p>
        ${state.error && html`<${Failure} error=${state.error} />`}
        ${state.found && html`<${Found} found=${state.found} />`}</${Card}>`;
}

function Found({ found }) {
    if (found.fault)
        return html`<p class="notice notice-bad" role="alert"><b>The log is not as it was
            written:</b> ${found.fault}</p>`;
    return html`<p class="notice" role="status"><b>Complete:</b> all hashes agree up to
        row ${count(found.rows)}.${" "}
        Head: <code class="shown-once">${found.rows}:${found.hash}</code></p>`;
}
