// SPDX-License-Identifier: Apache-2.0
// What can be done with a job now: one row each, with what it says before it is done.
import { post } from "../api.js";
import { html } from "../dom.js";
import { NONE, duration } from "../format.js";
import { mayChange } from "../session.js";
import { useAsk } from "./ask.js";
import { UpdateFields, changesOf } from "./job_update.js";

const saves = (j) => j.checkpoint.method !== "none";
const check = (name, text) =>
    html`<label class="check"><input type="checkbox" name=${name} /> ${text}</label>`;
const flags = (form, ...names) =>
    Object.fromEntries(names.filter((n) => form.get(n)).map((n) => [n, true]));

/* title: of the button; when: whether the job is such that it applies; says: what will happen */
export const ACTIONS = [
    {
        key: "save",
        title: "Save now",
        path: "save",
        when: (j) => j.state === "running" && saves(j),
        says: (j) =>
            "The program is asked for a checkpoint and runs on. The last save took " +
            duration(j.save_ms) +
            ".",
    },
    {
        key: "requeue",
        title: "Requeue",
        path: "requeue",
        when: (j) => j.state === "running",
        says: (j) =>
            saves(j)
                ? "The job is saved, stopped and queued again, and resumes there. " +
                  "If the save fails, it runs on."
                : "The job saves nothing: it is stopped, queued again, and begins from the start.",
        fields: (j) =>
            saves(j)
                ? [
                      check("force", "stop it even if the save fails"),
                      check("from_scratch", "start over: do not save, use no checkpoint"),
                  ]
                : null,
        body: (form) => flags(form, "force", "from_scratch"),
    },
    {
        key: "hold",
        title: "Hold",
        path: "hold",
        when: (j) => j.state !== "ended" && j.hold === "none",
        says: (j) =>
            j.state === "running"
                ? "The running attempt goes on; after it the job waits until it is released."
                : "The job is not started until it is released.",
    },
    {
        key: "reclaim",
        title: "Save and stop",
        path: "reclaim",
        when: (j) => j.state === "running" && saves(j),
        says: () =>
            "The job is saved and stopped, costs nothing more, and resumes when it is released.",
    },
    {
        key: "release",
        title: "Release",
        path: "release",
        main: true,
        when: (j) => j.state !== "ended" && j.hold !== "none",
        says: () => "The job takes its place in the queue and is started when there is capacity.",
        fields: (j) =>
            j.attempts > 0 && saves(j)
                ? [check("from_scratch", "start over: use no checkpoint")]
                : null,
        body: (form) => flags(form, "from_scratch"),
    },
    {
        key: "drill",
        title: "Drill",
        path: "drill",
        when: (j) => j.state === "running" && saves(j),
        says: () =>
            "A rehearsal of a reclaim: the job is really stopped and has to resume. " +
            "The result certifies how long that takes and what is lost.",
        fields: () => [
            check(
                "without_notice",
                "without notice: what is not saved yet is lost, as when a machine fails",
            ),
        ],
        body: (form) => flags(form, "without_notice"),
    },
    {
        key: "update",
        title: "Change",
        path: "update",
        when: (j) => j.state === "pending" || j.state === "running",
        says: (j) =>
            j.state === "running"
                ? "Changes apply to the running attempt where that is possible."
                : "The job keeps its place in the queue.",
        fields: (j) => html`<${UpdateFields} job=${j} />`,
        body: changesOf,
    },
    {
        key: "cancel",
        title: "Cancel",
        path: "cancel",
        danger: true,
        when: (j) => j.state !== "ended" && j.state !== "cancelling",
        says: (j) =>
            j.state === "running"
                ? "The program is ended, and the job with it. Its checkpoints stay for a while."
                : "The job ends without having run.",
    },
];

/** @param changed called after an action was done */
export function JobActions({ job, changed }) {
    const of = useAsk(changed);
    if (job.hidden || !mayChange(job)) return null;
    return html`${ACTIONS.filter((a) => a.when(job)).map(
        (a) => html`<button key=${a.key} type="button"
            class=${a.danger ? "button-danger" : a.main ? "button-main" : ""}
                onClick=${() => of.ask(question(a, job))}>${a.title}</button>`,
    )}
        ${of.dialog}`;
}

function question(a, job) {
    return {
        title: a.title + ": job " + job.ref + (job.name ? ", " + job.name : NONE),
        verb: a.title,
        danger: a.danger,
        act: (form) =>
            post("/api/v1/jobs/" + job.id + "/" + a.path, a.body ? a.body(form, job) : {}),
        body: html`<p>${a.says(job)}</p>${a.fields && a.fields(job)}`,
    };
}
