// SPDX-License-Identifier: Apache-2.0
// Series of the charts of offers, from GET /api/v1/offers/history.
import { DAY_MS } from "../format.js";
import { offerName } from "./offer.js";

const HOUR_MS = 3600000,
    SHOWN_LEAST_MS = 12 * HOUR_MS;

/** The offers with most machines, of the same names as in the table. */
export function busiest(offers, most) {
    return [...offers].sort((a, b) => b.launched.length - a.launched.length).slice(0, most);
}

/** One step line an offer of which prices were seen, up to now. */
export function priceSeries(offers, nowMs) {
    const at = (p) => Date.parse(p.at);
    const times = [...new Set([...offers.flatMap((o) => o.prices.map(at)), nowMs])].sort(
        (a, b) => a - b,
    );
    const seen = offers.filter((o) => o.prices.length > 0);
    const series = seen.map((o) => {
        let i = 0,
            price = null;
        const values = times.map((t) => {
            for (; i < o.prices.length && at(o.prices[i]) <= t; i++) price = o.prices[i].uusd_h;
            return price;
        });
        return { name: `${offerName(o)} (${o.pool})`, values };
    });
    return { times, series };
}

/** Numbers of machines in each hour, or each day of a long period. */
export function outcomeSeries(offers, fromMs, toMs) {
    const first = Math.min(
        ...offers.flatMap((o) => [...o.launched, ...o.refused]).map(Date.parse),
        toMs,
    );
    const begin = Math.max(fromMs, Math.min(first, toMs - SHOWN_LEAST_MS)),
        step = toMs - begin > 4 * DAY_MS ? DAY_MS : HOUR_MS;
    const from = Math.floor(begin / step) * step,
        n = Math.floor((toMs - from) / step) + 1;
    const times = Array.from({ length: n }, (_, i) => from + i * step);
    const counts = (name) => {
        const values = times.map(() => 0);
        for (const t of offers.flatMap((o) => o[name]).map(Date.parse))
            if (t >= from && t < from + n * step) values[Math.floor((t - from) / step)]++;
        return values;
    };
    const series = [
        { name: "came", values: counts("launched"), colour: "--useful" },
        { name: "taken back", values: counts("reclaimed"), colour: "--lost" },
        { name: "none came", values: counts("refused"), colour: "--save" },
    ];
    return { times, series, range: [from, toMs] };
}
