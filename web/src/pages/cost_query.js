// SPDX-License-Identifier: Apache-2.0
// What the cost explorer asks belayd for: keys, and periods of whole days of UTC, as belayd adds
// costs up. Pure.
import { DAY_MS, dayOf } from "../format.js";

export const KEYS = [
    "team",
    "user",
    "project",
    "pool",
    "type",
    "market",
    "kind",
    "day",
    "week",
    "month",
];
export const KEYS_MAX = 4;
export const PERIODS = [
    ["month", "this month"],
    ["last-month", "last month"],
    ["7d", "last 7 days"],
    ["30d", "last 30 days"],
    ["90d", "last 90 days"],
    ["year", "last 365 days"],
    ["custom", "dates"],
];
const LENGTH_DAYS = { "7d": 7, "30d": 30, "90d": 90, year: 365 };

/** The keys of the URL's "by", as many as belayd takes; "team" without any. */
export function keysOf(by) {
    const keys = (by || "team")
        .split(",")
        .filter((k) => KEYS.includes(k) || /^label:[^,]+$/.test(k));
    return keys.length > 0 ? [...new Set(keys)].slice(0, KEYS_MAX) : ["team"];
}

/** {from, to}: days "2026-11-28", `to` excluded and null for now. */
export function periodOf(period, from, to, nowMs) {
    const now = new Date(nowMs);
    const month = (n) => dayOf(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + n, 1));
    if (period === "custom" && isDay(from))
        return { from, to: isDay(to) && to >= from ? dayOf(Date.parse(to) + DAY_MS) : null };
    if (period === "last-month") return { from: month(-1), to: month(0) };
    if (LENGTH_DAYS[period])
        return { from: dayOf(nowMs - (LENGTH_DAYS[period] - 1) * DAY_MS), to: null };
    return { from: month(0), to: null };
}

function isDay(text) {
    return /^\d{4}-\d\d-\d\d$/.test(text || "") && !Number.isNaN(Date.parse(text));
}

/** "day", "week" or "month": so that a chart of the period has few enough bars. */
export function stepOf(period, chosen, nowMs) {
    if (["day", "week", "month"].includes(chosen)) return chosen;
    const days = ((period.to ? Date.parse(period.to) : nowMs) - Date.parse(period.from)) / DAY_MS;
    return days <= 62 ? "day" : days <= 250 ? "week" : "month";
}

/** All steps of the period, named as belayd names them, so that days without costs have a bar. */
export function stepsOf(period, step, found, nowMs) {
    const end = period.to ? Date.parse(period.to) : nowMs;
    const steps = new Set();
    for (let at = Date.parse(period.from); at < end && steps.size < 1000; at += DAY_MS) {
        const day = step === "week" ? weekOf(at) : dayOf(at);
        steps.add(step === "month" ? day.slice(0, 7) : day);
    }
    for (const name of found) steps.add(name);
    return [...steps].sort();
}

/** The Monday of a day's week. */
export function weekOf(ms) {
    return dayOf(ms - ((new Date(ms).getUTCDay() + 6) % 7) * DAY_MS);
}
