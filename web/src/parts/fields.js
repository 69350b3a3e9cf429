// SPDX-License-Identifier: Apache-2.0
// Controls with labels. Those of a filter keep their values in the URL.
import { html } from "../dom.js";
import { setQuery } from "../router.js";

/** The form around a page's filters. */
export function Filters({ children }) {
    return html`<form class="filters" aria-label="Filter"
        onSubmit=${(e) => e.preventDefault()}>${children}</form>`;
}

function changes(name, onChange) {
    return onChange || ((event) => setQuery({ [name]: event.target.value.trim() }));
}

/** @param onChange replaces the change of the URL's parameter `name` */
export function Field({ name, label, value, hint, type = "text", onChange, ...more }) {
    return html`<label>${label} <input name=${name} type=${type} value=${value || ""}
        placeholder=${hint} maxlength="63" autocomplete="off" ...${more}
        onChange=${changes(name, onChange)} /></label>`;
}

/** @param options [[value, text]]; the first is the default, which the URL leaves out */
export function Choice({ name, label, value, options, onChange }) {
    const chosen = value || options[0][0];
    return html`<label>${label} <select name=${name} onChange=${changes(name, onChange)}>
        ${options.map(
            ([v, text], i) => html`<option key=${v} value=${i === 0 && !onChange ? "" : v}
            selected=${v === chosen}>${text}</option>`,
        )}</select></label>`;
}

/** A control of a dialog, with a line of explanation. */
export function FormRow({ label, hint, children }) {
    return html`<label class="form-row"><span>${label}</span>${children}
        ${hint && html`<span class="hint">${hint}</span>`}</label>`;
}
