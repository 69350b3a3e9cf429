// SPDX-License-Identifier: Apache-2.0
// The fields of a new reservation, and the call's body that they make.
import { html } from "../dom.js";
import { FormRow } from "./fields.js";

const HOUR_MS = 3600000;

export function ReservationForm() {
    return html`
        <${FormRow} label="Name"><input name="name" required maxlength="63"
            pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*"
            autocomplete="off" placeholder="firmware-november" /></${FormRow}>
        <${FormRow} label="Nodes" hint="A list such as n1,n[3-5]. Leave it out to reserve a pool.">
            <input name="nodes" maxlength="4000" autocomplete="off" /></${FormRow}>
        <${FormRow} label="Pool" hint="All of its nodes, also those that join later.">
            <input name="pool" maxlength="63" autocomplete="off" /></${FormRow}>
        <${FormRow} label="From" hint=${`In your zone, ${zone()}. Empty: now.`}>
            <input name="from" type="datetime-local" /></${FormRow}>
        <${FormRow} label="Hours"><input name="hours" type="number" min="0.1" max="8784" step="any"
            required value="2" /></${FormRow}>
        <${FormRow} label="Repeat"><select name="every"><option value="never">never</option>
            <option value="week">every week</option></select></${FormRow}>
        <${FormRow} label="Reason" hint="Shown to all users."><input name="reason"
            maxlength="127" /></${FormRow}>
        <${FormRow} label="Users who may use the nodes meanwhile"
            hint="Separated by commas; may be empty.">
            <input name="users" maxlength="1100" autocomplete="off" /></${FormRow}>
        <${FormRow} label="Teams who may use them" hint="Separated by commas; may be empty.">
            <input name="teams" maxlength="1100" autocomplete="off" /></${FormRow}>
        <p>Jobs that would still run at its start are not started on these nodes; running ones are
            saved
            and moved. Jobs that cannot be saved are listed as in the way.</p>`;
}

function zone() {
    return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** @param form FormData of ReservationForm */
export function reservationOf(form) {
    const text = (name) => (form.get(name) || "").trim();
    const list = (name) =>
        text(name)
            .split(",")
            .map((word) => word.trim())
            .filter(Boolean);
    const body = {
        name: text("name"),
        for_ms: Math.round(Number(text("hours")) * HOUR_MS),
        every: text("every") || "never",
        zone: zone(),
    };
    for (const name of ["nodes", "pool", "reason"]) if (text(name)) body[name] = text(name);
    if (text("from")) body.from = new Date(text("from")).toISOString();
    for (const name of ["users", "teams"]) if (list(name).length > 0) body[name] = list(name);
    return body;
}
