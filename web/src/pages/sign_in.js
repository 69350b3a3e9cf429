// SPDX-License-Identifier: Apache-2.0
// Signing in: by a one-use link of `belay console` (in the fragment, which no server and no log
// sees), at the identity provider, or with a token.
import { get, post, setCsrf } from "../api.js";
import { html, useEffect, useRef, useState } from "../dom.js";

/** @param next path to go to afterwards */
export function SignIn({ next }) {
    const target = isOwnPath(next) ? next : "/";
    const [methods, setMethods] = useState({ oidc: false });
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState(null);
    const last = useRef(null);
    const attempt = async (call) => {
        last.current = call;
        setBusy(true);
        setError(null);
        try {
            await call();
            location.replace(target); // a new page, which holds nothing of another user
        } catch (e) {
            setError(e);
            setBusy(false);
        }
    };
    useEffect(() => {
        const link = new URLSearchParams(location.hash.slice(1)).get("link");
        if (link) {
            history.replaceState(null, "", location.pathname + location.search);
            attempt(() => post("/login/link", { link }));
        }
        get("/login/methods").then(setMethods, setError);
    }, []);
    const call = last.current;
    const afterSignOut = async () => {
        setCsrf((await get("/api/v1/whoami")).csrf);
        await post("/api/v1/logout");
        await call();
    };
    const byToken = (event) => {
        event.preventDefault();
        const token = new FormData(event.target).get("token").trim();
        attempt(() => post("/login/session", { token }));
    };
    return html`<main class="alone sign-in">
        <h1>belay</h1>
        ${
            error &&
            html`<div class="notice notice-bad" role="alert"><p>${error.message}</p>
            ${
                error.status === 409 &&
                html`<button type="button" onClick=${() => attempt(afterSignOut)}>
                Sign the other user out, and go on</button>`
            }</div>`
        }
        ${
            methods.oidc &&
            html`<p><a class="button button-main"
                href=${"/login?next=" + encodeURIComponent(target)}>
            Sign in with your organisation</a></p>`
        }
        <form onSubmit=${byToken}>
            <label for="token">Token</label>
            <input id="token" name="token" type="password" autocomplete="off" required
                maxlength="200" />
            <button type="submit" class=${methods.oidc ? "" : "button-main"} disabled=${busy}>
                ${busy ? "Signing in …" : "Sign in with the token"}</button>
        </form>
        <p class="hint">On a machine where the command line works, <code>belay console</code> opens
            this page and signs you in. An administrator makes tokens with <code>belay token
                create</code>.</p>
    </main>`;
}

/** A path of this server, so that nobody is sent elsewhere. */
function isOwnPath(path) {
    return path.startsWith("/") && !/^\/[/\\]/.test(path) && !path.startsWith("/console/sign-in");
}
