// SPDX-License-Identifier: Apache-2.0
// The tasks of an array: how many are where, and those that have begun.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, money } from "../format.js";
import { JobState } from "./badge.js";
import { Card } from "./card.js";
import { JobLink, exitText } from "./job.js";
import { Loaded } from "./states.js";
import { Stat, Stats } from "./stat.js";
import { Table } from "./table.js";
import { Lasted } from "./time.js";

const columns = [
    { name: "Task", cell: (j) => html`<${JobLink} job=${j} />` },
    { name: "State", cell: (j) => html`<${JobState} job=${j} />` },
    { name: "Exit code", cell: exitText },
    { name: "Node", cell: (j) => j.node || "", wide: true },
    {
        name: "Ran",
        cell: (j) => html`<${Lasted} from=${j.started_at} to=${j.ended_at} />`,
        number: true,
    },
    { name: "Reclaims", cell: (j) => count(j.reclaims), number: true },
    { name: "Cost", cell: (j) => money(j.cost_uusd), number: true },
];

export function JobTasks({ job, array }) {
    const tasks = useData(
        "/api/v1/jobs?array=" + (job.array_id || job.id) + "&state=all&limit=200",
        { on: ["job"] },
    );
    return html`<${Card} title="Tasks">
        <${Stats}>
            <${Stat} name="Tasks" value=${count(array.tasks)}
                note=${array.at_once ? "at most " + count(array.at_once) + " at once" : ""} />
            <${Stat} name="Succeeded" value=${count(array.succeeded)} />
            <${Stat} name="Ended otherwise" value=${count(array.other)} />
            <${Stat} name="Not begun or running" value=${count(array.left)} />
        </${Stats}>
        <${Loaded} of=${tasks}>${(
            d,
        ) => html`<${Table} caption="Tasks that have begun" columns=${columns} rows=${d.jobs}
            rowKey=${(j) => j.id} />
            ${
                d.next &&
                html`<p class="quiet">The 200 newest tasks. All of them: <code>belay list
                --array ${job.ref}</code></p>`
            }`}</${Loaded}></${Card}>`;
}
