// SPDX-License-Identifier: Apache-2.0
// What the ledger's kinds are called, and their colours in bars (style/parts_bar.css). Pure.

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
