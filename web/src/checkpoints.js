// SPDX-License-Identifier: Apache-2.0
// A job's checkpoints as reported, joined with what the store has of them. Pure.

export const nameOf = (c) => c.attempt + "." + c.sequence;
export const isOpen = (v) => v.state === "waiting" || v.state === "running";

/**
 * The reported checkpoints, newest first, with what the store says of each.
 * @param stored of GET .../checkpoints, verified of GET .../checkpoints/verify; undefined: not read
 */
export function withStored(checkpoints, stored, verified = []) {
    const inStore = new Map((stored || []).map((s) => [nameOf(s), s]));
    const known = new Set(checkpoints.map(nameOf));
    const rows = [
        ...checkpoints,
        ...(stored || []).filter((s) => !known.has(nameOf(s))).map(({ pinned, ...id }) => id),
    ];
    return rows
        .map((c) => ({
            ...c,
            stored: stored && inStore.has(nameOf(c)),
            pinned: inStore.has(nameOf(c)) && inStore.get(nameOf(c)).pinned,
            verified: verified.find((v) => nameOf(v) === nameOf(c)),
        }))
        .sort((a, b) => b.attempt - a.attempt || b.sequence - a.sequence);
}
