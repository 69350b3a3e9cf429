// SPDX-License-Identifier: Apache-2.0
// The machines of providers: those that live, or also those that ended.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, plural, rate } from "../format.js";
import { PageHead } from "../parts/card.js";
import { Choice, Filters } from "../parts/fields.js";
import { instanceColumns, isComing } from "../parts/instance.js";
import { PoolChoice } from "../parts/node.js";
import { OlderButton, allRows, onlyRow, useOlder } from "../parts/older.js";
import { Empty, Loaded } from "../parts/states.js";
import { Stat, Stats } from "../parts/stat.js";
import { LongTable } from "../parts/table.js";
import { setQuery } from "../router.js";

const PAGE = 1000; // rows of a page of belayd
const ROW_PX = 37; // of .table-long td in table.css
const SHOW = [
    ["live", "live"],
    ["all", "also ended"],
];

export function Instances({ query }) {
    const state = query.get("state") || "live",
        all = state === "all",
        pool = query.get("pool") || "",
        id = query.get("id");
    const path =
        "/api/v1/instances?state=" + (all || id ? "all" : "live") + (id ? onlyRow(id) : "");
    const list = useData(path, { on: ["instance"] });
    const older = useOlder(path, "instances");
    return html`<${PageHead} title="Instances" note="Machines that belay launched at providers" />
        <${Loaded} of=${list} lines=${8}>${(page) => {
            const instances = allRows(older, page.instances, PAGE);
            const shown = instances
                .filter((i) => (!pool || i.pool === pool) && (!id || String(i.id) === id))
                .reverse();
            return html`${!id && html`<${Figures} instances=${instances} />`}
                <${Filters}>
                    <${Choice} name="state" label="Show" value=${state} options=${SHOW} />
                    <${PoolChoice} rows=${instances} pool=${pool} />
                    ${
                        id &&
                        html`<button type="button"
                        onClick=${() => setQuery({ id: "" })}>Only instance ${id}: show
                            all</button>`
                    }
                </${Filters}>
                ${
                    shown.length === 0
                        ? html`<${Empty} title=${
                              instances.length === 0 && !all
                                  ? "No machine of a provider is alive"
                                  : "No instance is like that"
                          }>${
                              all
                                  ? "None was launched, or their rows were deleted."
                                  : html`Those that ended are in <a
                        href="/console/instances?state=all">all instances</a>.`
                          }</${Empty}>`
                        : html`<${LongTable} caption="Instances" columns=${instanceColumns}
                        rows=${shown} rowKey=${(i) => i.id} rowHeight=${ROW_PX} />`
                }
                ${
                    !id &&
                    html`<${OlderButton} older=${older} page=${page} rows=${instances}
                    name="instances" />`
                }`;
        }}</${Loaded}>`;
}

function Figures({ instances }) {
    const live = instances.filter((i) => i.state !== "gone");
    const booting = live.filter(isComing).length;
    const gone = instances.filter((i) => i.state === "gone" && i.launched_at);
    return html`<${Stats}>
        <${Stat} name="Live" value=${count(live.length)}
            note=${booting > 0 && count(booting) + " booting"} />
        <${Stat} name="Spot" value=${count(live.filter((i) => i.market === "spot").length)} />
        <${Stat} name="Cost now" value=${rate(
            live.reduce((sum, i) => sum + (i.launched_at ? i.price_uusd_h : 0), 0),
        )} />
        ${
            gone.length > 0 &&
            html`<${Stat} name="Reclaimed"
            value=${count(gone.filter((i) => i.reclaimed).length)}
            note=${"of " + plural(gone.length, "machine") + " that ended"} />`
        }
    </${Stats}>`;
}
