// SPDX-License-Identifier: Apache-2.0
// What a period will have cost at its end, from the costs of the days before. Pure.
//
// A day to come is expected to cost the mean of the same weekday. The band has 8 of 10 ends, from
// how much whole days differed from that; or whole weeks, where days that differ follow each other.
// Days are those of UTC, as belayd adds costs up.
import { DAY_MS, dayOf } from "./format.js";

const Z = 1.2816; // standard deviations to each side of 8 in 10
export const HISTORY_DAYS = 63; // at most
export const LEAST_DAYS = 14;

function weekdayOf(day) {
    return new Date(Date.parse(day)).getUTCDay();
}

/** The sums of each day from lines of /api/v1/cost whose first key is the day: day => uusd. */
export function daySums(lines) {
    const sums = new Map();
    for (const l of lines) sums.set(l.keys[0], (sums.get(l.keys[0]) || 0) + l.uusd);
    return sums;
}

/** [{day, uusd}] of whole days before now, oldest first, from the first one that has costs on. */
export function historyOf(sums, nowMs) {
    const days = [];
    for (let i = HISTORY_DAYS; i > 0; i--) {
        const day = dayOf(nowMs - i * DAY_MS),
            uusd = sums.get(day) || 0;
        if (days.length > 0 || uusd > 0) days.push({ day, uusd });
    }
    return days;
}

const mean = (list) => list.reduce((sum, v) => sum + v, 0) / Math.max(1, list.length);
const meanSquare = (list) => mean(list.map((v) => v * v));

/** {weekdays: mean cost by weekday, days, variance: of a day}; null with too little history. */
export function modelOf(history) {
    if (history.length < LEAST_DAYS) return null;
    const weekdays = Array.from({ length: 7 }, (_, w) =>
        mean(history.filter((d) => weekdayOf(d.day) === w).map((d) => d.uusd)),
    );
    const off = history.map((d) => d.uusd - weekdays[weekdayOf(d.day)]);
    const weeks = [];
    for (let end = off.length; end >= 7; end -= 7)
        weeks.push(off.slice(end - 7, end).reduce((sum, v) => sum + v, 0));
    return {
        weekdays,
        days: history.length,
        variance: Math.max(meanSquare(off), meanSquare(weeks) / 7),
    };
}

/** What is expected to be spent from one moment to another: {uusd, low, high}. */
export function spendingOf(model, fromMs, toMs) {
    let uusd = 0;
    for (let at = fromMs; at < toMs; ) {
        const end = Math.min(toMs, (Math.floor(at / DAY_MS) + 1) * DAY_MS);
        uusd += (model.weekdays[new Date(at).getUTCDay()] * (end - at)) / DAY_MS;
        at = end;
    }
    const days = Math.max(0, toMs - fromMs) / DAY_MS;
    const spread = Z * Math.sqrt(model.variance * (days + (days * days) / model.days));
    return { uusd, low: Math.max(0, uusd - spread), high: uusd + spread };
}

/** The end of a period: {uusd, low, high} with what it has cost so far; null without a model. */
export function endOf(model, spent, nowMs, untilMs) {
    if (!model) return null;
    const more = spendingOf(model, nowMs, untilMs);
    return { uusd: spent + more.uusd, low: spent + more.low, high: spent + more.high };
}

/** When a cap is expected to be reached before `until`: ms, or null. */
export function capReachedAt(model, spent, cap, nowMs, untilMs) {
    if (spent >= cap) return nowMs;
    let at = nowMs,
        sum = spent;
    while (at < untilMs) {
        const end = Math.min(untilMs, (Math.floor(at / DAY_MS) + 1) * DAY_MS),
            more = spendingOf(model, at, end).uusd;
        if (sum + more >= cap) return at + ((end - at) * (cap - sum)) / more;
        sum += more;
        at = end;
    }
    return null;
}

/** How an expected end stands to a cap. */
export function standing(end, cap) {
    return end.low >= cap
        ? "exceeded"
        : end.uusd >= cap
          ? "likely exceeded"
          : end.high >= cap
            ? "may be exceeded"
            : "kept";
}

/** The first moments of this month and the next one. */
export function monthOf(nowMs) {
    const at = new Date(nowMs);
    return [0, 1].map((n) => Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + n, 1));
}

/** The sum of the days from one on, to before another. */
export function sumOf(sums, fromMs, toMs) {
    let sum = 0;
    for (const [day, uusd] of sums)
        if (Date.parse(day) >= fromMs && Date.parse(day) < toMs) sum += uusd;
    return sum;
}

/** The chart of a month: what was spent by each moment, and what is expected, with its band. */
export function monthSeries(sums, model, nowMs) {
    const [from, until] = monthOf(nowMs),
        times = [],
        spent = [],
        ahead = { uusd: [], low: [], high: [] };
    let sum = 0;
    const push = (at, value, end) => {
        times.push(at);
        spent.push(value);
        for (const key in ahead) ahead[key].push(end ? end[key] : null);
    };
    for (let at = from; at + DAY_MS <= nowMs; at += DAY_MS) {
        push(at, sum, null);
        sum += sums.get(dayOf(at)) || 0;
    }
    const today = Math.floor(nowMs / DAY_MS) * DAY_MS;
    if (today < nowMs) push(today, sum, null);
    sum += sums.get(dayOf(nowMs)) || 0;
    push(nowMs, sum, model && { uusd: sum, low: sum, high: sum });
    for (let at = today + DAY_MS; model && at <= until; at += DAY_MS)
        push(at, null, endOf(model, sum, nowMs, at));
    const series = [{ name: "spent", values: spent }];
    if (model)
        series.push(
            { name: "expected", values: ahead.uusd, dash: [4, 4] },
            { name: "low, 8 of 10", values: ahead.low, dash: [2, 6], colour: "--boot" },
            { name: "high, 8 of 10", values: ahead.high, dash: [2, 6], colour: "--boot", band: 2 },
        );
    return { times, series, spent: sum };
}

/** What /api/v1/cost is asked for to see a budget's costs by day; null where it cannot say. */
export function costQueryOf(match) {
    const labels = Object.keys(match.labels);
    if (match.job !== null || labels.length > 3) return null;
    return {
        by: ["day", ...labels.map((name) => "label:" + name)].join(","),
        team: match.team,
        user: match.user,
        pool: match.pool,
    };
}

/** The lines of that reply that the budget covers. */
export function linesOf(match, lines) {
    const values = Object.values(match.labels);
    return lines.filter((l) => values.every((value, i) => l.keys[i + 1] === value));
}
