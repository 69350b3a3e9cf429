// SPDX-License-Identifier: Apache-2.0
// Data of the API in a component: read, shown at once from the last reading when one comes back,
// and read again when the stream says that it changed.
import { get } from "./api.js";
import { useEffect, useRef, useState } from "./dom.js";
import { subscribe, useStreamState } from "./stream.js";

const KEPT_MAX = 60; // replies
const LEAST_MS = 1000; // between two readings of the same data
const POLL_MS = 10000; // while there is no stream
const kept = new Map(); // path -> data

function keep(path, data) {
    kept.delete(path);
    kept.set(path, data);
    if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
}

/**
 * @param path of the API; null to read nothing
 * @param on kinds of the stream after which it is read again; `concerns` may look at their data
 * @returns {data, error, loading, reload}: data is the last one read, of this path
 */
export function useData(path, { on = [], concerns = null } = {}) {
    const live = useStreamState() === "live";
    const [state, setState] = useState({ path: null, data: undefined, error: null });
    const loader = useRef(null);
    useEffect(() => {
        if (path === null) return undefined;
        const one = new Loader(path, setState);
        loader.current = one;
        one.read();
        const stop = subscribe(on, (kind, data) => {
            if (kind === "reset" || !concerns || concerns(data, kind)) one.read();
        });
        return () => {
            stop();
            one.end();
        };
    }, [path, on.join()]);
    usePoll(path !== null && !live && on.length > 0, POLL_MS, () => loader.current.read());
    const data = state.path === path && state.data !== undefined ? state.data : kept.get(path);
    const error = state.path === path ? state.error : null;
    return {
        data,
        error,
        loading: path !== null && data === undefined && !error,
        reload: () => loader.current && loader.current.read(),
    };
}

/** Calls the latest `read` each `ms` while isOn, unless nobody sees the page. */
export function usePoll(isOn, ms, read) {
    const latest = useRef(read);
    latest.current = read;
    useEffect(() => {
        if (!isOn) return undefined;
        const timer = setInterval(() => document.hidden || latest.current(), ms);
        return () => clearInterval(timer);
    }, [isOn, ms]);
}

/** Reads one path, never twice at a time and at most once a second. */
class Loader {
    constructor(path, setState) {
        Object.assign(this, { path, setState, busy: false, again: false, timer: 0, readAt: 0 });
        this.retry = 0;
        this.abort = new AbortController();
    }

    read() {
        clearTimeout(this.retry);
        if (this.busy || this.timer) {
            this.again = true;
            return;
        }
        const wait = this.readAt + LEAST_MS - Date.now();
        if (wait <= 0) {
            this.run();
            return;
        }
        this.timer = setTimeout(() => {
            this.timer = 0;
            this.again = false;
            this.run();
        }, wait);
    }

    async run() {
        this.busy = true;
        this.readAt = Date.now();
        try {
            const data = await get(this.path, { signal: this.abort.signal });
            keep(this.path, data);
            this.setState({ path: this.path, data, error: null });
        } catch (error) {
            if (this.abort.signal.aborted) return;
            this.setState((old) => ({
                path: this.path,
                error,
                data: old.path === this.path ? old.data : undefined,
            }));
            if (error.kind === "offline") this.retry = setTimeout(() => this.read(), POLL_MS);
        }
        this.busy = false;
        if (this.again) {
            this.again = false;
            this.read();
        }
    }

    end() {
        clearTimeout(this.timer);
        clearTimeout(this.retry);
        this.abort.abort();
    }
}
