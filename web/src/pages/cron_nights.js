// SPDX-License-Identifier: Apache-2.0
// The runs of the next nights, from belayd's plan: by night, in lanes, with what overlaps. Pure.

export const NIGHTS = 14;
const OFTEN = 8; // runs of an entry in one night; beyond it they are one line

/** Noon of the day on which the night of this moment began, in the viewer's zone. */
function nightStart(ms, nights) {
    const at = new Date(ms);
    const day = at.getDate() - (at.getHours() < 12 ? 1 : 0) + nights;
    return new Date(at.getFullYear(), at.getMonth(), day, 12).getTime();
}

/**
 * @param plan of GET /api/v1/crons/plan
 * @returns [{from, to, runs: [{entry, at, end, lane, overlaps: [names]}], lanes,
 *   often: [{entry, times}],
 *     leftOut: [{entry, at, why}]}]; of an entry none from the
 *   night on that unlistedOf() gives
 */
export function nightsOf(plan, nowMs) {
    return Array.from({ length: NIGHTS }, (_, i) => {
        const from = nightStart(nowMs, i),
            to = nightStart(nowMs, i + 1);
        const isIn = (at) => at >= from && at < to;
        const night = { from, to, runs: [], often: [], leftOut: [] };
        for (const entry of plan.crons) {
            const starts = entry.starts.map((t) => Date.parse(t)).filter(isIn);
            const listed = isUnlisted(entry, to) ? [] : starts;
            if (listed.length > OFTEN) night.often.push({ entry, times: listed.length });
            else
                for (const at of listed)
                    night.runs.push({ entry, at, end: at + (entry.usual_ms || 0) });
            for (const { at, why } of entry.left_out)
                if (isIn(Date.parse(at))) night.leftOut.push({ entry, at: Date.parse(at), why });
        }
        return { ...night, ...inLanes(night.runs) };
    });
}

/** Whether the plan lacks runs of the entry before this moment. */
function isUnlisted(entry, ms) {
    return entry.more && Date.parse(entry.starts[entry.starts.length - 1]) < ms;
}

/** @returns [{entry, from}]: entries of which the plan lacks runs from the night at `from` on */
export function unlistedOf(plan, nights) {
    return plan.crons.flatMap((entry) => {
        const first = nights.find((night) => isUnlisted(entry, night.to));
        return first ? [{ entry, from: first.from }] : [];
    });
}

/** Whether two runs are under way at the same time; one of unknown length is at its start. */
function overlap(a, b) {
    return a.at === b.at || (a.at < b.end && b.at < a.end);
}

function inLanes(runs) {
    const sorted = [...runs].sort((a, b) => a.at - b.at || a.entry.id - b.entry.id),
        ends = [];
    const placed = sorted.map((run) => {
        const free = ends.findIndex((end) => end < run.at);
        const lane = free < 0 ? ends.length : free;
        ends[lane] = Math.max(run.at, run.end);
        const overlaps = sorted.filter((other) => other !== run && overlap(run, other));
        return { ...run, lane, overlaps: [...new Set(overlaps.map((other) => other.entry.name))] };
    });
    return { runs: placed, lanes: Math.max(1, ends.length) };
}
