// SPDX-License-Identifier: Apache-2.0
// Reservations of nodes for maintenance: the list, and for operators adding and removing.
import { post } from "../api.js";
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, duration, plural } from "../format.js";
import { AskButton, useAsk } from "../parts/ask.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { PoolLink } from "../parts/node.js";
import { ReservationForm, reservationOf } from "../parts/reservation_form.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Ago } from "../parts/time.js";
import { hasRole } from "../session.js";

const ON = ["node", "job", "event"];

export function Reservations() {
    const list = useData("/api/v1/reservations", { on: ON });
    const of = useAsk(list.reload);
    return html`<${PageHead} title="Reservations"
            note="Times when nodes, or a pool, are kept free for maintenance">
            ${
                hasRole("operator") &&
                html`<${AskButton} of=${of} question=${addition}
                label="Reserve nodes" />`
            }
        </${PageHead}>
        <${Loaded} of=${list}>${({ reservations }) => html`<${Card} title="Reservations">
            <${Table} caption="All reservations" columns=${columns(of)} rows=${reservations}
                rowKey=${(r) => r.id} empty=${html`<${Empty} title="No reservations">
                    Before one begins, belay starts no job on its nodes that would still run then,
                    and saves and moves the rest.</${Empty}>`} />
            </${Card}>`}</${Loaded}>${of.dialog}`;
}

const addition = {
    title: "Reserve nodes for maintenance",
    verb: "Reserve",
    act: (form) => post("/api/v1/reservations", reservationOf(form)),
    body: html`<${ReservationForm} />`,
};

function removal(r) {
    return {
        title: "Remove reservation " + r.name,
        verb: "Remove",
        danger: true,
        act: () => post(`/api/v1/reservations/${r.id}/remove`),
        body: html`<p>Its ${plural(r.n_nodes, "node")} take jobs again${
            r.every ? ", and it does not repeat" : ""
        }.</p>`,
    };
}

function columns(of) {
    const all = [
        { name: "Name", cell: (r) => r.name },
        {
            name: "State",
            cell: (r) => html`<${Badge} word=${r.state}
            tone=${r.state === "open" ? "warn" : "busy"} />`,
        },
        { name: "Covers", cell: (r) => html`<${Covers} r=${r} />` },
        { name: "When", cell: (r) => html`<${When} r=${r} />`, wide: true },
        { name: "Why", cell: (r) => [r.reason, "by " + r.by].filter(Boolean).join(", ") },
        {
            name: "May use it",
            cell: (r) => [...r.users, ...r.teams.map((t) => "team " + t)].join(", "),
        },
        { name: "Jobs there", cell: (r) => html`<${Jobs} r=${r} />` },
    ];
    const remove = {
        name: "",
        number: true,
        cell: (r) =>
            html`<${AskButton} of=${of} question=${removal(r)}
        label="Remove" name=${"Remove reservation " + r.name} />`,
    };
    return hasRole("operator") ? [...all, remove] : all;
}

function Covers({ r }) {
    return html`<span>${r.pool ? html`pool <${PoolLink} pool=${r.pool} />` : r.nodes}
        ${` (${plural(r.n_nodes, "node")})`}</span>`;
}

function When({ r }) {
    const open = r.state === "open";
    return html`<span>${r.period}<br />
        <span class="quiet">${
            open ? html`ends <${Ago} at=${r.until} />` : html`begins <${Ago} at=${r.from} />`
        },
            for ${duration(r.for_ms)}${r.every === "week" ? ", every week" : ""}</span></span>`;
}

/** Those that cannot be saved are named: they may still run when it begins. */
function Jobs({ r }) {
    if (r.jobs === 0) return "none";
    const way = r.in_the_way;
    return html`<span>${count(r.jobs)}${
        way.length > 0 &&
        html`<br /><span class="quiet">in the way:
        ${way.map(
            (ref, i) => html`${i > 0 && ","} <a
            href=${"/console/jobs/" + ref}>${ref}</a>`,
        )}</span>`
    }</span>`;
}
