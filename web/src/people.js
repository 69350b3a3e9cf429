// SPDX-License-Identifier: Apache-2.0
// The users of the cluster, each with all their teams. Pure.

/**
 * @param users of GET /users, shares of /shares, lines of /cost?by=user; undefined: not read
 * @returns a row a user: {user, role, teams, leads, running, pending, cpus, cpuHours, uusd,
 *   shares: [{team, part}]}; part of what the team used is the user's, null: the team used nothing
 */
export function people(users, shares = [], lines) {
    const rows = new Map();
    const row = (user) => {
        if (!rows.has(user))
            rows.set(user, {
                user,
                role: null,
                teams: [],
                leads: [],
                running: 0,
                pending: 0,
                cpus: 0,
                cpuHours: 0,
                uusd: lines ? 0 : null,
                shares: [],
            });
        return rows.get(user);
    };
    for (const u of users) Object.assign(row(u.user), u);
    for (const s of shares) {
        const r = row(s.user);
        if (s.team && !r.teams.includes(s.team)) r.teams = [...r.teams, s.team];
        for (const name of ["running", "pending", "cpus"]) r[name] += s[name];
        r.cpuHours += s.cpu_hours;
        const part = s.team_cpu_hours > 0 ? s.cpu_hours / s.team_cpu_hours : null;
        r.shares = [...r.shares, { team: s.team, part }];
    }
    for (const l of lines || []) if (l.keys[0]) row(l.keys[0]).uusd += l.uusd;
    return [...rows.values()].sort((a, b) => a.user.localeCompare(b.user));
}
