// SPDX-License-Identifier: Apache-2.0
// Buttons that ask before they change something (dialog.js).
import { html, useState } from "../dom.js";
import { Ask } from "./dialog.js";

/**
 * @param done called after the action of a question was done
 * @returns an object {ask, dialog}: ask({title, verb, danger, act, body}) opens a question;
 *   dialog is it
 */
export function useAsk(done) {
    const [asked, setAsked] = useState(null);
    const close = (isDone) => {
        setAsked(null);
        if (isDone && done) done();
    };
    const { body, ...rest } = asked || {};
    return {
        ask: setAsked,
        dialog: asked && html`<${Ask} ...${rest} close=${close}>${body}</${Ask}>`,
    };
}

/** A button that opens a question; `of` is useAsk's result. */
export function AskButton({ of, question, label, name }) {
    return html`<button type="button" class=${question.danger ? "button-danger" : ""}
        aria-label=${name} onClick=${() => of.ask(question)}>${label}</button>`;
}
