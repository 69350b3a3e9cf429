// SPDX-License-Identifier: Apache-2.0
// The calendar of the next nights: which entries run when, for how long, and what overlaps.
import { classes, html } from "../dom.js";
import { clock, duration, plural, weekday } from "../format.js";
import { Empty } from "../parts/states.js";
import { NIGHTS, nightsOf, unlistedOf } from "./cron_nights.js";

/** @param plan of GET /api/v1/crons/plan */
export function Calendar({ plan }) {
    const nights = nightsOf(plan, Date.now()),
        unlisted = unlistedOf(plan, nights);
    if (
        unlisted.length === 0 &&
        !nights.some((n) => n.runs.length + n.often.length + n.leftOut.length > 0)
    )
        return html`<${Empty} title=${"No entry runs in the next " + NIGHTS + " nights"} />`;
    return html`<p class="hint">From noon to noon, in your time zone. The length of a bar is how
        long the entry's jobs
            usually run; a run that starts while another is expected to run is marked. An entry that
                runs more than 8
            times a night is one line, and not compared. An entry that runs after another is shown
                at the time of
            that one.</p>
        ${unlisted.map(
            ({ entry, from }) => html`<p key=${entry.id}><${EntryLink} entry=${entry} />: more
                runs than are listed, in each night from ${weekday(from)} on</p>`,
        )}
        <ol class="nights">${nights.map(
            (night) => html`<${Night} key=${night.from} night=${night}
                others=${unlisted.some(({ from }) => from <= night.from)} />`,
        )}</ol>`;
}

/** @param others whether entries run that are not listed by night */
function Night({ night, others }) {
    const quiet = night.runs.length + night.often.length + night.leftOut.length === 0;
    return html`<li class=${classes("night", quiet && "night-quiet")}>
        <h3>${weekday(night.from)} to ${weekday(night.to)}</h3>
        ${night.runs.length > 0 && html`<${Track} night=${night} />`}
        <ul class="night-runs">
            ${night.runs.map(
                (run) => html`<${Run} key=${run.entry.id + "." + run.at}
                run=${run} />`,
            )}
            ${night.often.map(
                ({ entry, times }) =>
                    html`<li key=${entry.id}><${EntryLink} entry=${entry} />:${" "}
                ${plural(times, "run")}</li>`,
            )}
            ${night.leftOut.map(
                ({ entry, at, why }) =>
                    html`<li key=${entry.id + "." + at} class="quiet">
                <s>${clock(at)}</s> <${EntryLink} entry=${entry} />: left out, ${why}</li>`,
            )}
            ${quiet && html`<li class="quiet">${others ? "nothing else" : "nothing"}</li>`}
        </ul></li>`;
}

function EntryLink({ entry }) {
    return html`<a href=${"/console/cron/" + entry.id}>${entry.name}</a>`;
}

function Run({ run: { entry, at, overlaps } }) {
    return html`<li><time datetime=${new Date(at).toISOString()}>${clock(at)}</time>${" "}
        <${EntryLink} entry=${entry} />${
            entry.usual_ms !== null && ", usually " + duration(entry.usual_ms)
        }
        ${
            overlaps.length > 0 &&
            html` <span
            class="badge badge-warn">overlaps ${overlaps.join(", ")}</span>`
        }</li>`;
}

/** The same as bars; the list beside it says it in words. */
function Track({ night }) {
    const length = night.to - night.from;
    const place = (run) => ({
        left: ((100 * (run.at - night.from)) / length).toFixed(3) + "%",
        width: ((100 * Math.min(run.end - run.at, night.to - run.at)) / length).toFixed(3) + "%",
        top: run.lane * 12 + "px",
    });
    const title = (run) =>
        run.entry.name +
        ", " +
        clock(run.at) +
        (run.overlaps.length > 0 ? ", overlaps " + run.overlaps.join(", ") : "");
    return html`<div class="track" aria-hidden="true">
        <div class="track-lanes" style=${{ height: night.lanes * 12 + "px" }}>
            ${night.runs.map(
                (run) => html`<span key=${run.entry.id + "." + run.at}
                style=${place(run)} title=${title(run)}
                class=${classes("track-run", run.overlaps.length > 0 && "track-overlap")}></span>`,
            )}</div>
        <div class="track-hours">${[12, 18, 0, 6, 12].map(
            (h) => html`<span>${String(h).padStart(2, "0")}</span>`,
        )}</div>
    </div>`;
}
