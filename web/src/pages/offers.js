// SPDX-License-Identifier: Apache-2.0
// All offers: prices, reclaims and refusals, and how these were before.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, percent } from "../format.js";
import { Card, PageHead } from "../parts/card.js";
import { Choice, Filters } from "../parts/fields.js";
import { PoolChoice } from "../parts/node.js";
import { Offers as OfferTable } from "../parts/offer.js";
import { OfferHistory } from "../parts/offer_history.js";
import { Empty, Loaded } from "../parts/states.js";
import { Stat, Stats } from "../parts/stat.js";

const MARKETS = [
    ["", "all"],
    ["spot", "spot"],
    ["on-demand", "on-demand"],
];

export function Offers({ query }) {
    const pool = query.get("pool") || "",
        market = query.get("market") || "";
    const list = useData("/api/v1/offers", { on: ["pool", "instance"] });
    return html`<${PageHead} title="Offers" note="Machines that can be launched" />
        <${Loaded} of=${list} lines=${6}>${({ offers }) => {
            const shown = offers.filter(
                (o) => (!pool || o.pool === pool) && (!market || o.market === market),
            );
            return html`<${Figures} offers=${offers} />
                <${Filters}><${PoolChoice} rows=${offers} pool=${pool} />
                    <${Choice} name="market" label="Market" value=${market}
                        options=${MARKETS} /></${Filters}>
                ${
                    shown.length > 0
                        ? html`<${Card} title="Offers"><${OfferTable}
                    offers=${shown} /></${Card}>`
                        : html`<${Empty} title="No offer is like that" />`
                }`;
        }}</${Loaded}>
        <${OfferHistory} pool=${pool} query=${query} />`;
}

function Figures({ offers }) {
    const spot = offers.filter((o) => o.market === "spot" && o.on_demand_uusd_h > 0);
    const best = Math.max(...spot.map((o) => 1 - o.price_uusd_h / o.on_demand_uusd_h));
    return html`<${Stats}>
        <${Stat} name="Open" value=${count(
            offers.filter((o) => !o.avoided_until && !o.withdrawn).length,
        )}
            note=${"of " + count(offers.length)} />
        <${Stat} name="Avoided" value=${count(offers.filter((o) => o.avoided_until).length)} />
        ${
            spot.length > 0 &&
            html`<${Stat} name="Spot" value=${percent(best) + " below"}
            note="on-demand at best" />`
        }
    </${Stats}>`;
}
