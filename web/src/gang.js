// SPDX-License-Identifier: Apache-2.0
// The ranks of a job on several nodes, and which of them is behind. Pure.

/* The one that waits least is behind, if the others wait for at least this part of their time. */
const WAITS_LEAST = 0.1;

/**
 * @param attempts of a job's detail, loads of its /diagnose (`ranks`); may be empty
 * @returns {rows, behind}: a row a rank of the newest attempt, with its load if that is known;
 *   behind: {rank, part} of the rank for which the others wait this part of their time, or null
 */
export function gangOf(attempts, loads = []) {
    const newest = Math.max(0, ...attempts.map((a) => a.attempt));
    const rows = attempts
        .filter((a) => a.attempt === newest)
        .sort((a, b) => a.rank - b.rank)
        .map((a) => ({ ...a, load: loads.find((l) => l.rank === a.rank && l.node === a.node) }));
    return { rows, behind: behindOf(rows.map((r) => r.load).filter(Boolean)) };
}

function behindOf(loads) {
    const waits = loads
        .filter((l) => l.ms > 0)
        .map((l) => ({ rank: l.rank, part: l.waited_ms / l.ms }))
        .sort((a, b) => a.part - b.part);
    if (waits.length < 2) return null;
    const [least, ...others] = waits;
    const part = others.reduce((sum, w) => sum + w.part, 0) / others.length;
    return part - least.part >= WAITS_LEAST ? { rank: least.rank, part } : null;
}
