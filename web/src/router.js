// SPDX-License-Identifier: Apache-2.0
// The page's URL is the state of what is shown: every page, filter and selection has a link.
import { useEffect, useState } from "./dom.js";

const listeners = new Set();

function changed() {
    for (const listener of listeners) listener();
}

addEventListener("popstate", changed);
addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href]");
    if (
        !link ||
        event.defaultPrevented ||
        event.button !== 0 ||
        link.target ||
        link.download ||
        event.metaKey ||
        event.ctrlKey ||
        event.shiftKey ||
        event.altKey
    )
        return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || !isConsole(url.pathname) || isAsset(url.pathname)) return;
    event.preventDefault();
    navigate(url.pathname + url.search + url.hash);
});

function isConsole(path) {
    return path === "/" || path.startsWith("/console/");
}

function isAsset(path) {
    return path.startsWith("/console/assets/");
}

/** Goes to a path of the console. */
export function navigate(path, { replace = false } = {}) {
    history[replace ? "replaceState" : "pushState"](null, "", path);
    if (!replace) scrollTo(0, 0);
    changed();
}

/** {path, query}: query is a URLSearchParams. */
export function useLocation() {
    const [, count] = useState(0);
    useEffect(() => {
        const listener = () => count((n) => n + 1);
        listeners.add(listener);
        return () => listeners.delete(listener);
    }, []);
    return { path: location.pathname, query: new URLSearchParams(location.search) };
}

/** Changes some parameters of the query in place; "" removes one. */
export function setQuery(changes) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes))
        if (value) query.set(name, value);
        else query.delete(name);
    const text = query.toString();
    navigate(location.pathname + (text ? "?" + text : ""), { replace: true });
}

/** The parameters of "/console/jobs/:ref" in path, or null if it does not match. */
export function match(pattern, path) {
    const names = pattern.split("/"),
        parts = path.replace(/(.)\/$/, "$1").split("/");
    if (names.length !== parts.length) return null;
    const found = {};
    for (let i = 0; i < names.length; i++)
        if (names[i].startsWith(":")) found[names[i].slice(1)] = decode(parts[i]);
        else if (names[i] !== parts[i]) return null;
    return found;
}

function decode(part) {
    try {
        return decodeURIComponent(part);
    } catch (e) {
        return part;
    }
}
