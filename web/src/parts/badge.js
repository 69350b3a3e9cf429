// SPDX-License-Identifier: Apache-2.0
// States in one word and one colour, never by colour alone.
import { html } from "../dom.js";

const TONES = {
    good: ["succeeded", "running", "up", "active", "completed"],
    busy: [
        "pending",
        "cancelling",
        "stopping",
        "assigned",
        "starting",
        "launching",
        "requested",
        "paused",
    ],
    warn: [
        "timeout",
        "reclaimed",
        "evicted",
        "drained",
        "draining",
        "noticed",
        "budget",
        "window",
        "held",
        "capacity",
        "checkpointed",
        "drilled",
        "parked",
        "alert",
    ],
    bad: [
        "failed",
        "node-lost",
        "lost",
        "store",
        "store-away",
        "deadline",
        "dependency",
        "gang",
        "exhausted",
    ],
};
const toneOf = new Map(
    Object.entries(TONES).flatMap(([tone, words]) => words.map((w) => [w, tone])),
);

export function Badge({ word, tone }) {
    return html`<span class="badge badge-${tone || toneOf.get(word) || "plain"}">${word}</span>`;
}

/** What a job does now, or how it ended. */
export function JobState({ job }) {
    const held = job.state === "pending" && job.hold !== "none";
    return html`<${Badge} word=${job.state === "ended" ? job.end : held ? "held" : job.state} />`;
}
