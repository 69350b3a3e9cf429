// SPDX-License-Identifier: Apache-2.0
// What the ledger's kinds are called, and their colours in bars (style/parts_bar.css), and what
// was saved. Pure.
import { NONE, percent } from "./format.js";

const KINDS = {
    useful: ["useful work", "useful"],
    lost: ["lost, done again", "lost"],
    save: ["saving", "save"],
    restore: ["restoring", "restore"],
    boot: ["booting", "boot"],
    start: ["starting", "start"],
    "gang-wait": ["waiting for the gang", "3"],
    idle: ["idle", "rest"],
    egress: ["traffic", "2"],
    storage: ["storage", "5"],
};

/** In the order in which bars show them. */
export const LEDGER_KINDS = Object.keys(KINDS);

export function kindName(kind) {
    return KINDS[kind] ? KINDS[kind][0] : kind;
}

export function kindTone(kind) {
    return KINDS[kind] ? KINDS[kind][1] : "rest";
}

const COMPARED_LEAST_UUSD = 10000; // a cent; a part of less says nothing

/**
 * What was saved against the on-demand price of the work of ended attempts.
 * @returns {part, note}: of one, null where it says nothing; the note says why, "" if unknown
 */
export function savedOf({ uusd, on_demand_uusd: listed }) {
    if (!(listed > 0)) return { part: null, note: "" };
    const part = 1 - uusd / listed;
    if (listed < COMPARED_LEAST_UUSD)
        return { part: null, note: NONE + ": too little work has ended to compare" };
    if (part < -1)
        return {
            part: null,
            note: NONE + ": idle time counts at once, work when its attempt has ended",
        };
    return { part, note: percent(part) };
}
