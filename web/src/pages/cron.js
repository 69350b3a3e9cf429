// SPDX-License-Identifier: Apache-2.0
// One cron entry: its times, what became of each, and what can be done with it.
import { get, post } from "../api.js";
import { useData } from "../data.js";
import { html, useState } from "../dom.js";
import { NONE, count, duration } from "../format.js";
import { AskButton, useAsk } from "../parts/ask.js";
import { Badge } from "../parts/badge.js";
import { Card, PageHead } from "../parts/card.js";
import { Facts } from "../parts/facts.js";
import { Empty, Failure, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Ago, Moment } from "../parts/time.js";
import { navigate } from "../router.js";
import { mayChange } from "../session.js";
import { Outcome, scheduleText } from "./crons.js";

export function Cron({ params }) {
    const path = "/api/v1/crons/" + encodeURIComponent(params.id);
    const of = useData(path, { on: ["cron", "job"] });
    const plan = useData("/api/v1/crons/plan?days=1", { on: ["job"] });
    const planned = plan.data && plan.data.crons.find((c) => c.id === Number(params.id));
    return html`<${Loaded} of=${of} title=${"Cron entry " + params.id}>${({ cron: c, job }) => html`
        <${PageHead} title=${"Cron entry " + c.name} note=${"of " + c.user + ", number " + c.id}>
            <${Actions} cron=${c} reload=${of.reload} /></${PageHead}>
        ${c.why && html`<p class="notice notice-bad" role="alert">It starts nothing: ${c.why}</p>`}
        <${Card} title="Schedule" more=${html`<${Badge} word=${c.state}
            tone=${c.state === "paused" ? "warn" : undefined} />`}>
            <${About} c=${c} planned=${planned} /></${Card}>
        <div class="columns"><${Upcoming} c=${c} />
            ${job && html`<${Card} title="What it submits"><${Job} job=${job} /></${Card}>`}</div>
        <${Runs} path=${path + "/runs"} />`}</${Loaded}>`;
}

function About({ c, planned }) {
    return html`<${Facts} rows=${[
        ["Runs", html`<code>${scheduleText(c)}</code>`],
        ["Next", c.next_at && html`<${Ago} at=${c.next_at} /> (<${Moment} at=${c.next_at} />)`],
        [
            "Usually takes",
            planned &&
                planned.usual_ms &&
                duration(planned.usual_ms) + ", at most " + duration(planned.longest_ms),
        ],
        ["Done by", c.done_by],
        [
            "If it overlaps",
            {
                skip: "the run is skipped",
                queue: "the run waits",
                replace: "the earlier job is cancelled",
            }[c.overlap],
        ],
        [
            "Missed times",
            {
                none: "are not made up for",
                last: "the last one is run",
                all: "up to " + c.catch_up_max + " are run",
            }[c.catch_up],
        ],
        ["Not on", c.skip_on && "days of calendar " + c.skip_on],
        ["Only on", c.only_on && "days of calendar " + c.only_on],
        [
            "Outcomes",
            `${count(c.started)} started, ${count(c.skipped)} skipped, ${count(c.missed)} missed`,
        ],
        ["Created", html`<${Moment} at=${c.created_at} />`],
    ]} />`;
}

function Upcoming({ c }) {
    const left = c.left_out.map((l) => ({ ...l, isOut: true }));
    const times = [...c.upcoming.map((at) => ({ at })), ...left].sort(
        (a, b) => Date.parse(a.at) - Date.parse(b.at),
    );
    return html`<${Card} title="Next times">${
        times.length === 0
            ? html`<${Empty} title="None" />`
            : html`<ol class="events">${times.map(
                  (t) =>
                      html`<li key=${t.at}>${
                          t.isOut
                              ? html`<s>${t.at}</s> left out: ${t.why}`
                              : html`${t.at} <${Ago} at=${t.at} />`
                      }</li>`,
              )}</ol>`
    }
        ${
            c.waiting.length > 0 &&
            html`<p>Waiting for the end of the job
            before: ${c.waiting.join(", ")}</p>`
        }</${Card}>`;
}

function Job({ job }) {
    const { script, ...rest } = job;
    const shown = Object.entries(rest).filter(([name]) => name !== "env");
    return html`<${Facts} rows=${shown.map(([name, value]) => [
        name,
        typeof value === "object" ? JSON.stringify(value) : String(value),
    ])} />
        ${
            script &&
            html`<h3 class="card-part">Script</h3><pre class="code-block"
            tabindex="0">${script}</pre>`
        }`;
}

const columns = [
    { name: "Run", cell: (r) => r.number, number: true },
    { name: "Time", cell: (r) => html`<${Moment} at=${r.at} />${r.by_hand && " by hand"}` },
    {
        name: "Outcome",
        cell: (r) => html`<${Outcome} run=${r} />${r.times > 1 && " " + count(r.times) + " times"}`,
    },
    {
        name: "Job",
        cell: (r) => (r.job ? html`<a href=${"/console/jobs/" + r.job}>${r.job}</a>` : NONE),
        number: true,
    },
    { name: "Started after", cell: (r) => between(r.at, r.started_at), number: true },
    { name: "Took", cell: (r) => between(r.started_at, r.ended_at), number: true },
    { name: "Why", cell: (r) => r.text || "", wide: true },
];

function between(from, to) {
    return from && to ? duration(Math.max(0, Date.parse(to) - Date.parse(from))) : NONE;
}

/** The newest runs, and older ones on demand. */
function Runs({ path }) {
    const newest = useData(path + "?limit=50", { on: ["cron", "job"] });
    const [older, setOlder] = useState({ runs: [], next: null, error: null, read: false });
    const next = older.read ? older.next : newest.data && newest.data.next;
    const more = async () => {
        try {
            const page = await get(path + "?limit=200&before=" + next);
            setOlder((old) => ({
                runs: [...old.runs, ...page.runs],
                next: page.next,
                error: null,
                read: true,
            }));
        } catch (error) {
            setOlder((old) => ({ ...old, error }));
        }
    };
    return html`<${Card} title="History"><${Loaded} of=${newest}>${(d) => {
        const last = older.runs.length > 0 ? older.runs[0].number : 0;
        const rows = [...d.runs.filter((r) => r.number > last), ...older.runs];
        return html`<${Table} caption="Runs" columns=${columns} rows=${rows}
            rowKey=${(r) => r.number}
            empty=${html`<${Empty} title="It has not run yet" />`} />`;
    }}</${Loaded}>
        ${older.error && html`<${Failure} error=${older.error} />`}
        ${next && html`<button type="button" onClick=${more}>Older runs</button>`}</${Card}>`;
}

function Actions({ cron: c, reload }) {
    const questions = useAsk(reload);
    const may = mayChange(c);
    if (!may || c.state === "removed") return null;
    const call = (verb) => post("/api/v1/crons/" + c.id + "/" + verb);
    const run = {
        title: "Run " + c.name + " now",
        verb: "Run now",
        act: async () => navigate("/console/jobs/" + (await call("run")).id),
        body: html`<p>Its job is submitted at once, outside of the schedule,
            and charged as its others. Refused while one
            of its jobs has not ended.</p>`,
    };
    const pause = {
        title: "Pause " + c.name,
        verb: "Pause",
        act: () => call("pause"),
        body: html`<p>It starts nothing until it is resumed. Jobs that it has started keep
            running.</p>`,
    };
    const resume = {
        title: "Resume " + c.name,
        verb: "Resume",
        act: () => call("resume"),
        body: html`<p>It starts its job at the times of its schedule again. Times of the pause are
            not made up for.</p>`,
    };
    const remove = {
        title: "Remove " + c.name,
        verb: "Remove",
        danger: true,
        act: async () => {
            await call("remove");
            navigate("/console/cron");
        },
        body: html`<p>The entry is gone for good; its history stays. Jobs that it has started keep
            running.</p>`,
    };
    return html`${
        c.state === "paused"
            ? html`<${AskButton} of=${questions} question=${resume} label="Resume" />`
            : html`<${AskButton} of=${questions} question=${run} label="Run now" />
                <${AskButton} of=${questions} question=${pause} label="Pause" />`
    }
        <${AskButton} of=${questions} question=${remove} label="Remove" />${questions.dialog}`;
}
