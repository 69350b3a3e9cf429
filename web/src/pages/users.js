// SPDX-License-Identifier: Apache-2.0
// The users: their teams and roles, what they run now, and what they have spent this month.
import { withQuery } from "../api.js";
import { useData } from "../data.js";
import { html } from "../dom.js";
import { count, money, percent } from "../format.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { Field, Filters } from "../parts/fields.js";
import { Empty, Loaded } from "../parts/states.js";
import { Meter } from "../parts/stat.js";
import { Table } from "../parts/table.js";
import { people } from "../people.js";

export function Users({ query, user }) {
    const name = query.get("user") || "",
        team = query.get("team") || "";
    const users = useData("/api/v1/users", { on: ["summary"] });
    const shares = useData("/api/v1/shares", { on: ["summary", "job"] });
    const month = new Date().toISOString().slice(0, 7) + "-01T00:00:00Z";
    const cost = useData(withQuery("/api/v1/cost", { by: "user", from: month }), {
        on: ["budget"],
    });
    return html`<${PageHead} title="Users" note="What each one runs now, and spent this month" />
        <${Filters}><${Field} name="user" label="User" value=${name} /><${Field} name="team"
            label="Team" value=${team} /></${Filters}>
        <${Card} title="All users"><${Loaded} of=${users} lines=${6}>${(d) => {
            const rows = people(
                d.users,
                shares.data && shares.data.shares,
                cost.data && cost.data.lines,
            );
            return html`<${Table} caption="Users and what they use" columns=${columns(user, rows)}
                rows=${rows.filter((r) => isShown(r, name, team))}
                rowKey=${(r) => r.user} empty=${html`<${Empty} title="Nobody is here">Users are
                    listed when belayd's configuration names them, when they have signed in, or
                    from their first job on.</${Empty}>`} />`;
        }}</${Loaded}></${Card}>`;
}

function isShown(row, user, team) {
    return (!user || row.user === user) && (!team || row.teams.includes(team));
}

const link = (page, r, text) =>
    html`<a href=${"/console/" + page + encodeURIComponent(r.user)}>${text}</a>`;

function jobs(r, state) {
    return r[state] === 0 ? 0 : link("jobs?state=" + state + "&user=", r, count(r[state]));
}

function Teams({ of }) {
    if (of.teams.length === 0) return html`<span class="quiet">none</span>`;
    return html`<span>${of.teams.map(
        (t, i) => html`${i > 0 && ", "}<a
            href=${"/console/shares?team=" + encodeURIComponent(t)}>${t}</a>${
                of.leads.includes(t) && " (lead)"
            }`,
    )}</span>`;
}

/** Roles and spending of others are shown where belayd shows them to the user. */
function columns(user, rows) {
    const hasRoles = rows.some((r) => r.role && r.user !== user.user);
    const most = Math.max(...rows.map((r) => r.uusd || 0));
    return [
        {
            name: "User",
            cell: (r) =>
                html`<span>${link("jobs?user=", r, r.user)}${
                    r.user === user.user && html` <span class="quiet">you</span>`
                }</span>`,
        },
        { name: "Teams", cell: (r) => html`<${Teams} of=${r} />` },
        hasRoles && {
            name: "Role",
            cell: (r) => r.role && html`<${Badge} word=${r.role} />`,
        },
        { name: "Running", cell: (r) => jobs(r, "running"), number: true },
        { name: "Waiting", cell: (r) => jobs(r, "pending"), number: true },
        { name: "CPUs now", cell: (r) => count(Math.round(r.cpus * 10) / 10), number: true },
        {
            name: "Part of the team's use",
            cell: (r) =>
                r.shares
                    .filter((s) => s.part !== null)
                    .map(
                        (s, i) =>
                            html`${i > 0 && ", "}${percent(s.part)}${
                                r.shares.length > 1 && " of " + (s.team || "(no team)")
                            }`,
                    ),
            number: true,
        },
        {
            name: "Spent this month",
            cell: (r) => link("cost?period=month&by=project&user=", r, money(r.uusd)),
            number: true,
        },
        {
            name: "Against the most",
            cell: (r) =>
                most > 0 &&
                html`<${Meter} name=${"Spending of " + r.user} used=${r.uusd || 0}
                    total=${most} />`,
            wide: true,
        },
    ].filter(Boolean);
}
