// SPDX-License-Identifier: Apache-2.0
// The frame of all pages: what there is, who is signed in, whether the page is live.
import { get } from "./api.js";
import { classes, html, useEffect, useState } from "./dom.js";
import { pages } from "./pages/index.js";
import { navigate } from "./router.js";
import { hasRole, signOut } from "./session.js";
import { useStreamState } from "./stream.js";
import { THEMES, setTheme, theme } from "./theme.js";

export function Shell({ path, user, children }) {
    const [open, setOpen] = useState(false);
    const [cluster, setCluster] = useState("");
    useEffect(() => {
        get("/api/v1/version").then(
            (v) => setCluster(v.cluster),
            () => {},
        );
    }, []);
    useEffect(() => setOpen(false), [path]);
    return html`<a class="skip" href="#main">Skip to the page</a>
        <header class="top">
            <button type="button" class="menu-button" aria-expanded=${open} aria-controls="nav"
                onClick=${() => setOpen(!open)}>Menu</button>
            <a class="brand" href="/">belay</a><span class="cluster">${cluster}</span>
            <${Jump} />
            <${Live} />
            <${UserMenu} user=${user} />
        </header>
        <div class="frame">
            <${Nav} path=${path} open=${open} />
            <main id="main" tabindex="-1">${children}</main>
        </div>`;
}

const GROUPS = ["Work", "Plan", "Money", "Cluster", "Admin"];

function Nav({ path, open }) {
    const sees = (p) => p.nav && (!p.role || hasRole(p.role));
    const groups = GROUPS.filter((group) => pages.some((p) => p.group === group && sees(p)));
    const link = (p) => {
        const here =
            p.path === "/" ? path === "/" : path === p.path || path.startsWith(p.path + "/");
        return html`<li key=${p.path}><a href=${p.path}
            aria-current=${here ? "page" : undefined}>${p.nav}</a></li>`;
    };
    return html`<nav id="nav" class=${classes("nav", open && "nav-open")} aria-label="Pages">
        ${groups.map(
            (group) => html`<section key=${group}><h2>${group}</h2>
            <ul>${pages.filter((p) => p.group === group && sees(p)).map(link)}</ul>
        </section>`,
        )}</nav>`;
}

/** Goes to a job by its number. */
function Jump() {
    const go = (event) => {
        event.preventDefault();
        const text = new FormData(event.target).get("what").trim();
        if (/^\d+(_\d+)?$/.test(text)) navigate("/console/jobs/" + text);
        else if (text)
            navigate(
                "/console/jobs?state=all&name=" +
                    encodeURIComponent(text.includes("*") ? text : "*" + text + "*"),
            );
        event.target.reset();
    };
    return html`<form class="jump" role="search" onSubmit=${go}>
        <input name="what" type="search" maxlength="63" placeholder="Job number or name"
            aria-label="Go to a job by number or name" autocomplete="off" /></form>`;
}

function Live() {
    const state = useStreamState();
    const text = { connecting: "connecting", live: "live", offline: "not live" }[state];
    return html`<span class="live live-${state}" role="status">${text}</span>`;
}

function UserMenu({ user }) {
    const [chosen, setChosen] = useState(theme());
    const choose = (event) => {
        setTheme(event.target.value);
        setChosen(event.target.value);
    };
    return html`<details class="user-menu"><summary>${user.user}</summary><div
        class="user-menu-body">
        <p>${user.user}, ${user.role}${
            user.teams.length > 0 && html`<br />teams: ${user.teams.join(", ")}`
        }</p>
        <label>Colours <select onChange=${choose}>
            ${THEMES.map(
                (t) => html`<option value=${t}
                selected=${t === chosen}>${t}</option>`,
            )}</select></label>
        ${user.by !== "socket" && html`<button type="button" onClick=${signOut}>Sign out</button>`}
    </div></details>`;
}
