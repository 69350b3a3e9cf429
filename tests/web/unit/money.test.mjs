// SPDX-License-Identifier: Apache-2.0
// What the pages of costs, budgets and cron compute.
import assert from "node:assert/strict";
import test from "node:test";
import { LEDGER_KINDS, kindName, kindTone, savedOf } from "../../../web/src/ledger.js";

globalThis.addEventListener = () => {}; // router.js listens to its window
globalThis.BroadcastChannel = class {
    postMessage() {}
};
const { csvCell, csvText } = await import("../../../web/src/csv.js");
const { roundUp, stacked } = await import("../../../web/src/parts/bars.js");
const { keysOf, periodOf, stepOf, stepsOf, weekOf } = await import(
    "../../../web/src/pages/cost_query.js"
);
const { nightsOf, unlistedOf } = await import("../../../web/src/pages/cron_nights.js");
const { isFailing, scheduleText } = await import("../../../web/src/pages/crons.js");
const { expectedAtEnd, usedUpAt, waitingFor } = await import("../../../web/src/pages/budgets.js");
const { distinct, timeRange } = await import("../../../web/src/parts/chart.js");
const { teamsOf } = await import("../../../web/src/pages/shares.js");

const MINUTE = 60000,
    HOUR = 60 * MINUTE,
    DAY = 24 * HOUR;
const now = Date.parse("2026-11-28T20:00:00Z"); // a Saturday

test("a spreadsheet runs nothing of a CSV file", () => {
    for (const text of ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "|calc"])
        assert.match(csvCell(text), /^"?'/, JSON.stringify(text));
    assert.equal(csvCell('=HYPERLINK("x")'), '"\'=HYPERLINK(""x"")"');
    assert.equal(csvCell("train-1"), "train-1");
    assert.equal(csvCell(-2.5), "-2.5"); // a number of ours
    assert.equal(csvCell(null), "");
    assert.equal(
        csvText([
            ["a", "b,c"],
            ["d\ne", 1],
        ]),
        'a,"b,c"\r\n"d\ne",1\r\n',
    );
});

test("the keys of the URL are those that belayd takes, at most four and each once", () => {
    assert.deepEqual(keysOf(null), ["team"]);
    assert.deepEqual(keysOf("nonsense,label:"), ["team"]);
    assert.deepEqual(keysOf("pool,pool,label:exp"), ["pool", "label:exp"]);
    assert.deepEqual(keysOf("user,team,pool,type,market"), ["user", "team", "pool", "type"]);
});

test("periods are whole days of UTC", () => {
    assert.deepEqual(periodOf("", "", "", now), { from: "2026-11-01", to: null });
    assert.deepEqual(periodOf("last-month", "", "", now), { from: "2026-10-01", to: "2026-11-01" });
    assert.deepEqual(periodOf("7d", "", "", now), { from: "2026-11-22", to: null });
    assert.deepEqual(periodOf("custom", "2026-10-30", "2026-10-31", now), {
        from: "2026-10-30",
        to: "2026-11-01",
    });
    assert.deepEqual(periodOf("custom", "2026-10-30", "2026-10-01", now), {
        from: "2026-10-30",
        to: null,
    });
    for (const bad of ["x", "2026-13-01", ""])
        assert.equal(periodOf("custom", bad, "", now).from, "2026-11-01");
    assert.equal(
        periodOf("last-month", "", "", Date.parse("2027-01-15T00:00:00Z")).from,
        "2026-12-01",
    );
});

test("a chart has few bars, and one for each step of the period", () => {
    const month = periodOf("", "", "", now),
        year = periodOf("year", "", "", now);
    assert.equal(stepOf(month, "", now), "day");
    assert.equal(stepOf(month, "week", now), "week");
    assert.equal(stepOf(periodOf("90d", "", "", now), "nonsense", now), "week");
    assert.equal(stepOf(year, "", now), "month");
    assert.equal(stepsOf(month, "day", [], now).length, 28);
    assert.equal(stepsOf(year, "month", [], now).length, 13);
    assert.deepEqual(stepsOf({ from: "2026-11-01", to: "2026-11-10" }, "week", [], now), [
        "2026-10-26",
        "2026-11-02",
        "2026-11-09",
    ]);
    assert.equal(weekOf(now), "2026-11-23");
});

test("more series than colours become one, and the sums stay", () => {
    const points = Array.from({ length: 20 }, (_, i) => ({
        at: i % 2 ? "a" : "b",
        series: "s" + i,
        value: i,
    }));
    const { series } = stacked(["a", "b"], points);
    assert.equal(series.length, 6);
    assert.equal(series[5].name, "15 others");
    assert.equal(
        series.reduce((sum, s) => sum + s.sum, 0),
        190,
    );
    assert.equal(series[0].sum, 19);
    assert.deepEqual([0, 0.3, 1, 1.2, 49, 51].map(roundUp), [1, 0.5, 1, 2, 50, 100]);
});

function entry(id, name, usual_ms, starts, more = false) {
    return {
        id,
        name,
        usual_ms,
        more,
        left_out: [],
        starts: starts.map((ms) => new Date(ms).toISOString()),
    };
}

test("runs of a night that are under way together overlap", () => {
    const night = Date.parse("2026-11-29T01:00:00Z");
    const plan = {
        crons: [
            entry(1, "long", 2 * HOUR, [night]),
            entry(2, "within", null, [night + HOUR]),
            entry(3, "after", HOUR, [night + 2 * HOUR]),
            entry(4, "next", HOUR, [night + DAY]),
        ],
    };
    const [first, second] = nightsOf(plan, now);
    const found = Object.fromEntries(first.runs.map((r) => [r.entry.name, r.overlaps]));
    assert.deepEqual(found, { long: ["within"], within: ["long"], after: [] });
    assert.equal(first.lanes, 2);
    assert.deepEqual(
        second.runs.map((r) => r.entry.name),
        ["next"],
    );
    const both = nightsOf(
        { crons: [entry(1, "a", null, [night]), entry(2, "b", null, [night])] },
        now,
    )[0];
    assert.deepEqual(
        both.runs.map((r) => r.overlaps),
        [["b"], ["a"]],
    );
});

test("a night is from noon to noon, 14 without a gap, also as clocks change", () => {
    for (const at of [
        now,
        Date.parse("2027-03-20T03:00:00Z"),
        Date.parse("2026-10-20T12:00:00Z"),
    ]) {
        const nights = nightsOf({ crons: [] }, at);
        assert.equal(nights.length, 14);
        assert.ok(nights[0].from <= at && at < nights[0].to);
        nights.forEach((n, i) => {
            assert.equal(new Date(n.from).getHours(), 12);
            assert.ok(i === 0 || n.from === nights[i - 1].to);
        });
    }
});

test("an entry that runs often is one line, and one without all its times is told of once", () => {
    const hourly = entry(
        1,
        "hourly",
        1,
        Array.from({ length: 48 }, (_, i) => now + i * HOUR),
    );
    const capped = entry(2, "capped", 1, [now + MINUTE], true);
    const nights = nightsOf({ crons: [hourly, capped] }, now);
    assert.deepEqual(
        nights[1].often.map((o) => [o.entry.name, o.times]),
        [["hourly", 24]],
    );
    assert.equal(nights[0].runs.length, 0);
    const unlisted = unlistedOf({ crons: [hourly, capped] }, nights);
    assert.deepEqual(
        unlisted.map((u) => [u.entry.name, u.from]),
        [["capped", nights[0].from]],
    );
    const later = entry(3, "later", 1, [now + MINUTE, now + DAY], true);
    assert.equal(unlistedOf({ crons: [later] }, nights)[0].from, nights[1].from);
    assert.equal(nightsOf({ crons: [later] }, now)[0].runs.length, 1);
});

test("an entry fails when its newest run that is over did not end well", () => {
    const run = (outcome, end) => ({ outcome, end });
    assert.equal(isFailing({ runs: [] }), false);
    assert.equal(isFailing({ runs: [run("started", null), run("started", "failed")] }), true);
    assert.equal(
        isFailing({ runs: [run("started", "succeeded"), run("started", "failed")] }),
        false,
    );
    assert.equal(isFailing({ runs: [run("missed", null)] }), true);
    assert.equal(isFailing({ runs: [run("skipped", null)] }), false);
    assert.equal(
        scheduleText({ after: 6, after_name: "load", after_end: "well" }),
        "after load, if it ended well",
    );
    assert.equal(
        scheduleText({ after: null, schedule: "0 2 * * *", zone: "UTC" }),
        "0 2 * * * (UTC)",
    );
});

test("a budget says when it is used up, and what waits for it", () => {
    const b = {
        cap_uusd: 100e6,
        spent_uusd: 40e6,
        uusd_per_hour: 10e6,
        state: "open",
        until: new Date(now + DAY).toISOString(),
    };
    assert.equal(usedUpAt(b, now), now + 6 * HOUR);
    assert.equal(usedUpAt({ ...b, uusd_per_hour: 1e6 }, now), null); // not in this period
    assert.equal(usedUpAt({ ...b, uusd_per_hour: 0 }, now), null);
    assert.equal(usedUpAt({ ...b, spent_uusd: 120e6 }, now), now);
    assert.equal(usedUpAt({ ...b, state: "outside" }, now), null);
    assert.equal(expectedAtEnd(b, now), 280e6);
    const job = (id, code, text) => ({ id, why: code && { code, text } });
    const jobs = [
        job(1, "budget", "budget nlp: of its"),
        job(2, "budget", "budget nlp2: of its"),
        job(3, "held", "budget nlp: x"),
        job(4),
    ];
    assert.deepEqual(
        waitingFor("nlp", jobs).map((j) => j.id),
        [1],
    );
});

test("a team is the sum of its users, its own figures once", () => {
    const user = (team, name, cpus) => ({
        team,
        user: name,
        cpus,
        pending: 1,
        running: 2,
        team_cpu_hours: 9,
        part: 0.5,
    });
    const [a, b] = teamsOf([user("a", "x", 4), user("a", "y", 8), user("b", "z", 1)]);
    assert.deepEqual([a.users, a.cpus, a.pending, a.running, a.team_cpu_hours], [2, 12, 2, 4, 9]);
    assert.deepEqual([b.team, b.users], ["b", 1]);
});

test("each kind of the ledger has a name and a colour, and an unknown one too", () => {
    assert.deepEqual([kindName("gang-wait"), kindTone("lost")], ["waiting for the gang", "lost"]);
    assert.deepEqual([kindName("tax"), kindTone("tax")], ["tax", "rest"]);
    assert.equal(new Set(LEDGER_KINDS.map(kindName)).size, LEDGER_KINDS.length);
});

test("a chart of one moment spans two minutes, and labels of an axis do not repeat", () => {
    assert.deepEqual(timeRange(null, 1000, 1000), [940, 1060]);
    assert.deepEqual(timeRange(null, 1000, 2000), [1000, 2000]);
    assert.deepEqual(timeRange(null, null, null), [null, null]);
    assert.deepEqual(distinct(["0 B/s", "1 B/s", "1 B/s"]), ["0 B/s", "1 B/s", ""]);
});

test("savings are no part of next to nothing, and none below -100 %", () => {
    const of = (uusd, listed) => savedOf({ uusd, on_demand_uusd: listed });
    assert.deepEqual(of(40000, 100000), { part: 0.6, note: "60 %" });
    assert.deepEqual(of(200000, 100000), { part: -1, note: "-100 %" });
    assert.equal(of(1500, 12).part, null);
    assert.match(of(1500, 12).note, /^–: too little work/);
    assert.equal(of(200001, 100000).part, null);
    assert.match(of(200001, 100000).note, /^–: idle time/);
    assert.deepEqual(of(5, 0), { part: null, note: "" });
});
