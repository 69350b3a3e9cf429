// SPDX-License-Identifier: Apache-2.0
// A machine of a provider, in lists and on the page of its node.
import { html } from "../dom.js";
import { rate } from "../format.js";
import { Badge } from "./badge.js";
import { PoolLink } from "./node.js";
import { Ago, Lasted } from "./time.js";

const TONES = {
    intended: "busy",
    queued: "busy",
    launched: "busy",
    running: "good",
    ending: "warn",
    gone: "plain",
};

/** Whether a machine is on its way: asked for, but it has not joined. */
export const isComing = (i) => ["intended", "queued", "launched"].includes(i.state);

/** The columns of every table of instances. */
export const instanceColumns = [
    { name: "No.", size: 50, cell: (i) => i.id },
    {
        name: "At the provider",
        size: 130,
        cell: (i) =>
            html`<span class="clip mono"
                title=${i.provider_id || ""}>${i.provider_id || ""}</span>`,
    },
    {
        name: "State",
        size: 100,
        cell: (i) => html`<${Badge}
        word=${i.reclaimed ? "reclaimed" : i.state}
            tone=${i.reclaimed ? "warn" : TONES[i.state]} />`,
    },
    { name: "Pool", size: 90, cell: (i) => html`<${PoolLink} pool=${i.pool} />` },
    {
        name: "Machine",
        size: 230,
        cell: (i) => html`<span class="clip" title=${machine(i)}>${machine(i)}</span>`,
    },
    { name: "Price", size: 95, cell: (i) => rate(i.price_uusd_h), number: true },
    {
        name: "Node",
        size: 75,
        cell: (i) => i.node && html`<a href=${"/console/nodes/" + i.node}>node ${i.node}</a>`,
    },
    {
        name: "Asked for",
        size: 100,
        cell: (i) => html`<${Ago} at=${i.intended_at} />`,
        number: true,
    },
    {
        name: "Boot",
        size: 60,
        cell: (i) =>
            i.joined_at
                ? html`<${Lasted} from=${i.launched_at || i.intended_at} to=${i.joined_at} />`
                : "",
        number: true,
    },
    {
        name: "Lived",
        size: 95,
        cell: (i) =>
            i.launched_at ? html`<${Lasted} from=${i.launched_at} to=${i.ended_at} />` : "",
        number: true,
    },
    {
        name: "Why it ended",
        cell: (i) => i.text && html`<span class="clip" title=${i.text}>${i.text}</span>`,
        wide: true,
    },
];

function machine(i) {
    return `${i.type} ${i.market} in ${i.zone}`;
}
