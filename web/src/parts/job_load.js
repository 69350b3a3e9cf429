// SPDX-License-Identifier: Apache-2.0
// What a job uses of its processors, memory and GPUs over its time, and what slows it down.
import { useData } from "../data.js";
import { html, useMemo, useState } from "../dom.js";
import { NONE, bytes } from "../format.js";
import { Card } from "./card.js";
import { Chart } from "./chart.js";
import { RankChoice } from "./rank_choice.js";
import { Loaded } from "./states.js";

/** The columns of an API's series as those of a chart; moments without a measurement are gaps. */
function chartOf(load, spanMs, names) {
    const times = [],
        values = names.map(() => []);
    load.at_ms.forEach((at, i) => {
        if (i > 0 && at - load.at_ms[i - 1] > 1.5 * spanMs) {
            times.push(load.at_ms[i - 1] + spanMs);
            values.forEach((v) => v.push(null));
        }
        times.push(at);
        names.forEach(([name, , scale = 1], k) => values[k].push(load[name][i] * scale));
    });
    return { times, series: names.map(([, label], k) => ({ name: label, values: values[k] })) };
}

const cpus = (v) =>
    v === null ? NONE : Number(v.toFixed(v < 0.1 ? 4 : 2)) + (v === 1 ? " CPU" : " CPUs");
const share = (v) => (v === null ? NONE : Math.round(v) + " %");
const perSecond = (v) => (v === null ? NONE : bytes(v) + "/s");

/* title, columns of the API with their names and factors, format */
const TASK_CHARTS = [
    ["CPUs used", [["cpu_milli", "CPUs used", 0.001]], cpus],
    ["Memory", [["memory_bytes", "memory"]], bytes],
    [
        "Disk and network",
        [
            ["read_bytes_s", "read"],
            ["write_bytes_s", "written"],
            ["net_bytes_s", "network"],
        ],
        perSecond,
    ],
];
const GPU_CHARTS = [
    [
        "busy",
        [
            ["busy_percent", "busy"],
            ["slowed_percent", "throttled"],
        ],
        share,
    ],
    ["memory", [["memory_bytes", "memory"]], bytes],
    ["power", [["watts", "power"]], (v) => (v === null ? NONE : Math.round(v) + " W")],
    [
        "temperature",
        [["temperature_c", "temperature"]],
        (v) => (v === null ? NONE : Math.round(v) + " °C"),
    ],
];

function LoadChart({ title, load, spanMs, columns, format }) {
    const chart = useMemo(() => chartOf(load, spanMs, columns), [load]);
    return html`<section><h3>${title}</h3>
        <${Chart} name=${title} times=${chart.times} series=${chart.series} format=${format}
            height=${150} /></section>`;
}

/** Charts over the job's time, of one rank. */
function OverTime({ job }) {
    const [rank, setRank] = useState(0);
    const load = useData("/api/v1/jobs/" + job.id + "/load?rank=" + rank, { on: ["summary"] });
    return html`${
        job.ranks > 1 && html`<${RankChoice} ranks=${job.ranks} rank=${rank} choose=${setRank} />`
    }
        <${Loaded} of=${load}>${(d) =>
            d.at_ms.length === 0
                ? html`<p class="quiet">Measured after its first minute.</p>`
                : html`<div class="columns">
                ${TASK_CHARTS.map(
                    ([title, columns, format]) =>
                        html`<${LoadChart} key=${title} title=${title} load=${d} spanMs=${d.span_ms}
                        columns=${columns} format=${format} />`,
                )}
                ${d.gpus.flatMap((g) =>
                    GPU_CHARTS.map(
                        ([title, columns, format]) => html`<${LoadChart} key=${g.gpu + title}
                    title=${"GPU " + g.index + ": " + title} load=${g} spanMs=${d.span_ms}
                        columns=${columns} format=${format} />`,
                    ),
                )}
            </div>`}</${Loaded}>`;
}

export function JobLoad({ job }) {
    const load = useData(job.hidden ? null : "/api/v1/jobs/" + job.id + "/diagnose");
    if (job.hidden) return null;
    return html`<${Card} title="What it uses">
        <${Loaded} of=${load}>${(d) =>
            html`${d.findings.map(
                (f) => html`<div class="notice notice-warn" key=${f.code + f.rank + f.gpu}>
            <p>${f.text}</p><ul>${f.remedies.map((r) => html`<li>${r}</li>`)}</ul></div>`,
            )}`}</${Loaded}>
        <${OverTime} job=${job} /></${Card}>`;
}
