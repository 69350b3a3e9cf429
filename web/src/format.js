// SPDX-License-Identifier: Apache-2.0
// Numbers and times as people read them. Pure; null and undefined give "–".

export const NONE = "–";
export const DAY_MS = 86400000;

/** The day of UTC, as belayd names it: "2026-11-27". */
export function dayOf(ms) {
    return new Date(ms).toISOString().slice(0, 10);
}

function known(value, text) {
    return value === null || value === undefined ? NONE : text(value);
}

/** Millionths of a dollar: "$0.0042", "$3.10", "$1,204". */
export function money(uusd) {
    return known(uusd, (v) => {
        const usd = v / 1e6,
            size = Math.abs(usd);
        if (size > 0 && size < 0.00005) return usd < 0 ? ">-$0.0001" : "<$0.0001";
        const digits = size === 0 || size >= 1000 ? 0 : size >= 0.1 ? 2 : 4;
        return (
            (usd < 0 ? "-$" : "$") +
            Math.abs(usd).toLocaleString("en-US", {
                minimumFractionDigits: digits,
                maximumFractionDigits: digits,
            })
        );
    });
}

/** Millionths of a dollar an hour: "$3.10/h". */
export function rate(uusd) {
    return known(uusd, (v) => money(v) + "/h");
}

const UNITS = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
];

/** Milliseconds in at most two units: "240 ms", "3.2 s", "5 min 3 s", "2 h", "3 d 4 h". */
export function duration(ms) {
    return known(ms, (v) => {
        if (v < 0) return "-" + duration(-v);
        if (v < 1000) return Math.round(v) + " ms";
        if (v < 9950) return (v / 1000).toFixed(1) + " s";
        let seconds = Math.round(v / 1000);
        const at = UNITS.findIndex(([size]) => seconds >= size);
        const [size, unit] = UNITS[at],
            next = UNITS[at + 1];
        const more = next ? Math.floor((seconds % size) / next[0]) : 0;
        return Math.floor(seconds / size) + " " + unit + (more ? " " + more + " " + next[1] : "");
    });
}

/** Bytes in binary units: "512 B", "1.4 MiB". */
export function bytes(n) {
    return known(n, (v) => {
        const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let i = 0;
        for (; Math.abs(v) >= 1024 && i < units.length - 1; i++) v /= 1024;
        return (i === 0 || Math.abs(v) >= 100 ? Math.round(v) : v.toFixed(1)) + " " + units[i];
    });
}

export function mebibytes(n) {
    return known(n, (v) => bytes(v * 1048576));
}

export function count(n) {
    return known(n, (v) => v.toLocaleString("en-US"));
}

/** A part of one: "37 %". */
export function percent(part) {
    return known(part, (v) => Math.round(v * 100) + " %");
}

/** "job", "jobs": the noun for a count. */
export function plural(n, one, many) {
    return count(n) + " " + (n === 1 ? one : many || one + "s");
}

/** "in 3 min", "5 s ago". */
export function relative(ms, nowMs) {
    const left = ms - nowMs,
        size = Math.abs(left);
    if (size < 1000) return "now";
    const at = size < 60000 ? 1000 : size < 3600000 ? 60000 : size < 86400000 ? 3600000 : 86400000;
    const text = duration(Math.floor(size / at) * at).replace(/\.0 s$/, " s");
    return left > 0 ? "in " + text : text + " ago";
}

const LOCALE = "en-GB"; // of all times: day before month, hours from 00 to 23
const DAY = { month: "short", day: "numeric" },
    TIME = { hour: "2-digit", minute: "2-digit" },
    SECONDS = { ...TIME, second: "2-digit" };

function moment(ms, parts) {
    return new Date(ms).toLocaleString(LOCALE, parts);
}

/** A moment in the viewer's zone: "27 Nov 2026, 09:15:03 GMT+1". */
export function absolute(ms) {
    return moment(ms, { ...DAY, year: "numeric", ...SECONDS, timeZoneName: "shortOffset" });
}

/** "09:15", or "09:15:03" */
export function clock(ms, withSeconds = false) {
    return moment(ms, withSeconds ? SECONDS : TIME);
}

/** "27 Nov, 09:15" */
export function dayTime(ms) {
    return moment(ms, { ...DAY, ...TIME });
}

/** "Fri 27 Nov" */
export function weekday(ms) {
    return moment(ms, { weekday: "short", ...DAY }).replace(",", "");
}

/** A day of UTC in a key of costs, "2026-11-27", as "27 Nov 2026"; another text as it is. */
export function utcDay(text) {
    if (!/^\d{4}-\d\d-\d\d$/.test(text)) return text;
    return moment(Date.parse(text), { ...DAY, year: "numeric", timeZone: "UTC" });
}

/** A moment, as short as its distance to now allows: "09:15", "27 Nov, 09:15", "27 Nov 2025". */
export function shortTime(ms, nowMs) {
    const at = new Date(ms),
        now = new Date(nowMs);
    if (at.toDateString() === now.toDateString()) return clock(ms);
    if (at.getFullYear() === now.getFullYear()) return dayTime(ms);
    return moment(ms, { ...DAY, year: "numeric" });
}

/**
 * Labels of an axis of time whose ticks are `stepMs` apart: "09:15", and the day below the first of
 * each day. From a day on only the day, from half a year on "Nov 2026".
 */
export function axisTimes(times, stepMs) {
    const days = stepMs / 86400000;
    if (days >= 180) return times.map((t) => moment(t, { month: "short", year: "numeric" }));
    if (days >= 1) return times.map((t) => moment(t, DAY));
    const day = (t) => moment(t, DAY);
    return times.map((t, i) => {
        const isFirst = i === 0 || day(t) !== day(times[i - 1]);
        return clock(t, stepMs < 60000) + (isFirst ? "\n" + day(t) : "");
    });
}
