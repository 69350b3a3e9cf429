// SPDX-License-Identifier: Apache-2.0
// Submitting a job: its script and the options of belayd's table, checked and priced by belayd
// while one types.
import { post } from "../api.js";
import { useData } from "../data.js";
import { html, useEffect, useMemo, useRef, useState } from "../dom.js";
import { duration, money, rate } from "../format.js";
import { Card, PageHead } from "../parts/card.js";
import { Loaded } from "../parts/states.js";
import { Ago } from "../parts/time.js";
import { navigate } from "../router.js";
import { fieldsOf, hasDirectives, inWords, specOf } from "../spec.js";

const CHECK_MS = 700; // after the last key
const CWD_KEY = "belay-cwd";
const EXAMPLE = "#!/bin/bash\n\n";

export function Submit() {
    const document = useData("/api/v1/openapi.json");
    return html`<${PageHead} title="Submit a job" />
        <${Loaded} of=${document} lines=${10}>${(d) =>
            html`<${Form} schema=${d.components.schemas.JobSpec} />`}</${Loaded}>`;
}

function Form({ schema }) {
    const { common, more } = useMemo(() => fieldsOf(schema), [schema]);
    const form = useRef(null);
    const [checked, setChecked] = useState({ estimate: null, error: null });
    const [busy, setBusy] = useState(false);
    const [edits, setEdits] = useState(0);
    const read = () => {
        const texts = Object.fromEntries(new FormData(form.current));
        return specOf([...common, ...more], texts, texts);
    };
    useEffect(() => {
        if (edits === 0) return undefined;
        const timer = setTimeout(async () => {
            try {
                setChecked({ estimate: await post("/api/v1/jobs/estimate", read()), error: null });
            } catch (error) {
                setChecked({ estimate: null, error });
            }
        }, CHECK_MS);
        return () => clearTimeout(timer);
    }, [edits]);
    const submit = async (event) => {
        event.preventDefault();
        setBusy(true);
        try {
            const spec = read();
            const done = await post("/api/v1/jobs", spec);
            localStorage.setItem(CWD_KEY, spec.cwd);
            navigate("/console/jobs/" + done.id);
        } catch (error) {
            setChecked({ estimate: null, error });
            setBusy(false);
        }
    };
    return html`<form ref=${form} onInput=${() => setEdits((n) => n + 1)} onSubmit=${submit}
        class="submit">
        <${Card} title="Script"><${Script} /></${Card}>
        <${Card} title="Options"><div class="form">${common.map(
            (f) => html`<${Field} key=${f.path} f=${f} />`,
        )}</div>
            <details><summary>More options</summary><div
                class="form">${more.map(
                    (f) => html`<${Field} key=${f.path} f=${f} />`,
                )}</div></details></${Card}>
        <div class="submit-end"><${Checked} of=${checked}
            fields=${[...common, ...more]} />
            <button type="submit" class="button-main" disabled=${busy}>${
                busy ? "Submitting …" : "Submit"
            }</button></div>
    </form>`;
}

function Script() {
    const [text, setText] = useState(EXAMPLE);
    const indent = (event) => {
        // Tab alone moves on, for the keyboard's users
        if (event.key !== "Tab" || event.shiftKey || !event.altKey) return;
        event.preventDefault();
        event.target.setRangeText(
            "    ",
            event.target.selectionStart,
            event.target.selectionEnd,
            "end",
        );
    };
    return html`<label class="sr-only" for="script">Script</label>
        <textarea id="script" name="script" class="editor" rows="14" required spellcheck="false"
            autocapitalize="off" autocomplete="off"
            defaultValue=${EXAMPLE} onInput=${(e) => setText(e.target.value)}
                onKeyDown=${indent}></textarea>
        ${
            hasDirectives(text) &&
            html`<p class="notice notice-warn"
                role="status">Lines #BELAY and #SBATCH are comments here: set the options below, or
            use <code>belay submit</code>, which reads them.</p>`
        }
        <div class="form"><label>Directory on the nodes
            <input name="cwd" required pattern="/.*"
                defaultValue=${localStorage.getItem(CWD_KEY) || "/tmp"} maxlength="4000" /></label>
        <label>Labels, for bills: NAME=VALUE a line <textarea name="labels" rows="2"
            spellcheck="false"></textarea></label>
        <label>Environment: NAME=VALUE a line <textarea name="env" rows="2"
            spellcheck="false"></textarea></label></div>`;
}

function Field({ f }) {
    const id = "field-" + f.path.replace(".", "-"),
        about = id + "-about";
    const shared = { id, name: f.path, "aria-describedby": about };
    const control =
        f.type === "choice"
            ? html`<select ...${shared}>${f.choices.map(
                  (c) => html`<option selected=${c === f.initial}>${c}</option>`,
              )}</select>`
            : f.type === "flag"
              ? html`<input type="checkbox" ...${shared} />`
              : html`<input ...${shared} type=${f.type} min=${f.min} max=${f.max}
                  maxlength=${f.maxLength} placeholder=${f.hint} defaultValue=${f.initial}
                      autocomplete="off" />`;
    return html`<div class="field"><label for=${id}>${f.label}</label>${control}<span id=${about}
        class="hint">${f.about}</span></div>`;
}

function Checked({ of, fields }) {
    const words = (text) => inWords(text, fields);
    if (of.error)
        return html`<p class="notice notice-bad"
            role="alert">${words(of.error.message.replace(/^spec\./, ""))}</p>`;
    const e = of.estimate;
    if (!e)
        return html`<p class="quiet">belayd checks and prices the job while you fill in the
            form.</p>`;
    const start = e.estimate;
    return html`<div role="status">
        <p>${
            start.unknown
                ? "When it starts is not known: " + start.unknown + "."
                : start.now
                  ? "It can start now."
                  : html`It should start <${Ago} at=${start.median} />.`
        }
            ${start.pool && " Pool " + start.pool + (start.type ? ", " + start.type : "") + "."}
            ${e.runs && " Runs for about " + duration(e.runs.expected_ms) + "."}</p>
        ${
            e.cost.uusd_per_hour !== null &&
            html`<p>${rate(e.cost.uusd_per_hour)}${
                e.cost.expected_uusd !== null &&
                ", about " +
                    money(e.cost.expected_uusd) +
                    " in all, at most " +
                    money(e.cost.most_uusd)
            }</p>`
        }
        ${e.reasons.map((r) => html`<p key=${r.code} class="quiet">${words(r.text)}</p>`)}</div>`;
}
