// SPDX-License-Identifier: Apache-2.0
// Teams and users: their shares, what they have used of them, and their limits.
import { useData } from "../data.js";
import { html } from "../dom.js";
import { NONE, count, duration, money, percent, plural } from "../format.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { Field, Filters } from "../parts/fields.js";
import { Empty, Loaded } from "../parts/states.js";
import { Meter } from "../parts/stat.js";
import { Table } from "../parts/table.js";

export function Shares({ query }) {
    const user = query.get("user") || "",
        team = query.get("team") || "";
    const shares = useData("/api/v1/shares", { on: ["summary", "job"] });
    const quotas = useData("/api/v1/quotas", { on: ["summary", "job"] });
    const shown = (row) => (!team || row.team === team) && (!user || row.user === user);
    return html`<${PageHead} title="Teams and shares"
            note="Who gets what part when not all jobs can run, and who has used it" />
        <${Filters}><${Field} name="team" label="Team" value=${team} /><${Field} name="user"
            label="User" value=${user} /></${Filters}>
        <${Card} title="Teams"><${Loaded} of=${shares}>${(d) =>
            html`<${Table} caption="Shares of teams" columns=${teamColumns}
            rows=${teamsOf(d.shares).filter((t) => !team || t.team === team)}
                rowKey=${(t) => t.team} empty=${none} />`}</${Loaded}></${Card}>
        <${Card} title="Users"><${Loaded} of=${shares}>${(d) =>
            html`<${Table} caption="Shares of users" columns=${userColumns}
            rows=${d.shares.filter(shown)} rowKey=${(s) => s.team + "/" + s.user}
                empty=${none} />`}</${Loaded}></${Card}>
        <${Card} title="Limits"><${Loaded} of=${quotas}>${(d) =>
            html`<${Table} caption="Limits of teams and users"
            columns=${limitColumns} rows=${d.quotas.filter(
                (q) => (!team || q.team === team) && (!user || q.user === user),
            )}
            rowKey=${(q) => q.team + "/" + q.user} empty=${none} />`}</${Loaded}></${Card}>`;
}

const none = html`<${Empty} title="Nobody is here">A user is listed from their first job on; a team,
    once it is in
    teams: of belayd's configuration.</${Empty}>`;

/** The sums of each team. Its own figures stand in the row of each of its users. */
export function teamsOf(shares) {
    const teams = new Map();
    for (const s of shares) {
        const team = teams.get(s.team) || { ...s, users: 0, cpus: 0, pending: 0, running: 0 };
        teams.set(s.team, {
            ...team,
            users: team.users + 1,
            cpus: team.cpus + s.cpus,
            pending: team.pending + s.pending,
            running: team.running + s.running,
        });
    }
    return [...teams.values()];
}

/** What a team has used against its share, in words: over 1 it comes later than others. */
function Standing({ part, share }) {
    if (part === null || share === null) return html`<span class="quiet">no jobs</span>`;
    const word =
        part > 1.1 * share
            ? "above its share"
            : part < 0.9 * share
              ? "below its share"
              : "at its share";
    return html`<${Badge} word=${word}
        tone=${{ "above its share": "warn", "below its share": "good" }[word]} />`;
}

const teamName = (t) => t.team || "(no team)";

const teamColumns = [
    {
        name: "Team",
        cell: (t) =>
            html`<a href=${
                "/console/shares?team=" + encodeURIComponent(t.team)
            }>${teamName(t)}</a>`,
    },
    {
        name: "Shares",
        cell: (t) => count(t.team_shares) + (t.share === null ? "" : ", " + percent(t.share)),
        number: true,
    },
    {
        name: "Part of the use",
        cell: (t) =>
            html`${percent(t.part)} ${
                t.part !== null &&
                html`<${Meter}
        name=${"Part of the use of " + teamName(t)} used=${t.part} total=${1} />`
            }`,
        wide: true,
    },
    { name: "Standing", cell: (t) => html`<${Standing} part=${t.part} share=${t.share} />` },
    { name: "CPU hours", cell: (t) => count(Math.round(t.team_cpu_hours * 10) / 10), number: true },
    { name: "CPUs now", cell: (t) => count(t.cpus), number: true },
    {
        name: "Jobs",
        cell: (t) =>
            html`<a href=${"/console/jobs?team=" + encodeURIComponent(t.team)}>${
                count(t.running) + " running, " + count(t.pending) + " waiting"
            }</a>`,
    },
    { name: "Users", cell: (t) => plural(t.users, "user"), number: true },
];

const userColumns = [
    {
        name: "User",
        cell: (s) =>
            html`<a href=${"/console/jobs?user=" + encodeURIComponent(s.user)}>${s.user}</a>`,
    },
    { name: "Team", cell: teamName },
    { name: "Shares of the team's", cell: (s) => count(s.shares), number: true },
    { name: "CPU hours", cell: (s) => count(Math.round(s.cpu_hours * 10) / 10), number: true },
    {
        name: "Part of the team's",
        cell: (s) => (s.team_cpu_hours > 0 ? percent(s.cpu_hours / s.team_cpu_hours) : NONE),
        number: true,
    },
    { name: "CPUs now", cell: (s) => count(s.cpus), number: true },
    { name: "Running", cell: (s) => count(s.running), number: true },
    { name: "Waiting", cell: (s) => count(s.pending), number: true },
    {
        name: "Priority from shares",
        cell: (s) =>
            s.fair_ms === 0
                ? "none"
                : duration(Math.abs(s.fair_ms)) + (s.fair_ms > 0 ? " earlier" : " later"),
        number: true,
    },
];

/** What is used of a limit. */
function Limit({ name, used, max, text = count }) {
    if (max === null) return html`${text(used)} <span class="quiet">no limit</span>`;
    const tone = used >= max ? "bad" : used >= 0.8 * max ? "warn" : "good";
    return html`${text(used)} of ${text(max)}
        <${Meter} name=${name} used=${used} total=${max} tone=${tone} />`;
}

const rounded = (v) => Math.round(v * 100) / 100;
const dollars = (usd) => money(usd * 1e6);

const limitColumns = [
    { name: "Of", cell: (q) => (q.user === null ? html`<b>team ${teamName(q)}</b>` : q.user) },
    {
        name: "Running jobs",
        cell: (q) => html`<${Limit} name="Running jobs" used=${q.running} max=${q.max_running} />`,
    },
    {
        name: "CPUs",
        cell: (q) => html`<${Limit} name="CPUs" used=${rounded(q.cpus)}
        max=${q.max_cpus} />`,
    },
    {
        name: "Quota of CPUs",
        cell: (q) =>
            q.user !== null
                ? ""
                : q.quota_cpus === null
                  ? html`<span class="quiet">none</span>`
                  : html`<${Limit} name="Quota of CPUs" used=${rounded(q.cpus)}
                      max=${q.quota_cpus} />`,
    },
    { name: "GPUs", cell: (q) => html`<${Limit} name="GPUs" used=${q.gpus} max=${q.max_gpus} />` },
    {
        name: "Dollars an hour",
        cell: (q) =>
            html`<${Limit} name="Dollars an hour" text=${dollars} used=${q.usd_per_hour}
        max=${q.max_usd_per_hour} />`,
    },
    {
        name: "Jobs in the queue",
        cell: (q) =>
            html`<${Limit} name="Jobs in the queue" used=${q.submitted} max=${q.max_submitted} />`,
    },
];
