// SPDX-License-Identifier: Apache-2.0
// Who uses the console, and what they may do.
import { ApiError, get, post, setCsrf, setOnSignedOut } from "./api.js";
import { useEffect, useState } from "./dom.js";

const ROLES = ["viewer", "member", "lead", "operator", "admin"];
let session = { state: "loading", user: null, error: null };
const listeners = new Set();

function set(next) {
    session = next;
    for (const listener of listeners) listener(session);
}

/** {state: "loading" | "out" | "in" | "failed", user: Whoami or null, error} */
export function useSession() {
    const [value, setValue] = useState(session);
    useEffect(() => {
        listeners.add(setValue);
        setValue(session);
        return () => listeners.delete(setValue);
    }, []);
    return value;
}

export async function loadSession() {
    try {
        const user = await get("/api/v1/whoami");
        setCsrf(user.csrf);
        set({ state: "in", user, error: null });
    } catch (error) {
        if (!(error instanceof ApiError && error.status === 401))
            set({ state: "failed", user: null, error });
    }
}

setOnSignedOut(() => {
    setCsrf("");
    set({ state: "out", user: null, error: null });
});

export async function signOut() {
    await post("/api/v1/logout");
    location.assign("/console/sign-in"); // forgets what this page holds
}

/* what a token's scope leaves of a role, at most */
const SCOPE_ROLES = { "read-only": "viewer", metrics: "viewer", cron: "viewer", ci: "member" };

/** This role and those above it. */
export function leastRoles(role) {
    return ROLES.slice(ROLES.indexOf(role));
}

/** Whether the user has this role, or a higher one, and the token's scope leaves it. */
export function hasRole(role) {
    if (session.user === null) return false;
    const most = SCOPE_ROLES[session.user.scope] || "admin",
        roles = leastRoles(role);
    return roles.includes(session.user.role) && roles.includes(most);
}

/** Whether the user may change what belongs to this user and team (the right `change`,
 * docs/how-to/pools-and-users.md); belayd decides again. */
export function mayChange({ user, team }) {
    const own = session.user && session.user.user === user;
    const leads = hasRole("lead") && session.user.teams.includes(team);
    return hasRole("operator") || (own && hasRole("member")) || leads;
}
