// SPDX-License-Identifier: Apache-2.0
// API tokens, join tokens and logins: what they may do, when they were used; creating and revoking.
import { post } from "../api.js";
import { useData } from "../data.js";
import { html, useState } from "../dom.js";
import { DAY_MS } from "../format.js";
import { Badge } from "../parts/badge.js";
import { PageHead } from "../parts/card.js";
import { AskButton, useAsk } from "../parts/ask.js";
import { FormRow } from "../parts/fields.js";
import { Sheet } from "../parts/sheet.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Ago, Moment } from "../parts/time.js";
import { hasRole } from "../session.js";

const LIFETIMES = [
    ["", "as configured"],
    ["1", "1 day"],
    ["7", "7 days"],
    ["30", "30 days"],
    ["90", "90 days"],
    ["365", "365 days"],
];
const ROLES = ["viewer", "member", "lead", "operator", "admin"];
const SCOPES = [
    ["", "all that its role allows"],
    ["read-only", "reading only"],
    ["metrics", "GET /metrics only"],
    ["ci", "submitting, changing and following jobs"],
];

export function Tokens({ user }) {
    const tokens = useData("/api/v1/tokens");
    const [made, setMade] = useState(null);
    const questions = useAsk(tokens.reload);
    const create = createQuestion(user, setMade);
    return html`<${PageHead} title="Tokens" note=${hasRole("admin") ? "Of all users" : "Yours"}>
            ${
                hasRole("member") &&
                html`<${AskButton} of=${questions} question=${create}
                label="New token" />`
            }
            ${
                hasRole("admin") &&
                html`<${AskButton} of=${questions}
                question=${joinQuestion(setMade)}
                label="New join token" />`
            }</${PageHead}>
        ${questions.dialog}
        ${made && html`<${Made} made=${made} close=${() => setMade(null)} />`}
        <${Loaded} of=${tokens}>${(d) =>
            html`<${Sheet}><${Table} caption="Tokens" columns=${columnsOf(questions)}
            rows=${[...d.tokens].sort((a, b) => a.revoked - b.revoked || b.id - a.id)}
                rowKey=${(t) => t.id}
            empty=${html`<${Empty} title="There are no tokens">A token lets a program,
                or the command line on
                another machine, act for a user.</${Empty}>`} /></${Sheet}>`}</${Loaded}>`;
}

function stateOf(t) {
    if (t.revoked) return "revoked";
    return t.expires_at && Date.parse(t.expires_at) < Date.now() ? "expired" : "active";
}

function columnsOf(questions) {
    return [
        { name: "Token", cell: (t) => t.id, number: true },
        { name: "Kind", cell: (t) => t.kind },
        { name: "User", cell: (t) => t.user || (t.pool && "pool " + t.pool) || "" },
        {
            name: "May do",
            cell: (t) =>
                [t.role && "role " + t.role, t.scope].filter(Boolean).join(", ") ||
                (t.kind === "join" ? "let a node join" : "all that its user may"),
        },
        { name: "State", cell: (t) => html`<${Badge} word=${stateOf(t)} />` },
        { name: "Created", cell: (t) => html`<${Moment} at=${t.created_at} />` },
        {
            name: "Last used",
            cell: (t) => (t.used_at ? html`<${Ago} at=${t.used_at} />` : "never"),
        },
        {
            name: "Expires",
            cell: (t) => (t.expires_at ? html`<${Ago} at=${t.expires_at} />` : "never"),
        },
        {
            name: "Actions",
            cell: (t) =>
                stateOf(t) === "active" &&
                hasRole("member") &&
                html`<${AskButton} of=${questions}
            question=${revokeQuestion(t)} label="Revoke" name=${"Revoke token " + t.id} />`,
        },
    ];
}

function revokeQuestion(t) {
    return {
        title: "Revoke token " + t.id,
        verb: "Revoke",
        danger: true,
        act: () => post("/api/v1/tokens/" + t.id + "/revoke"),
        body: html`<p>Whatever uses it is refused from now on. It cannot be made valid again.</p>`,
    };
}

/** {ttl_ms} of a form's field, or {} */
function lifetime(form) {
    return form.get("days") ? { ttl_ms: Number(form.get("days")) * DAY_MS } : {};
}

const options = (list) =>
    list.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`);

function createQuestion(user, setMade) {
    const roles = ROLES.slice(0, ROLES.indexOf(user.role) + 1);
    return {
        title: "New token",
        verb: "Create",
        act: async (form) => {
            const body = { kind: "api", ...lifetime(form) };
            for (const name of ["user", "role", "scope"])
                if (form.get(name)) body[name] = form.get(name).trim();
            setMade(await post("/api/v1/tokens", body));
        },
        body: html`
            ${
                hasRole("admin") &&
                html`<${FormRow} label="User" hint="yours, if it is empty">
                <input name="user" maxlength="63" autocomplete="off" /></${FormRow}>`
            }
            <${FormRow} label="Role, at most"><select name="role">
                ${options([
                    ["", "that of its user"],
                    ...roles.map((r) => [r, r]),
                ])}</select></${FormRow}>
            <${FormRow} label="May be used for"><select
                name="scope">${options(SCOPES)}</select></${FormRow}>
            <${FormRow} label="Valid for"><select
                name="days">${options(LIFETIMES)}</select></${FormRow}>
            <p class="hint">The token is shown once, after this. Whoever has it acts as its
                user.</p>`,
    };
}

function joinQuestion(setMade) {
    return {
        title: "New join token",
        verb: "Create",
        act: async (form) => {
            const pool = form.get("pool").trim();
            setMade(
                await post("/api/v1/tokens", {
                    kind: "join",
                    ...(pool ? { pool } : {}),
                    ...lifetime(form),
                }),
            );
        },
        body: html`<p>A machine that has it becomes a node of the cluster.</p>
            <${FormRow} label="Pool" hint="may be empty if only one pool has machines of your own">
                <input name="pool" maxlength="63" autocomplete="off" /></${FormRow}>
            <${FormRow} label="Valid for"><select
                name="days">${options(LIFETIMES)}</select></${FormRow}>`,
    };
}

function Made({ made, close }) {
    const [copied, setCopied] = useState("");
    const copy = () =>
        navigator.clipboard.writeText(made.token).then(
            () => setCopied("Copied"),
            () => setCopied("The browser does not allow it: select the token and copy it"),
        );
    return html`<div class="notice notice-warn" role="status">
        <p><b>Token ${made.id}, shown this once:</b></p>
        <code class="shown-once">${made.token}</code>
        <p class="hint">Expires: ${
            made.expires_at ? html`<${Moment} at=${made.expires_at} />` : "never"
        }</p>
        <div class="row-actions">${
            navigator.clipboard && html`<button type="button" onClick=${copy}>Copy</button>`
        }
            <button type="button" onClick=${close}>Done</button> <span
                role="status">${copied}</span></div></div>`;
}
