// SPDX-License-Identifier: Apache-2.0
// In place of a page that the user may not see: who may. belayd is not asked for its data.
import { html } from "../dom.js";
import { PageHead } from "../parts/card.js";
import { Empty } from "../parts/states.js";
import { leastRoles } from "../session.js";

/** @param of the page, of index.js */
export function Refused({ of, user }) {
    return html`<${PageHead} title=${of.title({})} />
        <${Empty} title=${"Not shown to " + user.user}>You have the role ${user.role}.
            This page is for the roles ${leastRoles(of.role).join(", ")}. An administrator gives
            roles in <code>users:</code> of belayd's configuration.</${Empty}>`;
}
