// SPDX-License-Identifier: Apache-2.0
// Why a job waits, who is ahead, when it should start, and what would start it now.
import { post } from "../api.js";
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count } from "../format.js";
import { mayChange } from "../session.js";
import { AskButton, useAsk } from "./ask.js";
import { Card } from "./card.js";
import { Loaded } from "./states.js";
import { Ago } from "./time.js";

export function JobWhy({ job, changed }) {
    const why = useData("/api/v1/jobs/" + job.id + "/why", {
        on: ["job", "node", "instance", "summary"],
    });
    return html`<${Card} title="Why it waits"><${Loaded} of=${why}>${(w) => html`
        <ul>${w.reasons.map((r) => html`<li key=${r.code}>${r.text}</li>`)}</ul>
        ${
            w.warnings.length > 0 &&
            html`<ul class="notice notice-warn">${w.warnings.map(
                (r) => html`<li>${r.text}</li>`,
            )}</ul>`
        }
        ${
            w.ahead &&
            w.ahead.count > 0 &&
            html`<p>Ahead in the queue: ${
                w.ahead.exact ? "" : "about "
            }${count(w.ahead.count)}, first${" "}
            ${w.ahead.first.map(
                (a, i) => html`${i > 0 && ", "}<a
                href=${"/console/jobs/" + a.id}>${a.ref}</a> of ${a.user}`,
            )}</p>`
        }
        ${w.estimate && html`<${Estimate} e=${w.estimate} />`}
        ${
            w.changes.length > 0 &&
            html`<h3>What would start it at once</h3>
            <ul class="remedies">${w.changes.map(
                (c) => html`<${Remedy} key=${c.code} job=${job} change=${c} changed=${changed} />`,
            )}</ul>`
        }`}</${Loaded}></${Card}>`;
}

function Estimate({ e }) {
    if (e.unknown) return html`<p>When it starts is not known: ${e.unknown}.</p>`;
    if (e.now) return html`<p>It can start now${e.node ? " on " + e.node : ""}.</p>`;
    return html`<p>It should start <${Ago} at=${e.median} />${
        e.latest && html`, at the latest <${Ago} at=${e.latest} />`
    }${e.pool && " in pool " + e.pool}.</p>`;
}

/* code of a change => the member to change, its number in the text: "with 1 cpu instead of 64" */
const NUMBER = /with (\d+)/;
const UPDATES = { cpus: "cpus", gpus: "gpus", nodes: "nodes" };

function Remedy({ job, change, changed }) {
    const of = useAsk(changed);
    const found = NUMBER.exec(change.text),
        member = UPDATES[change.code];
    const body = change.code === "hold" ? {} : member && found && { [member]: Number(found[1]) };
    const path = change.code === "hold" ? "release" : "update";
    const question = {
        title: "Change job " + job.ref,
        verb: "Change it",
        act: () => post("/api/v1/jobs/" + job.id + "/" + path, body),
        body: html`<p>${change.text}.</p>`,
    };
    return html`<li>${change.text} ${
        body &&
        mayChange(job) &&
        html`<${AskButton} of=${of} question=${question} label="Do this" />`
    }
        ${of.dialog}</li>`;
}
