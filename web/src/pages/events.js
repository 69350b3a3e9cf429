// SPDX-License-Identifier: Apache-2.0
// The event log of the cluster, newest first, live; older pages are added below.
import { withQuery } from "../api.js";
import { useData } from "../data.js";
import { html } from "../dom.js";
import { PageHead } from "../parts/card.js";
import { EventList } from "../parts/events.js";
import { Choice, Field, Filters } from "../parts/fields.js";
import { OlderButton, allRows, useOlder } from "../parts/older.js";
import { Loaded } from "../parts/states.js";

const PAGE = 200;
const GROUPS = {
    reclaims: "notice,saved,save-failed,restored,restore-failed,lost,requeued,reclaim",
    jobs:
        "submitted,updated,held,released,started,ended,cancel,requeue,requeued,preempt," +
        "time-limit",
    nodes:
        "joined,notice,lost,returned,drain,auto-drain,undrain,throttled,recovered,disk-full," +
        "disk-room,fault,gone," +
        "reservation,reservation-over",
    machines:
        "launch,launched,launch-refused,offer-refused,boot-failed,boot-console," +
        "boots-again,ending,gone,base-load",
    troubles:
        "save-failed,restore-failed,damaged,lost,fault,boot-failed,clean-failed," +
        "prefetch-failed,store-refused," +
        "no-credentials,drill-failed,disk-full,throttled,late,in-vain",
    money: "budget,spend-anomaly,idle-gpus,park,settled",
    drills: "drill,drill-passed,drill-compared,drill-failed,drill-interrupted",
};
const NAMES = [
    ["", "all"],
    ["reclaims", "reclaims and saves"],
    ["jobs", "jobs"],
    ["nodes", "nodes"],
    ["machines", "machines of providers"],
    ["troubles", "what failed"],
    ["money", "money"],
    ["drills", "drills"],
];

export function Events({ query }) {
    const group = query.get("kind") || "",
        node = query.get("node") || "",
        instance = query.get("instance") || "";
    const kind = GROUPS[group] || group,
        number = (text) => (/^[1-9]\d*$/.test(text) ? text : null);
    const path = withQuery("/api/v1/events", {
        tail: PAGE,
        kind,
        node: number(node),
        instance: number(instance),
    });
    const newest = useData(path, { on: ["event"] });
    const older = useOlder(path, "events");
    const options = GROUPS[group] || !group ? NAMES : [...NAMES, [group, group]];
    return html`<${PageHead} title="Events" />
        <${Filters}>
            <${Choice} name="kind" label="About" value=${group} options=${options} />
            <${Field} name="node" label="Node number" value=${node} inputmode="numeric" />
            <${Field} name="instance" label="Instance number" value=${instance}
                inputmode="numeric" />
        </${Filters}>
        <section class="card" aria-label="Events"><div class="card-body">
            <${Loaded} of=${newest} lines=${8}>${(d) =>
                html`<${Pages} newest=${d} older=${older}
                    filtered=${Boolean(group || node || instance)} />`}</${Loaded}>
        </div></section>`;
}

function Pages({ newest, older, filtered }) {
    const events = allRows(older, newest.events, PAGE);
    return html`<${EventList} events=${events}
            empty=${filtered ? "No event is like that" : "No events yet"}
            hint=${
                filtered
                    ? "Remove a filter to see more; machines have the numbers of their pages."
                    : "What happens to jobs, nodes and machines is listed here as it happens."
            } />
        <${OlderButton} older=${older} page=${newest} rows=${events} name="events" />`;
}
