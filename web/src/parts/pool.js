// SPDX-License-Identifier: Apache-2.0
// A pool's base load and failed boots in words.
import { html } from "../dom.js";
import { plural } from "../format.js";
import { Ago, Moment } from "./time.js";

/** "3 nodes, 1 warm": what a pool keeps without jobs; "" for none. */
export function baseLoadText(base) {
    if (!base) return "";
    return [
        base.min_nodes > 0 && plural(base.min_nodes, "node"),
        base.warm_nodes > 0 && `${base.warm_nodes} warm`,
        base.window && `in window ${base.window}`,
    ]
        .filter(Boolean)
        .join(", ");
}

/** What it keeps next; null if that does not change. */
export function NextBaseLoad({ base }) {
    if (!base || !base.next_at) return null;
    const next = baseLoadText({
        min_nodes: base.next_min_nodes,
        warm_nodes: base.next_warm_nodes,
        window: base.next_window,
    });
    return html`${next || "nothing"} from <${Moment} at=${base.next_at} />${
        base.launches_from && html`; launches begin <${Ago} at=${base.launches_from} />`
    }`;
}

/** A warning while the machines of a pool do not join. */
export function FailedBoots({ boots: b }) {
    if (!b) return null;
    return html`<div class="notice notice-bad"><p><b>${plural(b.failed, "machine")} in a row failed
        to boot.</b>
            ${b.text && ` The last: ${b.text}.`}
            ${b.one_at_a_time && " Machines are launched one at a time, after waits that double."}
            ${
                b.next_launch_at &&
                html` The next is launched <${Ago}
                at=${b.next_launch_at} />.`
            }</p>
        ${
            b.console &&
            html`<details><summary>The end of its console</summary>
            <pre class="code-block" tabindex="0">${b.console}</pre></details>`
        }</div>`;
}
