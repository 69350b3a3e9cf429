// SPDX-License-Identifier: Apache-2.0
// Offers: what a provider sells to a pool, and what belay has seen of it.
import { html } from "../dom.js";
import { count, duration, percent, rate } from "../format.js";
import { Badge } from "./badge.js";
import { PoolLink } from "./node.js";
import { Empty } from "./states.js";
import { Table } from "./table.js";
import { Ago } from "./time.js";

export function offerName(o) {
    return `${o.type} ${o.market} in ${o.zone}`;
}

/** Whether machines are launched from it now, and if not, the provider's words. */
export function OfferState({ offer: o }) {
    if (o.withdrawn) return html`<${Badge} word="withdrawn" tone="plain" />`;
    if (o.avoided_until)
        return html`<span title=${o.avoided_why}>
            <${Badge} word="avoided" tone="warn" /> tried again <${Ago} at=${o.avoided_until} />
            ${o.avoided_why && `: ${o.avoided_why}`}</span>`;
    return html`<${Badge} word="open" tone="good" />`;
}

function seen(o) {
    return o.up_ms > 0 ? `${count(o.reclaims)} in ${duration(o.up_ms)}` : "not run yet";
}

function reclaims(o) {
    if (o.market !== "spot" || o.reclaims_per_hour === null) return "";
    return html`<span title=${"reclaims: " + seen(o)}>${o.reclaims_per_hour.toFixed(3)}</span>`;
}

function refusals(o) {
    return o.launches === 0 ? "" : `${count(o.refusals)} of ${count(o.launches)}`;
}

function below(o) {
    return o.market === "spot" && o.on_demand_uusd_h > 0
        ? percent(1 - o.price_uusd_h / o.on_demand_uusd_h)
        : "";
}

const offerColumns = [
    { name: "Pool", cell: (o) => html`<${PoolLink} pool=${o.pool} />` },
    { name: "Offer", cell: offerName, wide: true },
    { name: "State", cell: (o) => html`<${OfferState} offer=${o} />` },
    { name: "CPUs", cell: (o) => count(o.cpus), number: true },
    {
        name: "GPUs",
        cell: (o) => (o.gpus ? `${count(o.gpus)} ${o.gpu_model || ""}` : ""),
        number: true,
    },
    { name: "Price", cell: (o) => rate(o.price_uusd_h), number: true },
    { name: "Below on-demand", cell: below, number: true },
    { name: "With lost work", cell: (o) => rate(o.effective_uusd_h), number: true },
    { name: "Reclaims/h", cell: reclaims, number: true },
    { name: "Refused", cell: refusals, number: true },
    { name: "Boot", cell: (o) => (o.boot_ms === null ? "" : duration(o.boot_ms)), number: true },
];

/** @param pool leaves out the column of pools */
export function Offers({ offers, pool }) {
    const columns = pool ? offerColumns.slice(1) : offerColumns;
    return html`<${Table} caption="Offers and their prices" columns=${columns} rows=${offers}
        rowKey=${(o) => [o.pool, o.zone, o.type, o.market].join("|")}
        empty=${html`<${Empty} title="No offers">Only elastic pools have offers.</${Empty}>`} />
        <p class="hint">Price with lost work: what an hour of useful work costs, with boots and
            with the work that reclaims undo. belay launches the cheapest by this price.</p>`;
}
