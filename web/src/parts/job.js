// SPDX-License-Identifier: Apache-2.0
// A job's number and name, wherever one stands.
import { html } from "../dom.js";

export function JobLink({ job }) {
    return html`<a href=${"/console/jobs/" + job.id}>${job.ref}</a>`;
}

export function JobName({ job }) {
    return html`<span class="job-name" title=${job.name}>${
        job.hidden ? "not shown to you" : job.name
    }</span>`;
}
