// SPDX-License-Identifier: Apache-2.0
// The list of jobs: the server filters, sorts and pages; the page shows what is in sight.
import { get, withQuery } from "../api.js";
import { html, useEffect, useRef, useState } from "../dom.js";
import { count, money } from "../format.js";
import { JobState } from "../parts/badge.js";
import { PageHead } from "../parts/card.js";
import { JobLink, JobName } from "../parts/job.js";
import { Empty, Failure, Loading } from "../parts/states.js";
import { LongTable } from "../parts/table.js";
import { Ago, Lasted } from "../parts/time.js";
import { setQuery } from "../router.js";
import { hasRole } from "../session.js";
import { subscribe } from "../stream.js";

const PAGE = 200;
const REFRESH_MS = 1000;
const ROW_PX = 37; // of .table-long td in table.css
const STATES = [
    "active",
    "pending",
    "running",
    "ended",
    "succeeded",
    "failed",
    "cancelled",
    "timeout",
    "all",
];
const SORTS = { newest: "newest first", oldest: "oldest first", ended: "last ended first" };

const columns = [
    { name: "Job", cell: (j) => html`<${JobLink} job=${j} />`, size: 75 },
    { name: "Name", cell: (j) => html`<${JobName} job=${j} />`, size: 150 },
    { name: "User", cell: (j) => j.user, size: 90 },
    { name: "State", cell: (j) => html`<${JobState} job=${j} />`, size: 120 },
    {
        name: "Where, or why",
        cell: (j) => html`<span class="clip" title=${where(j)}>${where(j)}</span>`,
        wide: true,
    },
    {
        name: "Submitted",
        cell: (j) => html`<${Ago} at=${j.submitted_at} />`,
        number: true,
        size: 105,
    },
    {
        name: "Ran",
        cell: (j) => html`<${Lasted} from=${j.started_at} to=${j.ended_at} />`,
        number: true,
        size: 110,
    },
    {
        name: "Reclaims",
        cell: (j) => (j.reclaims ? count(j.reclaims) : ""),
        number: true,
        size: 75,
    },
    { name: "Cost", cell: (j) => money(j.cost_uusd), number: true, size: 90 },
];

function where(j) {
    return j.state === "pending" && j.why ? j.why.text : j.node || j.pool_used || "";
}

export function Jobs({ query }) {
    const filter = {
        state: query.get("state") || "active",
        user: query.get("user"),
        team: query.get("team"),
        pool: query.get("pool"),
        name: query.get("name"),
        label: query.get("label"),
        sort: query.get("sort"),
    };
    const list = useJobs(withQuery("/api/v1/jobs", { ...filter, limit: PAGE, why: 1 }));
    const isSearching = !list.jobs || (list.jobs.length === 0 && list.next);
    const isPlain =
        filter.state === "active" &&
        ["user", "team", "pool", "name", "label"].every((name) => !filter[name]);
    return html`<${PageHead} title="Jobs"
            note=${
                list.jobs &&
                count(list.jobs.length) + (list.next ? " and more" : "") + " in this list"
            }>
            ${
                hasRole("member") &&
                html`<a class="button button-main"
                href="/console/submit">Submit a job</a>`
            }</${PageHead}>
        <${Filters} filter=${filter} />
        ${list.error && html`<${Failure} error=${list.error} retry=${list.reload} />`}
        ${isSearching && !list.error && html`<${Loading} lines=${8} />`}
        ${
            list.jobs &&
            list.jobs.length === 0 &&
            !isSearching &&
            html`<${Empty} title=${isPlain ? "No job waits or runs" : "No job is like that"}>
            ${
                filter.state === "active"
                    ? html`Ended jobs are in <a href="/console/jobs?state=all">all jobs</a>.`
                    : "Remove a filter to see more."
            }${isPlain && html` <code>belay submit SCRIPT</code> submits one.`}</${Empty}>`
        }
        ${
            list.jobs &&
            list.jobs.length > 0 &&
            html`<${LongTable} caption="Jobs" columns=${columns} rows=${list.jobs}
            rowKey=${(j) => j.id} rowHeight=${ROW_PX} onEnd=${list.more} />`
        }`;
}

/** The list of a filter as far as it has been read: {jobs, next, error, more, reload}; jobs is null
 * before that. */
function useJobs(path) {
    const [, redraw] = useState(0);
    const list = useRef(null);
    if (!list.current || list.current.path !== path)
        list.current = new JobList(path, () => redraw((n) => n + 1));
    useEffect(() => list.current.open(), [path]);
    const { jobs, next, error } = list.current;
    return {
        jobs,
        next,
        error,
        more: () => list.current.more(),
        reload: () => list.current.refresh(),
    };
}

/** Pages of the list one after the other; the first is read again when jobs change. */
class JobList {
    constructor(path, changed) {
        Object.assign(this, {
            path,
            changed,
            jobs: null,
            next: null,
            error: null,
            busy: false,
            again: false,
            timer: 0,
            closed: false,
        });
    }

    /** Returns the function that closes it. */
    open() {
        this.refresh();
        const stop = subscribe(["job"], () => {
            this.timer =
                this.timer ||
                setTimeout(() => {
                    this.timer = 0;
                    this.refresh();
                }, REFRESH_MS);
        });
        return () => {
            this.closed = true;
            clearTimeout(this.timer);
            stop();
        };
    }

    refresh() {
        this.again = this.busy;
        this.read(this.path, (page) => {
            const rest = this.jobs && restOf(this.jobs, page, this.path);
            this.jobs = rest ? [...page.jobs, ...rest] : page.jobs;
            if (!rest || !page.next) this.next = page.next;
        });
    }

    more() {
        if (!this.next) return;
        this.read(this.path + "&before=" + this.next, (page) => {
            const fresh = new Set(page.jobs.map((j) => j.id));
            this.next = page.next;
            this.jobs = [...this.jobs.filter((j) => !fresh.has(j.id)), ...page.jobs];
        });
    }

    async read(path, take) {
        if (this.busy) return;
        this.busy = true;
        try {
            take(await get(path));
            this.error = null;
        } catch (error) {
            this.error = error;
        }
        this.busy = false;
        if (this.closed) return;
        this.changed();
        if (this.again) this.refresh();
        // belayd reads some thousand jobs for one page, of which few may match
        else if (!this.error && this.jobs.length < PAGE) this.more();
    }
}

/** What stays of the old jobs below the first page, which was read anew; null if it is not known
 * what is between them. */
export function restOf(old, page, path) {
    if (!page.next) return [];
    const fresh = new Set(page.jobs.map((j) => j.id));
    const rest = (jobs) => jobs.filter((j) => !fresh.has(j.id));
    if (page.jobs.length < PAGE) {
        // belayd has stopped to look at the job `next`
        if (path.includes("sort=ended")) return rest(old);
        const isOldest = path.includes("sort=oldest");
        return rest(old.filter((j) => (isOldest ? j.id > page.next : j.id < page.next)));
    }
    const at = old.findIndex((j) => j.id === page.jobs[page.jobs.length - 1].id);
    return at < 0 ? null : rest(old.slice(at + 1));
}

function Filters({ filter }) {
    const change = (name) => (event) => setQuery({ [name]: event.target.value.trim() });
    const field = (name, label, hint) => html`<label>${label}
        <input name=${name} value=${filter[name] || ""} onChange=${change(name)} placeholder=${hint}
            maxlength="63" autocomplete="off" /></label>`;
    return html`<form class="filters" onSubmit=${(e) => e.preventDefault()} aria-label="Filter">
        <label>State <select name="state" onChange=${change("state")}>
            ${STATES.map(
                (s) => html`<option value=${s}
                selected=${s === filter.state}>${s}</option>`,
            )}</select></label>
        ${field("user", "User")} ${field("team", "Team")} ${field("pool", "Pool")}
        ${field("name", "Name", "train*")} ${field("label", "Label", "NAME=VALUE")}
        <label>Order <select name="sort" onChange=${change("sort")}>
            ${Object.entries(SORTS).map(
                ([value, text]) => html`<option value=${value === "newest" ? "" : value}
                selected=${value === (filter.sort || "newest")}>${text}</option>`,
            )}</select></label>
    </form>`;
}
