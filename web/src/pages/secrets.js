// SPDX-License-Identifier: Apache-2.0
// Secrets: their names and who may use them. No call shows a value, so none is here.
import { post } from "../api.js";
import { useData } from "../data.js";
import { html } from "../dom.js";
import { bytes } from "../format.js";
import { AskButton, useAsk } from "../parts/ask.js";
import { PageHead } from "../parts/card.js";
import { FormRow } from "../parts/fields.js";
import { Sheet } from "../parts/sheet.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Moment } from "../parts/time.js";
import { hasRole } from "../session.js";

const GRANT = "(user|team|pool):[A-Za-z0-9._\\-]+";

export function Secrets({ user }) {
    const secrets = useData("/api/v1/secrets");
    const questions = useAsk(secrets.reload);
    return html`<${PageHead} title="Secrets"
        note="Passwords and keys that jobs get as files or environment; values are never shown">
            ${
                hasRole("member") &&
                html`<${AskButton} of=${questions}
                question=${setQuestion(user, null)} label="New secret" />`
            }
        </${PageHead}>
        ${questions.dialog}
        <${Loaded} of=${secrets}>${(d) =>
            html`<${Sheet}><${Table} caption="Secrets" columns=${columnsOf(user, questions)}
            rows=${d.secrets} rowKey=${(s) => s.owner + "/" + s.name}
                empty=${html`<${Empty} title="There are no secrets">
                A job names the secrets that it gets: <code>belay submit --secret
                    NAME</code>.</${Empty}>`} /></${Sheet}>`}</${Loaded}>`;
}

function columnsOf(user, questions) {
    const may = (s) => hasRole("admin") || (hasRole("member") && s.owner === user.user);
    return [
        { name: "Name", cell: (s) => html`<b>${s.name}</b>` },
        { name: "Owner", cell: (s) => s.owner },
        { name: "Size", cell: (s) => bytes(s.bytes), number: true },
        {
            name: "Set",
            cell: (s) =>
                html`<${Moment} at=${s.set_at} />${s.set_by !== s.owner && " by " + s.set_by}`,
        },
        {
            name: "Also for",
            cell: (s) => (s.grants.length > 0 ? s.grants.join(", ") : "its owner only"),
            wide: true,
        },
        {
            name: "Actions",
            cell: (s) =>
                may(s) &&
                html`<span class="row-actions">
            <${AskButton} of=${questions} question=${setQuestion(user, s)} label="Replace"
                name=${"Replace " + s.name} />
            <${AskButton} of=${questions} question=${grantQuestion(user, s)} label="Share"
                name=${"Share " + s.name} />
            <${AskButton} of=${questions} question=${removeQuestion(user, s)} label="Remove"
                name=${"Remove " + s.name} />
        </span>`,
        },
    ];
}

/** Only administrators may name an owner. */
function named(user, name, owner) {
    return owner === user.user ? { name } : { name, owner };
}

/** @param s the secret whose value is replaced; null for a new one */
function setQuestion(user, s) {
    return {
        title: s ? "Replace the value of " + s.name : "New secret",
        verb: s ? "Replace" : "Set",
        act: (form) => {
            const owner = s ? s.owner : (form.get("owner") || "").trim() || user.user;
            const name = s ? s.name : form.get("name").trim();
            return post("/api/v1/secrets", {
                ...named(user, name, owner),
                value: form.get("value"),
            });
        },
        body: html`
            ${
                s
                    ? html`<p>Jobs that start from now on get the new value.</p>`
                    : html`
                <${FormRow} label="Name"><input name="name" required maxlength="63"
                    autocomplete="off"
                    pattern="[A-Za-z0-9._\\-]+"
                    title="letters, digits, '.', '_' and '-'" /></${FormRow}>
                ${
                    hasRole("admin") &&
                    html`<${FormRow} label="Owner" hint="you, if it is empty">
                    <input name="owner" maxlength="63" autocomplete="off" /></${FormRow}>`
                }`
            }
            <${FormRow} label="Value"
                hint="8 bytes to 64 KiB, exactly as it is here; stored encrypted, never shown">
                <textarea name="value" class="mono masked" rows="4" required minlength="8"
                    maxlength="65536"
                    autocomplete="off" spellcheck="false"></textarea></${FormRow}>`,
    };
}

function words(text) {
    return text.split(/[\s,]+/).filter(Boolean);
}

function grantQuestion(user, s) {
    return {
        title: "Who may use " + s.name,
        verb: "Change",
        act: (form) => {
            const wanted = words(form.get("grants"));
            return post("/api/v1/secrets/grant", {
                ...named(user, s.name, s.owner),
                add: wanted.filter((g) => !s.grants.includes(g)),
                remove: s.grants.filter((g) => !wanted.includes(g)),
            });
        },
        body: html`<p>Its owner may always use it. Jobs of those named here may use it as well,
            and can read its value.</p>
            <${FormRow} label="Also for"
                hint="user:NAME, team:NAME or pool:NAME, separated by blanks; at most 32">
                <input name="grants" defaultValue=${s.grants.join(" ")} maxlength="2048"
                    autocomplete="off"
                    pattern=${"\\s*(" + GRANT + "([\\s,]+|$))*"}
                        title="user:NAME, team:NAME or pool:NAME" /></${FormRow}>`,
    };
}

function removeQuestion(user, s) {
    return {
        title: "Remove " + s.name,
        verb: "Remove",
        danger: true,
        act: () => post("/api/v1/secrets/remove", named(user, s.name, s.owner)),
        body: html`<p>Jobs that run keep the value that they got. The next attempt of a job that
            names it fails, and says so.</p>`,
    };
}
