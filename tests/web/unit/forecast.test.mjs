// SPDX-License-Identifier: Apache-2.0
// The forecast of costs, and files of reports.
import assert from "node:assert/strict";
import test from "node:test";

const { dayOf } = await import("../../../web/src/format.js");
const f = await import("../../../web/src/forecast.js");
const r = await import("../../../web/src/report_file.js");

const DAY = 86400000;
const now = Date.parse("2026-11-28T12:00:00Z"); // a Saturday
const line = (ms, uusd, ...keys) => ({ keys: [dayOf(ms), ...keys], uusd });
/* weeks before now, weekends at a tenth */
const weeks = (n, cost = () => 100) =>
    Array.from({ length: 7 * n }, (_, i) => now - (i + 1) * DAY)
        .reverse()
        .map((at, i) => line(at, cost(i) * ([0, 6].includes(new Date(at).getUTCDay()) ? 0.1 : 1)));
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-6 * Math.max(1, Math.abs(b)), `${a} ${b}`);

test("a forecast knows weekends, and has no band where each week is the same", () => {
    const model = f.modelOf(f.historyOf(f.daySums(weeks(6)), now));
    const [, until] = f.monthOf(now);
    assert.equal(new Date(until).toISOString(), "2026-12-01T00:00:00.000Z");
    const end = f.endOf(model, 2000, now, until); // half a Saturday, a Sunday, a Monday
    near(end.uusd, 2000 + 5 + 10 + 100);
    near(end.low, end.uusd);
    near(end.high, end.uusd);
});

test("the band grows with what days differ, and more where weeks differ", () => {
    const [, until] = f.monthOf(now);
    const width = (cost) => {
        const end = f.endOf(f.modelOf(f.historyOf(f.daySums(weeks(8, cost)), now)), 0, now, until);
        assert.ok(end.low <= end.uusd && end.uusd <= end.high && end.low >= 0);
        return end.high - end.low;
    };
    const byDay = width((i) => (i % 2 ? 80 : 120)),
        byWeek = width((i) => (Math.floor(i / 7) % 2 ? 80 : 120));
    assert.ok(byDay > 0);
    assert.ok(byWeek > 2 * byDay);
});

test("too little history gives no forecast, and days before the first cost do not count", () => {
    const few = f.historyOf(f.daySums(weeks(1)), now);
    assert.equal(few.length, 7);
    assert.equal(f.modelOf(few), null);
    assert.equal(f.endOf(null, 5, now, now + DAY), null);
    assert.deepEqual(f.historyOf(new Map(), now), []);
    assert.equal(f.historyOf(f.daySums([line(now, 7)]), now).length, 0); // today is not over
    assert.equal(f.historyOf(f.daySums(weeks(20)), now).length, f.HISTORY_DAYS);
});

test("a cap is reached when the expected costs add up to it", () => {
    const model = f.modelOf(f.historyOf(f.daySums(weeks(6)), now));
    const until = now + 30 * DAY;
    assert.equal(f.capReachedAt(model, 10, 10, now, until), now);
    assert.equal(f.capReachedAt(model, 0, 1e6, now, until), null);
    const at = f.capReachedAt(model, 0, 65, now, until); // 5 on Saturday, 10 on Sunday, then 50
    near(at, Date.parse("2026-11-30T12:00:00Z"));
    assert.equal(f.standing({ uusd: 5, low: 4, high: 6 }, 7), "kept");
    assert.equal(f.standing({ uusd: 5, low: 4, high: 6 }, 6), "may be exceeded");
    assert.equal(f.standing({ uusd: 5, low: 4, high: 6 }, 5), "likely exceeded");
    assert.equal(f.standing({ uusd: 5, low: 4, high: 6 }, 4), "exceeded");
});

test("the chart of a month joins what was spent and what is expected", () => {
    const sums = f.daySums([...weeks(6), line(now, 3)]);
    const c = f.monthSeries(sums, f.modelOf(f.historyOf(sums, now)), now);
    const [spent, expected, low, high] = c.series.map((s) => s.values);
    const at = c.times.indexOf(now);
    assert.equal(spent[at], c.spent);
    assert.equal(expected[at], c.spent);
    assert.equal(c.times.at(-1), f.monthOf(now)[1]);
    assert.ok(expected.at(-1) > c.spent && spent.at(-1) === null);
    for (const values of [expected, low, high]) assert.equal(values[at - 1], null);
    assert.deepEqual(
        [...c.times].sort((a, b) => a - b),
        c.times,
    );
    assert.equal(new Set(c.times).size, c.times.length);
    assert.equal(f.monthSeries(sums, null, now).series.length, 1);
    assert.equal(f.monthSeries(new Map(), null, f.monthOf(now)[0]).times.length, 1);
});

test("a budget's costs are those that it covers", () => {
    const match = { team: "a", user: null, pool: null, job: null, labels: { x: "1", y: "2" } };
    assert.deepEqual(f.costQueryOf(match), {
        by: "day,label:x,label:y",
        team: "a",
        user: null,
        pool: null,
    });
    const lines = [line(now, 1, "1", "2"), line(now, 1, "1", "3")];
    assert.deepEqual(f.linesOf(match, lines), [lines[0]]);
    assert.equal(f.costQueryOf({ ...match, job: "train*" }), null);
    assert.equal(f.costQueryOf({ ...match, labels: { a: "", b: "", c: "", d: "" } }), null);
});

const SIMULATED = {
    simulations: [
        {
            pools_file: "pools.yaml",
            start: "2026-03-01T00:00:00Z",
            cost_uusd: 5,
            over_time: { bin_ms: 1000, spent_usd: [1, 2], owned: [1, 1] },
            waits_ms: [1, 2, 3],
        },
    ],
};

test("a report is read from its JSON, and from the JSON in its page", () => {
    const text = JSON.stringify(SIMULATED);
    const page = `<!doctype html><script type="application/json" id="data">${text}</script><p>`;
    for (const file of [text, page]) {
        const { kind, simulations } = r.readReport(file);
        assert.equal(kind, "simulate");
        assert.equal(simulations[0].file, "pools.yaml");
        assert.deepEqual(simulations[0].lines.spent_usd, [1, 2]);
        assert.equal(simulations[0].all.wait_ms.mean, null); // absent
    }
    const { offers } = r.readReport('{"candidates": [{"offer": null, "cost_uusd": {"mean": 7}}]}');
    assert.equal(offers[0].cost.mean, 7);
});

test("what is no report says so, and what is wrong in one is left out", () => {
    for (const [file, says] of [
        ["", /damaged/],
        ["{", /damaged/],
        ["null", /Expected a file/],
        ["[]", /Expected a file/],
        ['{"simulations": []}', /Expected a file/],
        ['{"simulations": {"length": 3}}', /Expected a file/],
        ["<html><script>alert(1)</script>", /no figures/],
        ['<script type="application/json" id="data">{</script>', /damaged/],
    ])
        assert.throws(() => r.readReport(file), says, file);
    const odd = {
        pools_file: {},
        start: 5,
        over_time: [],
        pools: [null, 3],
        teams: "x",
        notes: [{}],
    };
    const { simulations } = r.readReport(JSON.stringify({ simulations: [null, odd] }));
    assert.equal(simulations[1].file, "file 2");
    assert.equal(simulations[1].pools.length, 2);
    assert.deepEqual(simulations[1].teams, []);
    assert.deepEqual(simulations[1].notes, []);
    const many = r.readReport(JSON.stringify({ simulations: Array(40).fill(odd) }));
    assert.equal(many.simulations.length, 16);
});

test("lines of simulations share one axis, and end where they end", () => {
    const two = [
        { start: 0, file: "a", lines: { bin_ms: 10, v: [1, 2] } },
        { start: 10, file: "b", lines: { bin_ms: 10, v: [5, 6, 7] } },
    ];
    const { times, series } = r.together(two, (s) => s.lines.v);
    assert.deepEqual(times, [0, 10, 20, 30]);
    assert.deepEqual(series[0].values, [1, 2, null, null]);
    assert.deepEqual(series[1].values, [null, 5, 6, 7]);
    assert.deepEqual(r.summed([1, null, 2]), [1, 1, 3]);
    assert.equal(r.waitOf([], 50), null);
    assert.equal(r.waitOf([1, 2, 3], 100), 3);
    assert.deepEqual(
        r.together([{ ...two[0], lines: { bin_ms: 10, v: [] } }], (s) => s.lines.v).times,
        [],
    );
});
