// SPDX-License-Identifier: Apache-2.0
// The calendars of cron entries: days on which entries do not run, or alone run.
import { post } from "../api.js";
import { useData } from "../data.js";
import { html } from "../dom.js";
import { plural } from "../format.js";
import { AskButton, useAsk } from "../parts/ask.js";
import { Card } from "../parts/card.js";
import { FormRow } from "../parts/fields.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Moment } from "../parts/time.js";
import { hasRole } from "../session.js";

const DAYS = "[0-9\\-.\\s,]+";

export function Calendars() {
    const calendars = useData("/api/v1/calendars", { on: ["cron"] });
    const questions = useAsk(calendars.reload);
    const add =
        hasRole("operator") &&
        html`<${AskButton} of=${questions}
        question=${setQuestion(null)} label="New calendar" />`;
    return html`<${Card} title="Calendars" more=${add}>${questions.dialog}
        <${Loaded} of=${calendars}>${(d) => html`<${Table} caption="Calendars and their days"
            columns=${columnsOf(questions)} rows=${d.calendars} rowKey=${(c) => c.name}
            empty=${html`<${Empty} title="There are no calendars">A calendar names days on which
                entries do not run, or alone run, such as holidays.</${Empty}>`} />`}</${Loaded}>
        </${Card}>`;
}

function columnsOf(questions) {
    const columns = [
        { name: "Calendar", cell: (c) => html`<b>${c.name}</b>` },
        { name: "Days", cell: (c) => c.days.join(", "), wide: true },
        { name: "Number", cell: (c) => plural(c.n_days, "day"), number: true },
        { name: "Used by", cell: (c) => plural(c.crons, "entry", "entries"), number: true },
        {
            name: "From",
            cell: (c) =>
                c.source === "stored"
                    ? html`${c.set_by}, <${Moment} at=${c.set_at} />`
                    : "the configuration" + (c.hides_stored ? "; it hides a stored one" : ""),
        },
    ];
    const actions = (c) =>
        c.source === "stored" &&
        html`<span class="row-actions">
        <${AskButton} of=${questions} question=${setQuestion(c)} label="Change"
            name=${"Change calendar " + c.name} />
        <${AskButton} of=${questions} question=${removeQuestion(c)} label="Remove"
            name=${"Remove calendar " + c.name} /></span>`;
    return hasRole("operator") ? [...columns, { name: "Actions", cell: actions }] : columns;
}

/** @param c the calendar whose days are replaced; null for a new one */
function setQuestion(c) {
    return {
        title: c ? "Change calendar " + c.name : "New calendar",
        verb: c ? "Change" : "Add",
        act: (form) =>
            post("/api/v1/calendars", {
                name: c ? c.name : form.get("name").trim(),
                days: form
                    .get("days")
                    .split(/[\s,]+/)
                    .filter(Boolean),
            }),
        body: html`
            ${
                c
                    ? html`<p>Entries that name it follow at once.</p>`
                    : html`<${FormRow} label="Name">
                <input name="name" required maxlength="63" autocomplete="off" /></${FormRow}>`
            }
            <${FormRow} label="Days"
                hint="such as 2026-12-25 2026-12-31..2027-01-01; at most 1,000">
                <input name="days" required defaultValue=${c ? c.days.join(" ") : ""}
                    pattern=${DAYS}
                    title="days such as 2026-12-25, and ranges with two dots" autocomplete="off" />
            </${FormRow}>`,
    };
}

function removeQuestion(c) {
    return {
        title: "Remove calendar " + c.name,
        verb: "Remove",
        danger: true,
        act: () => post("/api/v1/calendars/remove", { name: c.name }),
        body: html`<p>Refused while entries name it.</p>`,
    };
}
