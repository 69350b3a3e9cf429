// SPDX-License-Identifier: Apache-2.0
// Where a job's seconds and dollars went, by the ledger.
import { html } from "../dom.js";
import { duration, money, percent } from "../format.js";
import { kindName, kindTone } from "../ledger.js";
import { Card } from "./card.js";
import { Parts } from "./parts_bar.js";
import { Table } from "./table.js";

/** The ledger's rows summed by kind, dearest first. */
export function sums(ledger) {
    const by = new Map();
    for (const r of ledger) {
        const s = by.get(r.kind) || { kind: r.kind, ms: 0, uusd: 0, on_demand_uusd: 0 };
        by.set(r.kind, {
            ...s,
            ms: s.ms + r.node_ms,
            uusd: s.uusd + r.uusd,
            on_demand_uusd: s.on_demand_uusd + r.on_demand_uusd,
        });
    }
    return [...by.values()].sort((a, b) => b.uusd - a.uusd || b.ms - a.ms);
}

/** For the timeline: ", about $0.0012" of a span of an attempt. */
export function costOf(d, row, span) {
    const a = d.attempts.find((x) => x.attempt === row.attempt);
    if (!a || span.kind === "wait") return "";
    const rows = d.ledger.filter((l) => l.attempt === row.attempt);
    const ms = rows.reduce((sum, l) => sum + l.ms, 0),
        uusd = rows.reduce((sum, l) => sum + l.uusd, 0);
    return ms > 0 ? ", about " + money((uusd * (span.to - span.from)) / ms) : "";
}

export function JobCost({ d }) {
    const rows = sums(d.ledger),
        total = rows.reduce((sum, r) => sum + r.uusd, 0);
    const columns = [
        { name: "What", cell: (r) => kindName(r.kind), wide: true },
        { name: "Node time", cell: (r) => duration(r.ms), number: true },
        { name: "Cost", cell: (r) => money(r.uusd), number: true },
        { name: "Part", cell: (r) => (total > 0 ? percent(r.uusd / total) : ""), number: true },
    ];
    return html`<${Card} title="Cost">
        ${
            total > 0 &&
            html`<${Parts} name="Cost" parts=${rows.map((r) => ({
                name: kindName(r.kind),
                value: r.uusd,
                tone: kindTone(r.kind),
                text: money(r.uusd),
            }))} />`
        }
        <${Table} caption="Cost by what the time was" columns=${columns} rows=${rows}
            rowKey=${(r) => r.kind}
            empty=${html`<p class="quiet">The ledger has its first row when an attempt
                ends.</p>`} />
        ${
            d.job.on_demand_uusd > 0 &&
            html`<p>On-demand, without interruptions, the same work would
            have cost ${money(d.job.on_demand_uusd)}.</p>`
        }</${Card}>`;
}
