// SPDX-License-Identifier: Apache-2.0
// What an operator does with a node: drain, undrain, delete. Each asks first and says what follows.
import { post } from "../api.js";
import { html } from "../dom.js";
import { plural } from "../format.js";
import { hasRole } from "../session.js";
import { AskButton, useAsk } from "./ask.js";
import { FormRow } from "./fields.js";

/** @param done called after a change */
export function NodeActions({ node, done }) {
    const of = useAsk(done);
    if (!hasRole("operator") || node.gone_at) return null;
    const questions = [
        node.drain ? undrain(node) : drain(node),
        node.jobs === 0 && remove(node),
    ].filter(Boolean);
    return html`${questions.map(
        (q) => html`<${AskButton} key=${q.verb} of=${of} question=${q}
        label=${q.verb} />`,
    )}
        ${of.dialog}`;
}

function change(node, what) {
    return () => post(`/api/v1/nodes/${node.id}/${what}`);
}

function drain(node) {
    return {
        title: "Drain node " + node.name,
        verb: "Drain",
        act: (form) => {
            const reason = form.get("reason").trim();
            return post(`/api/v1/nodes/${node.id}/drain`, reason ? { reason } : {});
        },
        body: html`<p>${
            node.jobs > 0 &&
            `Its ${plural(node.jobs, "job")} will be saved and moved to other nodes. `
        }
            No job is placed there until it is undrained.</p>
            <${FormRow} label="Reason"
                hint="In the events and in the audit log; may be empty."><input name="reason"
                maxlength="199" autocomplete="off" /></${FormRow}>`,
    };
}

function undrain(node) {
    return {
        title: "Undrain node " + node.name,
        verb: "Undrain",
        act: change(node, "undrain"),
        body: html`<p>Jobs are placed there again.</p>`,
    };
}

function remove(node) {
    return {
        title: "Delete node " + node.name,
        verb: "Delete",
        danger: true,
        act: change(node, "delete"),
        body: html`<p>The node leaves the cluster. ${
            node.instance
                ? "Its machine is ended at its provider."
                : "Its agent needs a new join token to come back."
        }</p>`,
    };
}
