// SPDX-License-Identifier: Apache-2.0
// Drills: whether jobs that were stopped on purpose came back, newest first.
import { withQuery } from "../api.js";
import { useData } from "../data.js";
import { html } from "../dom.js";
import { bytes, duration } from "../format.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { Field, Filters } from "../parts/fields.js";
import { JobName } from "../parts/job.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Ago } from "../parts/time.js";

const TONES = {
    stopping: "busy",
    queued: "busy",
    resumed: "busy",
    passed: "good",
    failed: "bad",
    interrupted: "warn",
};

const columns = [
    { name: "Job", cell: (d) => html`<a href=${"/console/jobs/" + d.job}>${d.ref}</a>` },
    { name: "Name", cell: (d) => html`<${JobName} job=${d} />` },
    { name: "User", cell: (d) => d.user },
    { name: "Result", cell: (d) => html`<${Badge} word=${d.state} tone=${TONES[d.state]} />` },
    { name: "Stopped", cell: (d) => (d.without_notice ? "without notice" : "with notice") },
    {
        name: "Checkpoint",
        cell: (d) =>
            [
                d.method,
                d.bytes > 0 && bytes(d.bytes),
                d.save_ms !== null && "saved in " + duration(d.save_ms),
            ]
                .filter(Boolean)
                .join(", "),
    },
    {
        name: "Lost",
        cell: (d) => (d.lost_steps !== null ? `${d.lost_steps} steps` : duration(d.lost_ms)),
        number: true,
    },
    {
        name: "Restored in",
        cell: (d) => (d.restore_ms === null ? "" : duration(d.restore_ms)),
        number: true,
    },
    { name: "What happened", cell: (d) => d.text || "", wide: true },
    { name: "Asked for", cell: (d) => html`<${Ago} at=${d.asked_at} />`, number: true },
];

export function Drills({ query }) {
    const user = query.get("user") || "";
    const of = useData(withQuery("/api/v1/drills", { user, limit: 200 }), { on: ["job", "event"] });
    return html`<${PageHead} title="Drills"
        note="Jobs stopped on purpose to see whether they come back" />
        <${Filters}><${Field} name="user" label="User" value=${user} /></${Filters}>
        <${Loaded} of=${of}>${({ drills }) =>
            html`<${Card} title="Drills"><${Table} caption="All drills" columns=${columns}
            rows=${drills} rowKey=${(d) => d.job + "." + d.number}
                empty=${html`<${Empty} title="No drills">
                <code>belay drill JOB</code>, or the button on a job's page, stops a running job and
                    checks that
                it resumes.</${Empty}>`} /></${Card}>`}</${Loaded}>`;
}
