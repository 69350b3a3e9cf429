// SPDX-License-Identifier: Apache-2.0
// The fields of "Change": what people change most. `belay update` changes everything.
import { html } from "../dom.js";
import { parseDuration, writeDuration } from "../units.js";

/* name of the API; of the job, in the form's text; from text to the API's value */
const FIELDS = [
    { name: "name", label: "Name", from: (j) => j.name, to: (t) => t },
    {
        name: "time_limit_ms",
        label: "Time limit of an attempt",
        hint: "2h30m; empty: none",
        from: (j) => writeDuration(j.time_limit_ms),
        to: (t) => parseDuration(t) ?? 0,
    },
    {
        name: "nice",
        label: "Nice: minutes later in the queue",
        from: (j) => String(j.nice),
        to: Number,
        type: "number",
    },
    {
        name: "max_uusd",
        label: "Most it may cost, in dollars",
        hint: "empty: no limit",
        from: (j) => (j.max_uusd ? String(j.max_uusd / 1e6) : ""),
        to: (t) => Math.round(Number(t) * 1e6),
        type: "number",
    },
    {
        name: "pool",
        label: "Pools",
        hint: "empty: any",
        pending: true,
        from: (j) => j.pool || "",
        to: (t) => t,
    },
    {
        name: "market",
        label: "Market",
        pending: true,
        choices: ["any", "spot", "on-demand"],
        from: (j) => j.market,
        to: (t) => t,
    },
    {
        name: "url",
        label: "Page of the experiment",
        hint: "https://…",
        from: (j) => j.url || "",
        to: (t) => t,
    },
];

function fieldsOf(job) {
    return FIELDS.filter((f) => !f.pending || job.state === "pending");
}

export function UpdateFields({ job }) {
    return html`<div class="form">${fieldsOf(job).map(
        (f) => html`<label key=${f.name}>${f.label}
        ${
            f.choices
                ? html`<select name=${f.name}>${f.choices.map(
                      (c) => html`<option selected=${c === f.from(job)}>${c}</option>`,
                  )}</select>`
                : html`<input name=${f.name} type=${f.type || "text"} min=${f.type ? 0 : undefined}
                    step="any" defaultValue=${f.from(job)} placeholder=${f.hint || ""} />`
        }
    </label>`,
    )}</div>`;
}

/** The members that differ from the job's; throws if there are none, or a text cannot be read. */
export function changesOf(form, job) {
    const changes = {};
    for (const f of fieldsOf(job)) {
        const text = form.get(f.name).trim();
        if (text !== f.from(job)) changes[f.name] = f.to(text);
    }
    if (Object.keys(changes).length === 0)
        throw new Error("Nothing was changed: change a field, or go back.");
    return changes;
}
