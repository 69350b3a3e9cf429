// SPDX-License-Identifier: Apache-2.0
// A question before something is done. The browser's own <dialog> keeps the focus, closes by Esc.
import { html, useEffect, useRef, useState } from "../dom.js";

/**
 * @param act async function; a thrown error is shown and the dialog stays open
 * @param close called when it is over; with true if act was done
 * @param children says what will happen, and may have fields
 */
export function Ask({ title, verb, danger, act, close, children }) {
    const dialog = useRef(null);
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState(null);
    useEffect(() => {
        const before = document.activeElement;
        dialog.current.showModal();
        return () => before && before.focus && before.focus();
    }, []);
    const submit = async (event) => {
        event.preventDefault();
        setBusy(true);
        setError(null);
        try {
            await act(new FormData(event.target));
            close(true);
        } catch (e) {
            setError(e);
            setBusy(false);
        }
    };
    const cancel = (event) => {
        event.preventDefault();
        if (!busy) close(false);
    };
    return html`<dialog class="dialog" ref=${dialog} onCancel=${cancel}
        aria-labelledby="dialog-title">
        <form onSubmit=${submit}>
            <h2 id="dialog-title">${title}</h2>
            <div class="dialog-body">${children}</div>
            ${error && html`<p class="notice notice-bad" role="alert">${error.message}</p>`}
            <div class="dialog-buttons">
                <button type="button" onClick=${cancel} disabled=${busy}>Back</button>
                <button type="submit" class=${danger ? "button-danger" : "button-main"}
                    disabled=${busy}>
                    ${busy ? "Working …" : verb}</button>
            </div>
        </form></dialog>`;
}
