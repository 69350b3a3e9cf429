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

/**
 * @param events as the API lists them, oldest first
 * @param here the node whose page this is; it has no links to itself
 */
export function EventList({ events, here, empty = "No events" }) {
    if (events.length === 0) return html`<${Empty} title=${empty} />`;
    return html`<ol class="events">${[...events]
        .reverse()
        .map((e) => html`<${Line} key=${e.id} e=${e} here=${here} />`)}</ol>`;
}

function Line({ e, here }) {
    return html`<li><${Moment} at=${e.at} /> <${Badge} word=${e.kind}
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
        <span>${e.text}</span></li>`;
}
