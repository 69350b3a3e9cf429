// SPDX-License-Identifier: Apache-2.0
// A job's progress over time against its deadline, with the band of its forecast.
import { html, useMemo } from "../dom.js";
import { count } from "../format.js";
import { Card } from "./card.js";
import { Chart } from "./chart.js";

/** Moments and values of the chart: what was saved, what is now, and to the end by the forecast. */
export function progressSeries(d, nowMs) {
    const { job, expects } = d;
    const past = d.checkpoints
        .filter((c) => c.progress !== null)
        .map((c) => [Date.parse(c.saved_at), c.progress])
        .sort((a, b) => a[0] - b[0]);
    const points = [[Date.parse(job.started_at), 0], ...past];
    if (job.state === "running") points.push([nowMs, job.progress]);
    const done = expects && Date.parse(expects.done_at),
        late = expects && Date.parse(expects.late_at);
    const times = [
        ...new Set([...points.map((p) => p[0]), ...(done ? [done, late || done] : [])]),
    ].sort((a, b) => a - b);
    const at = new Map(points);
    const towards = (end) =>
        times.map((t) =>
            t < nowMs || !end
                ? null
                : t > end
                  ? job.progress_total
                  : job.progress +
                    ((job.progress_total - job.progress) * (t - nowMs)) / Math.max(1, end - nowMs),
        );
    const series = [{ name: "progress", values: times.map((t) => (at.has(t) ? at.get(t) : null)) }];
    if (done)
        series.push(
            { name: "expected", values: towards(done), dash: [4, 4] },
            { name: "late, 1 in 20", values: towards(late || done), dash: [2, 6], band: 1 },
        );
    return { times, series };
}

export function JobProgress({ d }) {
    const { job, expects } = d;
    const { times, series } = useMemo(
        () => progressSeries(d, Date.now()),
        [job.progress, job.state, d.checkpoints.length],
    );
    const deadline = job.finish_by || job.deadline_at;
    const end = Math.max(times[times.length - 1] || 0, deadline ? Date.parse(deadline) : 0);
    return html`<${Card} title="Progress">
        <${Chart} name="Progress" times=${times} series=${series}
            format=${(v) => count(v === null ? null : Math.round(v))}
            range=${[times[0], end]} marks=${
                deadline ? [{ at: Date.parse(deadline), name: "finish by" }] : []
            } />
        ${expects && expects.why && html`<p>${expects.why}</p>`}</${Card}>`;
}
