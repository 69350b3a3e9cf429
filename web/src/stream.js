// SPDX-License-Identifier: Apache-2.0
// Server-sent events of GET /api/v1/stream, shared by all tabs: a browser opens six connections to
// a server at most, and each stream holds one. The tab that holds a lock has the stream and passes
// what arrives on to the others.
import { useEffect, useState } from "./dom.js";

const STREAM = "/api/v1/stream";
const TYPES = ["job", "event", "node", "instance", "pool", "cron", "budget", "summary"];
const KINDS = [...TYPES, "reset"];
const RETRY_MS = [1000, 60000];
const subscribers = new Set();
const channel = new BroadcastChannel("belay-stream");
let state = "connecting"; // "live", "offline"
const watchers = new Set();

function setState(next) {
    state = next;
    for (const watcher of watchers) watcher(state);
}

function deliver(message) {
    if (message.state) setState(message.state);
    else
        for (const { kinds, fn } of subscribers)
            if (message.kind === "reset" || kinds.includes(message.kind))
                fn(message.kind, message.data);
}

channel.onmessage = (event) => {
    if (event.data.ask) channel.postMessage({ state });
    else deliver(event.data);
};

function tell(message) {
    deliver(message);
    channel.postMessage(message);
}

/** Calls fn(kind, data) for events of these kinds until the returned function is called. A "reset"
 * always arrives: events were missed, so everything is to be read again. */
export function subscribe(kinds, fn) {
    const one = { kinds, fn };
    subscribers.add(one);
    return () => subscribers.delete(one);
}

/** "connecting", "live" or "offline" */
export function useStreamState() {
    const [value, setValue] = useState(state);
    useEffect(() => {
        watchers.add(setValue);
        setValue(state);
        return () => watchers.delete(setValue);
    }, []);
    return value;
}

let running = false;

/** Begins to read the stream; once for the life of the page. */
export function startStream() {
    if (running) return;
    running = true;
    channel.postMessage({ ask: true });
    if (navigator.locks) navigator.locks.request("belay-stream", () => read());
    else read();
}

/** Never returns; the browser resumes a broken stream by itself with Last-Event-ID. */
function read() {
    return new Promise(() => {
        let delay = RETRY_MS[0],
            isFirst = true;
        const open = () => {
            const source = new EventSource(STREAM + "?types=" + TYPES);
            source.onopen = () => {
                delay = RETRY_MS[0];
                tell({ state: "live" });
            };
            source.onerror = () => {
                tell({ state: "offline" });
                if (source.readyState !== EventSource.CLOSED) return; // the browser reconnects
                setTimeout(open, delay * (0.5 + Math.random() / 2));
                delay = Math.min(2 * delay, RETRY_MS[1]);
            };
            source.addEventListener("ready", () => {
                // lists may have changed meanwhile
                if (!isFirst) tell({ kind: "reset", data: null });
                isFirst = false;
            });
            source.addEventListener("end", (event) => {
                const { reason } = parse(event.data) || {};
                if (reason === "expired" || reason === "revoked")
                    tell({ kind: "reset", data: null }); // the next call says so
            });
            for (const kind of KINDS)
                source.addEventListener(kind, (event) => tell({ kind, data: parse(event.data) }));
        };
        open();
    });
}

/** Calls fn() when the job's output has grown, while the page is in sight, until the returned
 * function is called. A stream of its own: the shared one has no output. */
export function followLog(job, fn) {
    let source = null;
    const update = () => {
        if (source) source.close();
        source = document.hidden ? null : new EventSource(STREAM + "?types=log&job=" + job);
        if (source) for (const kind of ["log", "ready", "reset"]) source.addEventListener(kind, fn);
    };
    update();
    document.addEventListener("visibilitychange", update);
    return () => {
        document.removeEventListener("visibilitychange", update);
        if (source) source.close();
    };
}

function parse(text) {
    try {
        return JSON.parse(text);
    } catch (e) {
        return null;
    }
}
