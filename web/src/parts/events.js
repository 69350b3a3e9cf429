// SPDX-License-Identifier: Apache-2.0
// Rows of the event log, newest first, with links to what they are about.
import { html } from "../dom.js";
import { Badge } from "./badge.js";
import { Empty } from "./states.js";
import { Moment } from "./time.js";

const TONES = {
    good: ["joined", "saved", "restored", "returned", "recovered", "boots-again", "drill-passed"],
    warn: [
        "notice",
        "drain",
        "auto-drain",
        "throttled",
        "disk-full",
        "budget",
        "spend-anomaly",
        "reclaim",
        "late",
        "offer-refused",
        "launch-refused",
        "requeued",
        "preempt",
        "idle-gpus",
        "in-vain",
    ],
    bad: [
        "lost",
        "fault",
        "save-failed",
        "restore-failed",
        "boot-failed",
        "damaged",
        "drill-failed",
        "clean-failed",
        "prefetch-failed",
        "store-refused",
        "no-credentials",
    ],
};
const toneOf = new Map(
    Object.entries(TONES).flatMap(([tone, kinds]) => kinds.map((k) => [k, tone])),
);

/** The kind and the text of an event, which may begin with it: "reclaim notice on n1". */
export function partsOf({ kind, text }) {
    const kinds = kind === "notice" ? `(?:[a-z]+ )?${kind}` : kind;
    const found = text && new RegExp(`^${kinds}(?= |$)`).exec(text);
    return found
        ? { word: found[0], rest: text.slice(found[0].length).trim() }
        : { word: kind, rest: text };
}

/**
 * @param events as the API lists them, oldest first
 * @param empty the title where there are none, `hint` what would make some be here
 * @param here the node whose page this is; it has no links to itself
 */
export function EventList({ events, here, empty = "No events", hint }) {
    if (events.length === 0) return html`<${Empty} title=${empty}>${hint}</${Empty}>`;
    return html`<ol class="events">${[...events]
        .reverse()
        .map((e) => html`<${Line} key=${e.id} e=${e} here=${here} />`)}</ol>`;
}

function Line({ e, here }) {
    const { word, rest } = partsOf(e);
    return html`<li><${Moment} at=${e.at} /> <${Badge} word=${word}
        tone=${toneOf.get(e.kind)} /> ${" "}
        ${e.job && html`<a href=${"/console/jobs/" + e.job}>job ${e.ref || e.job}</a> `}
        ${
            e.node &&
            e.node !== here &&
            html`<a href=${"/console/nodes/" + e.node}>node ${e.node}</a> `
        }
        ${
            e.instance &&
            !e.node &&
            html`<a href=${
                "/console/instances?state=all&id=" + e.instance
            }>instance ${e.instance}</a> `
        }
        <span>${rest}</span></li>`;
}
