// SPDX-License-Identifier: Apache-2.0
// The console: the session first, then the frame of all pages, then the page of the URL.
import { html, render, useEffect } from "./dom.js";
import { pageOf } from "./pages/index.js";
import { Refused } from "./pages/refused.js";
import { SignIn } from "./pages/sign_in.js";
import { Failure, Loading } from "./parts/states.js";
import { useLocation } from "./router.js";
import { leastRoles, loadSession, useSession } from "./session.js";
import { Shell } from "./shell.js";
import { startStream } from "./stream.js";
import { applyTheme } from "./theme.js";

function App() {
    const session = useSession(),
        { path, query } = useLocation();
    const { page, params } = pageOf(path);
    useEffect(() => {
        loadSession();
    }, []);
    useEffect(() => {
        if (session.state === "in") startStream();
    }, [session.state]);
    useEffect(() => {
        document.title = (session.state === "out" ? "Sign in" : page.title(params)) + " · belay";
    }, [path, session.state]);
    if (path === "/console/sign-in" || session.state === "out")
        return html`<${SignIn} next=${query.get("next") || path} />`;
    if (session.state === "failed")
        return html`<main class="alone"><${Failure} error=${session.error}
            retry=${loadSession} /></main>`;
    if (session.state === "loading") return html`<main class="alone"><${Loading} /></main>`;
    const Page =
        page.role && !leastRoles(page.role).includes(session.user.role) ? Refused : page.page;
    return html`<${Shell} path=${path} user=${session.user}>
        <${Page} key=${path} params=${params} query=${query} user=${session.user}
            of=${page} /></${Shell}>`;
}

applyTheme();
render(html`<${App} />`, document.getElementById("app"));
