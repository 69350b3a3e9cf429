// SPDX-License-Identifier: Apache-2.0
// A job's checkpoints: what it reported, what of it is in the store, and what can be done with it.
import { post } from "../api.js";
import { isOpen, nameOf, withStored } from "../checkpoints.js";
import { useData, usePoll } from "../data.js";
import { html } from "../dom.js";
import { NONE, bytes, count, duration, percent } from "../format.js";
import { mayChange } from "../session.js";
import { AskButton, useAsk } from "./ask.js";
import { Badge } from "./badge.js";
import { Card } from "./card.js";
import { Empty } from "./states.js";
import { Meter } from "./stat.js";
import { Table } from "./table.js";
import { Ago, Moment } from "./time.js";

const POLL_MS = 1000; // while belayd verifies one
const CHANGES = ["saved", "ended", "damaged", "cleaned"]; // events after which the store has others

export function JobCheckpoints({ d }) {
    const { job } = d,
        path = "/api/v1/jobs/" + job.id + "/checkpoints";
    const isMine = (e) => !e || (e.job === job.id && CHANGES.includes(e.kind));
    const stored = useData(job.hidden ? null : path, { on: ["event"], concerns: isMine });
    const verified = useData(job.hidden ? null : path + "/verify");
    const results = verified.data ? verified.data.verifications : [];
    usePoll(results.some(isOpen), POLL_MS, verified.reload);
    const of = useAsk(() => {
        stored.reload();
        verified.reload();
    });
    const rows = withStored(d.checkpoints, stored.data && stored.data.checkpoints, results);
    const newest = rows.find((c) => c.stored);
    return html`<${Card} title="Checkpoints" more=${
        d.certificate && html`<${Badge} word="drilled: resumes" tone="good" />`
    }>
        ${
            d.failed_save &&
            html`<p class="notice notice-bad"
            role="status">The last save failed: ${d.failed_save.text}</p>`
        }
        ${
            stored.error &&
            html`<p class="notice notice-warn" role="status">What is in the store is not known:
                ${" " + stored.error.message}</p>`
        }
        <${Table} caption="Checkpoints of the job" columns=${columns(job, path, of)} rows=${rows}
            most=${20}
            rowKey=${nameOf}
            empty=${html`<${Empty} title="None yet">${
                job.save_interval_ms
                    ? "Saved about every " + duration(job.save_interval_ms) + "."
                    : ""
            }</${Empty}>`} />
        ${newest && html`<${Fetch} which=${job.ref + "@" + nameOf(newest)} />`}
        ${of.dialog}</${Card}>`;
}

/** Content does not pass through belayd, which would show it to whom the store would not. */
function Fetch({ which }) {
    return html`<details><summary>Fetch a checkpoint</summary>
        <p>The files of a checkpoint come from the store, to who may read it there; belayd does not
            pass them on. With access to the store, and for an encrypted checkpoint its key:</p>
        <pre class="code-block" tabindex="0">${`belay checkpoint show ${which}          # its files
belay checkpoint get ${which} DIR       # all of them, into a new directory
belay checkpoint export ${which} F.tar  # as an archive`}</pre></details>`;
}

function columns(job, path, of) {
    return [
        { name: "Checkpoint", cell: nameOf },
        { name: "Saved", cell: (c) => html`<${Moment} at=${c.saved_at} />` },
        { name: "Why", cell: (c) => c.cause || NONE },
        { name: "Progress", cell: (c) => count(c.progress), number: true },
        { name: "Size", cell: (c) => bytes(c.bytes), number: true },
        { name: "New in the store", cell: (c) => bytes(c.stored_bytes), number: true },
        { name: "Took", cell: (c) => duration(c.took_ms), number: true },
        { name: "Program paused", cell: (c) => duration(c.pause_ms), number: true },
        { name: "Now", cell: (c) => html`<${Now} c=${c} />`, wide: true },
        mayChange(job) && {
            name: "Actions",
            cell: (c) => c.stored && html`<${Actions} c=${c} path=${path} of=${of} />`,
        },
    ].filter(Boolean);
}

function Now({ c }) {
    if (c.stored === undefined) return NONE;
    if (!c.stored) return html`<span class="quiet">removed</span>`;
    return html`${
        c.pinned ? html`<${Badge} word="pinned" tone="good" />` : html`<span>in the store</span>`
    }
        ${c.verified && html` <${Verified} v=${c.verified} />`}`;
}

const TONES = { intact: "good", damaged: "bad", failed: "warn" };

function Verified({ v }) {
    const part = v.total_bytes > 0 ? v.done_bytes / v.total_bytes : 0;
    if (v.state === "waiting")
        return html`<span role="status">waits to be verified, for
            ${" " + v.by}</span>`;
    if (v.state === "running")
        return html`<span role="status">being verified: ${
            v.total_bytes ? percent(part) + " of " + bytes(v.total_bytes) : "begins"
        }
            <${Meter} name="Verified" used=${v.done_bytes} total=${v.total_bytes} /></span>`;
    return html`<span role="status"><${Badge} word=${
        v.state === "failed" ? "not verified" : v.state
    } tone=${TONES[v.state]} />
        <${Ago} at=${v.ended_at} />${v.text && ": " + v.text}</span>`;
}

function Actions({ c, path, of }) {
    const verify = !(c.verified && isOpen(c.verified));
    return html`<span class="row-actions">${
        verify &&
        html`<${AskButton} of=${of} question=${verifyQuestion(c, path)} label="Verify"
            name=${"Verify checkpoint " + nameOf(c)} />`
    }
        <${AskButton} of=${of} question=${pinQuestion(c, path)}
            label=${c.pinned ? "Unpin" : "Pin"}
            name=${(c.pinned ? "Unpin" : "Pin") + " checkpoint " + nameOf(c)} /></span>`;
}

const call = (c, path, what) => () =>
    post(path + "/" + what, { attempt: c.attempt, sequence: c.sequence });

function verifyQuestion(c, path) {
    return {
        title: "Verify checkpoint " + nameOf(c),
        verb: "Verify",
        act: call(c, path, "verify"),
        body: html`<p>belayd reads ${
            c.bytes ? "all " + bytes(c.bytes) + " of it" : "all of it"
        } from the store and compares every byte with its hash. Nothing is changed; a bucket may
            charge for the reading. One is read at a time; progress and result are shown
            here.</p>`,
    };
}

function pinQuestion(c, path) {
    return c.pinned
        ? {
              title: "Unpin checkpoint " + nameOf(c),
              verb: "Unpin",
              act: call(c, path, "unpin"),
              body: html`<p>It is removed when the rules of the job's checkpoints no longer keep
                  it.</p>`,
          }
        : {
              title: "Pin checkpoint " + nameOf(c),
              verb: "Pin",
              act: call(c, path, "pin"),
              body: html`<p>It stays in the store, and costs its storage, until it is unpinned,
                  whatever the rules of the job's checkpoints say.</p>`,
          };
}
