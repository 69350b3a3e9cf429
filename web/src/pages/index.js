// SPDX-License-Identifier: Apache-2.0
// All pages: one row each. `nav` is its name in the menu; a page without one is reached from
// others.
import { match } from "../router.js";
import { Advice } from "./advice.js";
import { AuditLog } from "./audit_log.js";
import { Budgets } from "./budgets.js";
import { Cost } from "./cost.js";
import { Cron } from "./cron.js";
import { Crons } from "./crons.js";
import { Digest } from "./digest.js";
import { Drills } from "./drills.js";
import { Events } from "./events.js";
import { Forecast } from "./forecast.js";
import { Instances } from "./instances.js";
import { Job } from "./job.js";
import { Jobs } from "./jobs.js";
import { Node } from "./node.js";
import { Nodes } from "./nodes.js";
import { NotFound } from "./not_found.js";
import { Offers } from "./offers.js";
import { Overview } from "./overview.js";
import { Pool } from "./pool.js";
import { Pools } from "./pools.js";
import { Racks } from "./racks.js";
import { Report } from "./report.js";
import { Reservations } from "./reservations.js";
import { Secrets } from "./secrets.js";
import { Shares } from "./shares.js";
import { Submit } from "./submit.js";
import { Tokens } from "./tokens.js";
import { Users } from "./users.js";

/* role: the least that sees it; belayd decides again what anybody may read */
export const pages = [
    { path: "/", nav: "Overview", group: "Work", title: () => "Overview", page: Overview },
    { path: "/console/jobs", nav: "Jobs", group: "Work", title: () => "Jobs", page: Jobs },
    {
        path: "/console/submit",
        nav: "Submit",
        group: "Work",
        role: "member",
        title: () => "Submit a job",
        page: Submit,
    },
    { path: "/console/jobs/:ref", title: ({ ref }) => "Job " + ref, page: Job },
    { path: "/console/cost", nav: "Costs", group: "Money", title: () => "Costs", page: Cost },
    {
        path: "/console/budgets",
        nav: "Budgets",
        group: "Money",
        title: () => "Budgets",
        page: Budgets,
    },
    {
        path: "/console/forecast",
        nav: "Forecast",
        group: "Money",
        title: () => "Cost forecast",
        page: Forecast,
    },
    {
        path: "/console/report",
        nav: "Reports",
        group: "Money",
        title: () => "Reports",
        page: Report,
    },
    { path: "/console/nodes", nav: "Nodes", group: "Cluster", title: () => "Nodes", page: Nodes },
    { path: "/console/nodes/:id", title: ({ id }) => "Node " + id, page: Node },
    { path: "/console/racks", nav: "Racks", group: "Cluster", title: () => "Racks", page: Racks },
    { path: "/console/pools", nav: "Pools", group: "Cluster", title: () => "Pools", page: Pools },
    { path: "/console/pools/:name", title: ({ name }) => "Pool " + name, page: Pool },
    {
        path: "/console/offers",
        nav: "Offers",
        group: "Cluster",
        title: () => "Offers",
        page: Offers,
    },
    {
        path: "/console/instances",
        nav: "Instances",
        group: "Cluster",
        title: () => "Instances",
        page: Instances,
    },
    {
        path: "/console/reservations",
        nav: "Reservations",
        group: "Cluster",
        title: () => "Reservations",
        page: Reservations,
    },
    {
        path: "/console/drills",
        nav: "Drills",
        group: "Cluster",
        title: () => "Drills",
        page: Drills,
    },
    {
        path: "/console/events",
        nav: "Events",
        group: "Cluster",
        title: () => "Events",
        page: Events,
    },
    {
        path: "/console/digest",
        nav: "Digest",
        group: "Money",
        title: () => "Morning digest",
        page: Digest,
    },
    { path: "/console/advice", nav: "Advice", group: "Money", title: () => "Advice", page: Advice },
    { path: "/console/cron", nav: "Cron", group: "Plan", title: () => "Cron", page: Crons },
    { path: "/console/cron/:id", title: ({ id }) => "Cron entry " + id, page: Cron },
    {
        path: "/console/shares",
        nav: "Teams and shares",
        group: "Plan",
        title: () => "Teams and shares",
        page: Shares,
    },
    { path: "/console/users", nav: "Users", group: "Plan", title: () => "Users", page: Users },
    {
        path: "/console/audit-log",
        nav: "Audit log",
        group: "Admin",
        role: "admin",
        title: () => "Audit log",
        page: AuditLog,
    },
    {
        path: "/console/tokens",
        nav: "Tokens",
        group: "Admin",
        role: "member",
        title: () => "Tokens",
        page: Tokens,
    },
    {
        path: "/console/secrets",
        nav: "Secrets",
        group: "Admin",
        role: "member",
        title: () => "Secrets",
        page: Secrets,
    },
];

const notFound = { path: null, title: () => "Not found", page: NotFound };

export function pageOf(path) {
    for (const page of pages) {
        const params = match(page.path, path);
        if (params) return { page, params };
    }
    return { page: notFound, params: {} };
}
