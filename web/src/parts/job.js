// SPDX-License-Identifier: Apache-2.0
// A job's number and name, wherever one stands.
import { html } from "../dom.js";

const SIGNALLED = 128; // exit codes above it are this and the signal

export function JobLink({ job }) {
    return html`<a href=${"/console/jobs/" + job.id}>${job.ref}</a>`;
}

export function JobName({ job }) {
    return html`<span class="job-name" title=${job.name}>${
        job.hidden ? "not shown to you" : job.name
    }</span>`;
}

/** With what its program ended: "0", "3", "137 (signal 9)"; "" before, and where it had no end. */
export function exitText({ end, exit_code: code }) {
    if (code === null || (code === 0 && end !== "succeeded")) return "";
    return code > SIGNALLED ? `${code} (signal ${code - SIGNALLED})` : String(code);
}
