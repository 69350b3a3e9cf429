// SPDX-License-Identifier: Apache-2.0
// The morning digest of a day: what the night did, and what needs attention.
import { post, withQuery } from "../api.js";
import { useData } from "../data.js";
import { html } from "../dom.js";
import { DAY_MS, count, dayOf, money, percent } from "../format.js";
import { AskButton, useAsk } from "../parts/ask.js";
import { Card, PageHead } from "../parts/card.js";
import { Field, Filters, FormRow } from "../parts/fields.js";
import { Loaded } from "../parts/states.js";
import { Stat, Stats } from "../parts/stat.js";
import { Moment } from "../parts/time.js";
import { setQuery } from "../router.js";
import { hasRole } from "../session.js";

export function Digest({ query }) {
    const date = query.get("date") || "",
        user = query.get("user") || "";
    const of = useData(withQuery("/api/v1/digest", { date, user }));
    const shown = of.data ? of.data.to.slice(0, 10) : "",
        whose = of.data && of.data.user ? ": jobs of " + of.data.user : "";
    return html`<${PageHead} title="Morning digest"
        note=${"What the last night did" + whose}>
            <button type="button" disabled=${!shown}
                onClick=${() => setQuery({ date: dayAfter(shown, -1) })}>Day before</button>
            <button type="button" disabled=${!date}
                onClick=${() => setQuery({ date: next(shown) })}>Day after</button>
        </${PageHead}>
        <${Filters}><${Field} name="date" label="Day" type="date" value=${date || shown}
                max=${today()} />
            ${
                hasRole("admin") &&
                html`<${Field} name="user" label="User" value=${user}
                hint="everybody" />`
            }</${Filters}>
        <${Loaded} of=${of} lines=${8}>${(d) => html`<${Figures} d=${d} />
            <${Card} title=${d.title} more=${html`<span class="quiet"><${Moment}
                at=${d.from} /> to <${Moment} at=${d.to} /></span>`}>
                <${DigestText} text=${d.text} /></${Card}>`}</${Loaded}>
        <${Subscription} />`;
}

function dayAfter(day, n) {
    return dayOf(Date.parse(day) + n * DAY_MS);
}

function today() {
    return dayOf(Date.now());
}

/** The next day; "" for that of now. */
function next(day) {
    const after = dayAfter(day, 1);
    return after >= today() ? "" : after;
}

function Figures({ d: { jobs, crons, ...d } }) {
    const saved = d.on_demand_uusd - d.uusd;
    return html`<${Stats}>
        <${Stat} name="Ended well" value=${count(jobs.ended_well)} />
        <${Stat} name="Failed" value=${count(jobs.failed)}
            note=${jobs.cancelled > 0 && count(jobs.cancelled) + " cancelled"} />
        <${Stat} name="Running now" value=${count(jobs.running)}
            note=${count(jobs.pending) + " waiting"} />
        <${Stat} name="Late" value=${count(jobs.late)} />
        <${Stat} name="Reclaims" value=${count(d.reclaims)} />
        <${Stat} name="Spent" value=${money(d.uusd)}
            note=${
                d.on_demand_uusd > 0 &&
                money(Math.abs(saved)) +
                    " (" +
                    percent(Math.abs(saved) / d.on_demand_uusd) +
                    (saved < 0 ? ") above on-demand" : ") below on-demand")
            } />
        <${Stat} name="Cron runs" value=${count(crons.started)}
            note=${
                count(crons.ended_well) +
                " well, " +
                count(crons.failed) +
                " failed, " +
                count(crons.skipped) +
                " skipped, " +
                count(crons.late) +
                " late"
            } />
        <${Stat} name="Nodes drained" value=${count(d.drained)} />
        <${Stat} name="Unusual spending" value=${count(d.spend_anomalies)} href="/console/cost" />
    </${Stats}>`;
}

/** The text of the mail, its jobs as links. */
function DigestText({ text }) {
    const parts = text.split(/(\bjobs? \d+(?:_\d+)?\b)/);
    return html`<p class="text-block">${parts.map((part, i) => {
        const job = i % 2 === 1 && /\d+(_\d+)?$/.exec(part);
        return job ? html`<a href=${"/console/jobs/" + job[0]}>${part}</a>` : part;
    })}</p>`;
}

function Subscription() {
    const of = useData("/api/v1/digest/subscription");
    const questions = useAsk(of.reload);
    const subscribe = {
        title: "Mail me the digest",
        verb: "Subscribe",
        act: (form) => post("/api/v1/digest/subscription", { mail: form.get("mail").trim() }),
        body: html`<p>Each morning belayd mails you what your jobs did. A morning without news has
            no mail.</p>
            <${FormRow} label="Address"><input name="mail" type="email" required maxlength="254"
                autocomplete="email" /></${FormRow}>`,
    };
    const end = {
        title: "End the subscription",
        verb: "End it",
        act: () => post("/api/v1/digest/subscription", { mail: null }),
        body: html`<p>No further digest is mailed to you. It stays on this page.</p>`,
    };
    const url = (d) =>
        d.url_host && html`<p>It is sent to a URL at ${d.url_host} (${d.format}).</p>`;
    return html`<${Card} title="By mail"><${Loaded} of=${of} lines=${1}>${(d) =>
        d.mail
            ? html`<p>It is mailed to ${d.mail}.</p>${url(d)}<${AskButton} of=${questions}
            question=${end} label="End the subscription" />`
            : html`<p>You do not get it by mail.</p>${url(d)}${
                  hasRole("member") &&
                  html`<${AskButton} of=${questions}
            question=${subscribe} label="Subscribe" />`
              }`}
        </${Loaded}>${questions.dialog}</${Card}>`;
}
