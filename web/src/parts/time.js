// SPDX-License-Identifier: Apache-2.0
// Times in the viewer's zone, with the absolute time on hover; all that are shown count on together.
import { html, useEffect, useState } from "../dom.js";
import { NONE, absolute, duration, relative, shortTime } from "../format.js";

const TICK_MS = 1000;
const tickers = new Set();
let timer = 0;

/** The present moment in ms, anew each second. */
export function useNow() {
    const [now, setNow] = useState(Date.now());
    useEffect(() => {
        tickers.add(setNow);
        timer = timer || setInterval(() => {
            const at = Date.now();
            for (const ticker of document.hidden ? [] : tickers)
                ticker(at);
        }, TICK_MS);
        return () => {
            tickers.delete(setNow);
            if (tickers.size === 0) {
                clearInterval(timer);
                timer = 0;
            }
        };
    }, []);
    return now;
}

/** @param at of the API, "2026-11-27T09:15:03.000Z", or null */
export function Ago({ at }) {
    const now = useNow();
    return at ? html`<time datetime=${at} title=${absolute(Date.parse(at))}>${relative(Date.parse(at), now)}</time>`
        : NONE;
}

export function Moment({ at }) {
    return at ? html`<time datetime=${at} title=${absolute(Date.parse(at))}>${shortTime(Date.parse(at), Date.now())}</time>`
        : NONE;
}

/** The time from one moment to another, or to now. */
export function Lasted({ from, to }) {
    const now = useNow();
    return from ? duration((to ? Date.parse(to) : Math.max(now, Date.parse(from))) - Date.parse(from)) : NONE;
}
