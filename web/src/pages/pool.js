// SPDX-License-Identifier: Apache-2.0
// One pool: use against limits, base load, boots, nodes, machines, offers, settings.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, duration, rate } from "../format.js";
import { Card, PageHead } from "../parts/card.js";
import { Facts } from "../parts/facts.js";
import { isComing } from "../parts/instance.js";
import { nodeColumns } from "../parts/node.js";
import { Offers } from "../parts/offer.js";
import { OfferHistory } from "../parts/offer_history.js";
import { FailedBoots, NextBaseLoad, baseLoadText } from "../parts/pool.js";
import { Empty, Loaded } from "../parts/states.js";
import { Meter, Stat, Stats } from "../parts/stat.js";
import { Table } from "../parts/table.js";

export function Pool({ params, query }) {
    const of = useData("/api/v1/pools/detail?name=" + encodeURIComponent(params.name), {
        on: ["node", "instance", "pool", "job"],
    });
    const pool = of.data && of.data.pools[0];
    return html`<${PageHead} title=${"Pool " + params.name}
            note=${pool && [pool.kind, pool.provider, pool.region].filter(Boolean).join(", ")}>
            <a class="button" href=${"/console/jobs?pool=" + encodeURIComponent(params.name)}>
                Its jobs</a></${PageHead}>
        <${Loaded} of=${of} lines=${8}>${({ pools: [p] }) =>
            html`<${Parts} pool=${p} query=${query} />`}
        </${Loaded}>`;
}

function Parts({ pool: p, query }) {
    return html`${
        !p.configured &&
        html`<p class="notice notice-warn">The configuration
            does not have this pool any more: nothing is launched or placed in it.</p>`
    }
        <${FailedBoots} boots=${p.boots} />
        <${Figures} pool=${p} />
        <${Nodes} pool=${p} />
        ${
            p.kind === "elastic" &&
            html`<${Card} title="Offers">
            <${Offers} offers=${p.offers} pool=${p.name} /></${Card}>
            <${OfferHistory} pool=${p.name} query=${query} />`
        }
        <${About} pool=${p} /><${Settings} settings=${p.settings} />`;
}

/** "3 of 4" and a bar where there is a limit. */
function Used({ name, of, text = count }) {
    return html`<${Stat} name=${name} value=${
        of.max === null ? text(of.used) : html`${text(of.used)} of ${text(of.max)}`
    }
        note=${
            of.max > 0 &&
            html`<${Meter} name=${name} used=${of.used} total=${of.max}
            tone=${of.used >= of.max ? "warn" : "plain"} />`
        } />`;
}

function Figures({ pool: p }) {
    const jobs = p.nodes.reduce((sum, n) => sum + n.jobs, 0);
    const coming = p.instances.filter(isComing).length;
    return html`<${Stats}>
        <${Stat} name="Attempts of jobs" value=${count(jobs)} />
        ${
            p.limits
                ? html`<${Used} name="Nodes" of=${p.limits.nodes} /><${Used} name="GPUs"
            of=${p.limits.gpus} />
            <${Used} name="Cost now" of=${p.limits.uusd_per_hour} text=${rate} />`
                : html`<${Stat} name="Nodes" value=${count(p.nodes.length)} />`
        }
        ${coming > 0 && html`<${Stat} name="Booting" value=${count(coming)} />`}
        ${
            p.kind === "elastic" &&
            html`<${Stat} name="Keeps"
            value=${baseLoadText(p.base_load) || "nothing"} note="without jobs" />`
        }
    </${Stats}>`;
}

function Nodes({ pool }) {
    const shown = pool.nodes.slice(0, 50),
        all = "/console/nodes?pool=" + encodeURIComponent(pool.name);
    const columns = nodeColumns.filter((c) => c.name !== "Pool");
    return html`<${Card} title="Nodes"
        more=${html`<a href=${all}>All ${count(pool.nodes.length)}</a>`}>
        <${Table} caption="Nodes of this pool" columns=${columns} rows=${shown}
            rowKey=${(n) => n.id}
            empty=${html`<${Empty} title="No nodes">${
                pool.kind === "elastic"
                    ? "belay launches machines when jobs need them."
                    : "A machine joins by a token."
            }</${Empty}>`} /></${Card}>`;
}

function About({ pool: p }) {
    const words = (o) =>
        Object.entries(o)
            .map(([name, n]) => `${name}: ${n}`)
            .join(", ");
    return html`<${Card} title="About it"><${Facts} rows=${[
        [
            "Next",
            p.base_load && p.base_load.next_at && html`<${NextBaseLoad} base=${p.base_load} />`,
        ],
        [
            "Ends idle machines",
            p.idle_timeout_ms !== null && "after " + duration(p.idle_timeout_ms),
        ],
        ["Labels needed", p.required_labels.join(", ")],
        ["Features", p.features.join(", ")],
        ["Resources", words(p.resources)],
        ["Most nodes", p.max_nodes !== null && count(p.max_nodes)],
        ["Most GPUs", p.max_gpus !== null && count(p.max_gpus)],
        ["Most cost", p.max_uusd_per_hour !== null && rate(p.max_uusd_per_hour)],
    ]} /></${Card}>`;
}

function Settings({ settings }) {
    if (!settings) return null;
    const text = (v) =>
        Array.isArray(v)
            ? v.map(text).join(", ")
            : typeof v === "object"
              ? JSON.stringify(v)
              : String(v);
    const rows = Object.entries(settings)
        .filter(
            ([, v]) =>
                v !== null &&
                !(Array.isArray(v) && v.length === 0) &&
                !(typeof v === "object" && Object.keys(v).length === 0),
        )
        .map(([name, v]) => [name, text(v)]);
    return html`<div class="settings"><${Card} title="Settings"><${Facts}
        rows=${rows} /></${Card}></div>`;
}
