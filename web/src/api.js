// SPDX-License-Identifier: Apache-2.0
// Calls of belayd's API (docs/reference/api.md) with the session of this browser.

/** A reply that is no success. kind is the API's ("not-found", ...), "offline" without a reply. */
export class ApiError extends Error {
    constructor(status, kind, text) {
        super(text);
        this.status = status;
        this.kind = kind;
    }
}

const TIMEOUT_MS = 40000;
let csrf = "",
    onSignedOut = () => {};

/** fn is called when a call is refused because there is no session, or no longer. */
export function setOnSignedOut(fn) {
    onSignedOut = fn;
}

/** The proof that a call comes from this page, which whoami gives. */
export function setCsrf(token) {
    csrf = token || "";
}

/** @returns the reply as JSON; throws ApiError */
export function get(path, options = {}) {
    return call("GET", path, undefined, options);
}

/** @returns the reply as JSON; throws ApiError */
export async function post(path, body = {}) {
    try {
        return await call("POST", path, body, {});
    } catch (error) {
        if (error.status !== 403 || !path.startsWith("/api/") || !(await renewCsrf())) throw error;
        return call("POST", path, body, {});
    }
}

/** Whether the session is another one, because another tab of the browser signed in again. */
async function renewCsrf() {
    const { csrf: now } = await get("/api/v1/whoami");
    const isNew = Boolean(now) && now !== csrf;
    setCsrf(now);
    return isNew;
}

/** Bytes of a reply that is not JSON, with the headers: {bytes, headers}. Throws ApiError. */
export async function getBytes(path, options = {}) {
    const reply = await request("GET", path, undefined, options);
    return { bytes: new Uint8Array(await reply.arrayBuffer()), headers: reply.headers };
}

/** A path with a query; null, undefined and "" are left out, arrays are repeated. */
export function withQuery(path, query) {
    const parts = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
        for (const one of Array.isArray(value) ? value : [value])
            if (one !== null && one !== undefined && one !== "") parts.append(name, one);
    const text = parts.toString();
    return text ? path + "?" + text : path;
}

async function call(method, path, body, options) {
    const reply = await request(method, path, body, options);
    return reply.json();
}

async function request(method, path, body, { signal } = {}) {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const headers = { Accept: "application/json" };
    if (body !== undefined)
        Object.assign(headers, { "Content-Type": "application/json", "X-CSRF-Token": csrf });
    let reply;
    try {
        reply = await fetch(path, {
            method,
            headers,
            credentials: "same-origin",
            cache: "no-store",
            redirect: "error",
            body: body === undefined ? undefined : JSON.stringify(body),
            signal: signal ? anySignal(signal, timeout) : timeout,
        });
    } catch (e) {
        if (signal && signal.aborted) throw e;
        throw new ApiError(
            0,
            "offline",
            timeout.aborted
                ? "belayd has not answered within 40 s"
                : "belayd cannot be reached; it is tried again by itself",
        );
    }
    if (reply.status === 401 && path.startsWith("/api/")) onSignedOut();
    if (!reply.ok) throw await errorOf(reply);
    return reply;
}

function anySignal(...signals) {
    const both = new AbortController();
    for (const one of signals) {
        if (one.aborted) both.abort();
        one.addEventListener("abort", () => both.abort(), { once: true });
    }
    return both.signal;
}

async function errorOf(reply) {
    let error = {};
    try {
        error = (await reply.json()).error || {};
    } catch (e) {
        // a proxy's page, say
    }
    return new ApiError(
        reply.status,
        error.kind || "failed",
        error.text || "belayd, or a proxy before it, replied " + reply.status,
    );
}
