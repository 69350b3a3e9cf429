// SPDX-License-Identifier: Apache-2.0
// Lists whose newest page is live, and to which older pages are added on request.
import { get } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { Failure } from "./states.js";

/** Kept rows before newer ones, each once; only the newer ones if some between are missing.
 * @param size rows of a full page */
export function joined(kept, newest, size) {
    if (newest.length === 0) return kept;
    const first = newest[0].id,
        last = kept.length > 0 ? kept[kept.length - 1].id : 0;
    return last < first && newest.length >= size
        ? newest
        : [...kept.filter((e) => e.id < first), ...newest];
}

/**
 * What was shown when older pages were asked for, with these; it goes on below the newest page.
 * @param path of the newest page, with a query; `name` of the list in replies
 */
export function useOlder(path, name) {
    const none = { path, kept: null, next: null, busy: false, error: null };
    const [state, setState] = useState(none);
    useEffect(() => setState(none), [path]);
    const set = (change) =>
        setState((old) => (old.path === path ? { ...old, ...change(old) } : old));
    const more = async (before, shown) => {
        set(() => ({ busy: true, error: null }));
        try {
            const page = await get(path + "&before=" + before);
            set(() => ({ busy: false, next: page.next, kept: [...page[name], ...shown] }));
        } catch (error) {
            set(() => ({ busy: false, error }));
        }
    };
    return { ...(state.path === path ? state : none), more };
}

/** The query of a page with one row, where its number is known. */
export function onlyRow(id) {
    return /^[1-9]\d{0,14}$/.test(id) ? "&limit=1&before=" + (Number(id) + 1) : "";
}

/** All rows that have been read, oldest first. */
export function allRows(older, rows, size) {
    return older.kept ? joined(older.kept, rows, size) : rows;
}

/** The button for the next page. @param page the newest one; `rows` that are shown */
export function OlderButton({ older, page, rows, name }) {
    const next = older.kept ? older.next : page.next;
    return html`${older.error && html`<${Failure} error=${older.error} />`}
        ${
            next &&
            html`<p><button type="button" disabled=${older.busy}
            onClick=${() => older.more(next, rows)}>
            ${older.busy ? "Loading …" : "Older " + name}</button></p>`
        }`;
}
