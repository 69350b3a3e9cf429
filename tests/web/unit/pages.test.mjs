// SPDX-License-Identifier: Apache-2.0
// What pages compute: paths, the rows in sight of a long table.
import assert from "node:assert/strict";
import test from "node:test";

globalThis.addEventListener = () => {}; // router.js listens to its window
const { people } = await import("../../../web/src/people.js");
const { match } = await import("../../../web/src/router.js");
const { leastRoles } = await import("../../../web/src/session.js");
const { visibleRows } = await import("../../../web/src/parts/table.js");

test("a user has one row with all teams, jobs and spending", () => {
    const share = (team, user, more) => ({
        team,
        user,
        running: 1,
        pending: 2,
        cpus: 4,
        cpu_hours: 1,
        team_cpu_hours: 4,
        ...more,
    });
    const rows = people(
        [
            { user: "ben", role: null, teams: ["red"], leads: ["red"] },
            { user: "ann", role: "admin", teams: [], leads: [] },
        ],
        [share("red", "ben"), share("blue", "ben", { team_cpu_hours: 0 })],
        [
            { keys: ["ben"], uusd: 5 },
            { keys: ["zoe"], uusd: 7 },
            { keys: [""], uusd: 1 }, // nobody's: idle machines
        ],
    );
    assert.deepEqual(
        rows.map((r) => [r.user, r.role, r.teams, r.running, r.pending, r.cpus, r.uusd]),
        [
            ["ann", "admin", [], 0, 0, 0, 0],
            ["ben", null, ["red", "blue"], 2, 4, 8, 5],
            ["zoe", null, [], 0, 0, 0, 7],
        ],
    );
    assert.deepEqual(
        rows[1].shares.map((s) => s.part),
        [0.25, null],
    );
    assert.equal(people([{ user: "ann" }])[0].uusd, null, "costs are not read yet");
});

test("a path matches a pattern of as many parts", () => {
    assert.deepEqual(match("/console/jobs/:ref", "/console/jobs/42_7"), { ref: "42_7" });
    assert.deepEqual(match("/console/jobs", "/console/jobs/"), {});
    assert.deepEqual(match("/", "/"), {});
    for (const path of ["/", "/console", "/console/jobs/42/x", "/console/nodes", ""])
        assert.equal(match("/console/jobs", path), null, path);
});

test("parameters are decoded, and what cannot be decoded stays", () => {
    assert.deepEqual(match("/p/:name", "/p/a%2Fb%20c"), { name: "a/b c" });
    assert.deepEqual(match("/p/:name", "/p/%zz"), { name: "%zz" });
});

test("the rows in sight are few of any number, and all of few", () => {
    const sight = { rowHeight: 20, height: 600, spare: 10 };
    assert.deepEqual(visibleRows({ ...sight, total: 5, top: 0 }), { first: 0, end: 5 });
    for (const top of [0, 19, 20, 10000, 1999000]) {
        const { first, end } = visibleRows({ ...sight, total: 100000, top });
        assert.ok(first * 20 <= top, `from above ${top}`);
        assert.ok(end * 20 >= Math.min(top + 600, 2000000), `to below ${top}`);
        assert.ok(end - first <= 600 / 20 + 2 * 10 + 2, `few at ${top}`);
    }
});

test("above the table its first rows are ready", () => {
    const { first, end } = visibleRows({ rowHeight: 20, height: 600, total: 1000, top: -300 });
    assert.equal(first, 0);
    assert.ok(end >= 15);
});

test("when the rows become fewer, those in sight are among them", () => {
    const { first, end } = visibleRows({ rowHeight: 20, height: 600, total: 30, top: 20000 });
    assert.ok(first < 30 && end === 30, `${first} to ${end}`);
});

test("a role that may is named with those above it", () => {
    assert.deepEqual(leastRoles("operator"), ["operator", "admin"]);
    assert.equal(leastRoles("viewer").length, 5);
});
