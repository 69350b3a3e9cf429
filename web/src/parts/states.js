// SPDX-License-Identifier: Apache-2.0
// What stands in the place of data that is not there: loading, failed, or none.
import { html } from "../dom.js";

/** Grey lines where text will be; announced once. */
export function Loading({ lines = 3 }) {
    return html`<div class="loading" role="status"><span class="sr-only">Loading</span>
        ${Array.from(
            { length: lines },
            () => html`<div class="loading-line" aria-hidden="true"></div>`,
        )}
    </div>`;
}

/** Whether the same call may succeed later: not if it is refused, or what it names is not there. */
function mayPass({ status }) {
    return !(status >= 400 && status < 500) || status === 408 || status === 429;
}

/** @param retry called by the button; may be left out */
export function Failure({ error, retry }) {
    return html`<div class="notice notice-bad" role="alert">
        <p>${error.message}</p>
        ${
            retry &&
            mayPass(error) &&
            html`<button type="button" onClick=${retry}>Try
            again</button>`
        }
    </div>`;
}

/** Says that there is nothing, and what would make something be here. */
export function Empty({ title, children }) {
    return html`<div class="empty"><p class="empty-title">${title}</p>
        ${children && html`<p>${children}</p>`}</div>`;
}

/**
 * The frame of everything that shows data: `of` is useData's result, children is a function of the
 * data. After a failed reading the last data stay, with a word above them.
 * @param title of a page whose title is of the data, and has to stand without them; may be left out
 */
export function Loaded({ of, lines, title, children }) {
    if (of.data === undefined)
        return of.error
            ? html`${title && html`<h1>${title}</h1>`}
                <${Failure} error=${of.error} retry=${of.reload} />`
            : html`<${Loading} lines=${lines} />`;
    return html`${
        of.error &&
        html`<p class="stale"
        role="status">Not up to date: ${of.error.message}</p>`
    }
        ${children(of.data)}`;
}
