// SPDX-License-Identifier: Apache-2.0
// Times in the viewer's zone, with the absolute time on hover; all count on together.
import { html, useEffect, useRef, useState } from "../dom.js";
import { NONE, absolute, duration, relative, shortTime } from "../format.js";

const TICK_MS = 1000;
const tickers = new Set();
let timer = 0;

/** What `of` makes of the present moment; the component is drawn again when that changes. */
function useTicking(of) {
    const latest = useRef(of),
        [, setShown] = useState(null);
    latest.current = of;
    useEffect(() => {
        const tick = (now) => setShown(latest.current(now));
        tickers.add(tick);
        timer =
            timer ||
            setInterval(() => {
                const now = Date.now();
                for (const ticker of document.hidden ? [] : tickers) ticker(now);
            }, TICK_MS);
        return () => {
            tickers.delete(tick);
            if (tickers.size === 0) {
                clearInterval(timer);
                timer = 0;
            }
        };
    }, []);
    return of(Date.now());
}

/** The present moment in ms, anew each `step` ms, of at least a second. */
export function useNow(step = TICK_MS) {
    return useTicking((now) => now - (now % step));
}

/** @param at of the API, "2026-11-27T09:15:03.000Z", or null */
export function Ago({ at }) {
    const text = useTicking((now) => (at ? relative(Date.parse(at), now) : NONE));
    return at ? html`<time datetime=${at} title=${absolute(Date.parse(at))}>${text}</time>` : NONE;
}

export function Moment({ at }) {
    return at
        ? html`<time datetime=${at} title=${absolute(Date.parse(at))}>${shortTime(
              Date.parse(at),
              Date.now(),
          )}</time>`
        : NONE;
}

/** The time from one moment to another, or to now. */
export function Lasted({ from, to }) {
    const begin = Date.parse(from);
    return useTicking((now) =>
        from ? duration(Math.max(0, (to ? Date.parse(to) : now) - begin)) : NONE,
    );
}
