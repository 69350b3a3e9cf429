// SPDX-License-Identifier: Apache-2.0
// What a job uses of its processors, memory and GPUs, and what slows it down.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { bytes, percent } from "../format.js";
import { Card } from "./card.js";
import { Loaded } from "./states.js";
import { Table } from "./table.js";

const rankColumns = [
    { name: "Rank", cell: (r) => r.rank },
    { name: "CPUs used", cell: (r) => (r.ms ? (r.cpu_ms / r.ms).toFixed(2) : ""), number: true },
    { name: "Memory", cell: (r) => bytes(r.memory_bytes), number: true },
    { name: "Read", cell: (r) => bytes(r.read_bytes), number: true },
    { name: "Written", cell: (r) => bytes(r.write_bytes), number: true },
    { name: "Waited for disks", cell: (r) => (r.ms ? percent(r.blocked_ms / r.ms) : ""), number: true },
];

const gpuColumns = [
    { name: "GPU", cell: (g) => g.rank + ":" + g.index },
    { name: "Busy", cell: (g) => (g.known_ms ? percent(g.busy_ms / g.known_ms) : "not known"), number: true },
    { name: "Memory", cell: (g) => bytes(g.memory_bytes) + " of " + bytes(g.memory_total_bytes), number: true },
    { name: "Temperature", cell: (g) => (g.temperature_c ? g.temperature_c + " °C" : ""), number: true },
    { name: "Throttled", cell: (g) => (g.ms ? percent(g.slowed_ms / g.ms) : ""), number: true },
];

export function JobLoad({ job }) {
    const load = useData(job.hidden ? null : "/api/v1/jobs/" + job.id + "/diagnose");
    if (job.hidden)
        return null;
    return html`<${Card} title="Use of its node"><${Loaded} of=${load}>${(d) => html`
        ${d.findings.map((f) => html`<div class="notice" key=${f.code + f.rank + f.gpu}><p>${f.text}</p>
            ${f.remedies.length > 0 && html`<ul>${f.remedies.map((r) => html`<li>${r.text || r}</li>`)}</ul>`}</div>`)}
        <${Table} caption="Use by rank" columns=${rankColumns} rows=${d.ranks} rowKey=${(r) => r.rank}
            empty=${html`<p class="quiet">Measured after its first minute.</p>`} />
        ${d.gpus.length > 0 && html`<${Table} caption="Use by GPU" columns=${gpuColumns} rows=${d.gpus} rowKey=${(g) => g.rank + ":" + g.index} />`}`}</${Loaded}></${Card}>`;
}
