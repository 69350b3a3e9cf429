// SPDX-License-Identifier: Apache-2.0
// Prices and reclaims of offers over time, from what belay saw.
import { withQuery } from "../api.js";
import { useData } from "../data.js";
import { html, useMemo } from "../dom.js";
import { count, money, plural } from "../format.js";
import { Card } from "./card.js";
import { Chart } from "./chart.js";
import { Choice, Filters } from "./fields.js";
import { busiest, outcomeSeries, priceSeries } from "./offer_series.js";
import { Empty, Loaded } from "./states.js";

const SHOWN_MAX = 6; // offers in a chart, one colour each
const DAYS = [
    ["", "14 days"],
    ["1", "1 day"],
    ["3", "3 days"],
    ["45", "45 days"],
];

/** @param pool "" for all */
export function OfferHistory({ pool, query }) {
    const days = query.get("days") || "";
    const of = useData(withQuery("/api/v1/offers/history", { pool, days }), { on: ["instance"] });
    return html`<${Card} title="Price and reclaim history" more=${html`<${Filters}>
            <${Choice} name="days" label="Period" value=${days} options=${DAYS} /></${Filters}>`}>
        <${Loaded} of=${of}>${(d) =>
            d.offers.length === 0
                ? html`<${Empty} title="No machine was asked for in this time">belay sees prices and
                reclaims of
                the machines that it launches.</${Empty}>`
                : html`<${Charts} history=${d} />`}</${Loaded}></${Card}>`;
}

function Charts({ history }) {
    const shown = useMemo(() => busiest(history.offers, SHOWN_MAX), [history]);
    const prices = useMemo(() => priceSeries(shown, Date.now()), [shown]);
    const ends = useMemo(
        () => outcomeSeries(shown, Date.parse(history.since), Date.now()),
        [shown],
    );
    const left = history.offers.length - shown.length;
    const sum = (name) => shown.reduce((total, o) => total + o[name].length, 0);
    return html`<h3>Price an hour</h3>
        ${
            prices.series.length > 0
                ? html`<${Chart} name="Price of offers" kind="step" format=${money}
                    range=${ends.range} ...${prices} />`
                : html`<${Empty} title="No prices yet">belay records the prices of machines that it
                    launches; the offers' present prices are in their table.</${Empty}>`
        }
        <h3>Machines</h3>
        <p class="hint">${plural(sum("launched"), "machine")} came, ${count(sum("reclaimed"))} of
            them
            were taken back; ${plural(sum("refused"), "time")} none came.</p>
        <${Chart} name="Machines that came, were taken back, or did not come" kind="bars"
            format=${count} times=${ends.times} series=${ends.series} />
        ${
            left > 0 &&
            html`<p class="hint">Shown are the ${count(shown.length)} offers with most
            machines;
            ${count(left)} more are left out.</p>`
        }
        ${
            history.more &&
            html`<p class="hint">There were more machines than the newest that are
            examined.</p>`
        }`;
}
