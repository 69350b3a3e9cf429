// SPDX-License-Identifier: Apache-2.0
// What a job did when: its attempts as spans and marks. Pure. The spans are those of `belay show`
// (cli/timeline.c); what of a run is lost is known from the restart after it.

export const KINDS = {
    wait: "waiting",
    boot: "machine boots",
    restore: "preparing and restoring",
    useful: "running",
    lost: "lost: done again",
    save: "saving",
};

const MARKS = {
    notice: "notice",
    saved: "saved",
    "save-failed": "save failed",
    rebalance: "rebalance",
    lost: "node lost",
};

function ms(time, fallback) {
    return time ? Date.parse(time) : fallback;
}

/**
 * @param detail of GET /api/v1/jobs/ID, `events` of its /events
 * @returns {from, to, rows: [{attempt, end, node, spans: [{kind, from, to}],
 *   marks: [{kind, at, text}]}]}
 */
export function timeline(detail, events, nowMs) {
    const { job } = detail,
        to = ms(job.ended_at, nowMs);
    const attempts = detail.attempts
        .filter((a) => a.rank === 0)
        .sort((a, b) => a.attempt - b.attempt);
    const from = ms(job.submitted_at, to);
    let free = from;
    const rows = attempts.map((attempt, i) => {
        const row = rowOf(attempt, attempts[i + 1], free, to);
        row.marks = events
            .filter((e) => e.attempt === attempt.attempt && MARKS[e.kind])
            .map((e) => ({ kind: e.kind, at: ms(e.at), text: MARKS[e.kind] + ": " + e.text }));
        addSaves(row, events);
        free = Math.max(free, ms(attempt.ended_at, to));
        return row;
    });
    if (job.state !== "ended" && free < to && job.state === "pending")
        rows.push({
            attempt: null,
            end: null,
            node: null,
            marks: [],
            spans: [{ kind: "wait", from: free, to }],
        });
    return { from, to: Math.max(to, from + 1), rows };
}

function rowOf(a, next, free, to) {
    const ended = Math.max(free, ms(a.ended_at, to)),
        within = (t, least) => Math.max(least, Math.min(t, ended));
    const assigned = within(ms(a.assigned_at, ended), free),
        started = within(ms(a.started_at, ended), assigned),
        r = a.restart;
    const boot = Math.max(
        free,
        assigned - (r ? r.launch_ms + r.boot_ms + r.agent_ms + r.place_ms : 0),
    );
    const lost = next && next.restart ? Math.max(started, ended - next.restart.lost_ms) : ended;
    const spans = [
        { kind: "wait", from: free, to: boot },
        { kind: "boot", from: boot, to: assigned },
        { kind: "restore", from: assigned, to: started },
        { kind: "useful", from: started, to: lost },
        { kind: "lost", from: lost, to: ended },
    ];
    return {
        attempt: a.attempt,
        end: a.end,
        node: a.node,
        spans: spans.filter((s) => s.to > s.from),
        marks: [],
    };
}

/** An event `saved` comes at the end of a save and has its duration. */
function addSaves(row, events) {
    for (const e of events)
        if (e.kind === "saved" && e.attempt === row.attempt && e.b > 0)
            row.spans.push({ kind: "save", from: ms(e.at) - e.b, to: ms(e.at) });
}

const STEPS_S = [
    1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800,
    2592000,
];

/** At most n + 1 round moments between from and to, in ms. */
export function ticks(from, to, n) {
    const step =
        1000 * (STEPS_S.find((s) => (to - from) / (1000 * s) <= n) || STEPS_S[STEPS_S.length - 1]);
    const list = [];
    const offset = new Date(from).getTimezoneOffset() * 60000; // days begin at local midnight
    for (
        let t = Math.ceil((from - offset) / step) * step + offset;
        t <= to && list.length <= 4 * n;
        t += step
    )
        list.push(t);
    return list;
}
