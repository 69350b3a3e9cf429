// SPDX-License-Identifier: Apache-2.0
// What the pages of the cluster compute.
import assert from "node:assert/strict";
import test from "node:test";

globalThis.addEventListener = () => {}; // router.js listens to its window
globalThis.BroadcastChannel = class {
    postMessage() {}
};
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
const { nodeTroubles, usedOf } = await import("../../../web/src/parts/node.js");
const { filtered } = await import("../../../web/src/pages/nodes.js");
const { drawOf, powerText, tileState } = await import("../../../web/src/parts/rack.js");
const { baseLoadText } = await import("../../../web/src/parts/pool.js");
const { partsOf } = await import("../../../web/src/parts/events.js");
const { exitText } = await import("../../../web/src/parts/job.js");
const { joined } = await import("../../../web/src/parts/older.js");
const { restOf } = await import("../../../web/src/pages/jobs.js");
const { isShut } = await import("../../../web/src/pages/pools.js");
const { reservationOf } = await import("../../../web/src/parts/reservation_form.js");
const { busiest, outcomeSeries, priceSeries } = await import(
    "../../../web/src/parts/offer_series.js"
);

const HOUR = 3600000,
    now = Date.parse("2026-11-28T20:30:00Z");
const iso = (hoursAgo) => new Date(now - hoursAgo * HOUR).toISOString();

function node(more) {
    return {
        name: "n1",
        pool: "base",
        state: "up",
        notice: null,
        silent_ms: 300,
        throttled: "none",
        disk: "ok",
        disk_text: null,
        fault: null,
        drain: false,
        drain_text: null,
        gone_at: null,
        jobs: 0,
        ...more,
    };
}

test("a node tells what is wrong with it, the most urgent first", () => {
    assert.deepEqual(nodeTroubles(node()), []);
    const bad = node({
        notice: "reclaim",
        silent_ms: 95000,
        throttled: "heat",
        disk: "full",
        drain: true,
    });
    assert.deepEqual(
        nodeTroubles(bad).map((t) => t.split(" ")[0]),
        ["notice", "silent", "throttled:", "disk", "drained:"],
    );
    assert.deepEqual(nodeTroubles({ ...bad, gone_at: iso(1) }), []);
    assert.deepEqual(nodeTroubles(node({ silent_ms: null })), []);
});

test("nodes are filtered by pool, by a part of the name, and by trouble", () => {
    const nodes = [
        node(),
        node({ name: "GPU-2", fault: "Xid 79" }),
        node({ name: "gpu-3", pool: "cloud" }),
    ];
    const names = (filter) =>
        filtered(nodes, { show: "live", pool: "", name: "", ...filter }).map((n) => n.name);
    assert.deepEqual(names({}), ["n1", "GPU-2", "gpu-3"]);
    assert.deepEqual(names({ name: "gpu" }), ["GPU-2", "gpu-3"]);
    assert.deepEqual(names({ name: "gpu", pool: "cloud" }), ["gpu-3"]);
    assert.deepEqual(names({ show: "troubled" }), ["GPU-2"]);
    assert.equal(usedOf(8, null), null);
    assert.equal(usedOf(8, 6), 2);
});

test("a rack's draw is divided, and never below nothing", () => {
    const rack = { max_watts: 10000, idle_watts: 2000, watts: 7000, measured_watts: 500 };
    assert.deepEqual(drawOf(rack), { idle: 2000, jobs: 4500, measured: 500, left: 3000 });
    assert.deepEqual(drawOf({ ...rack, watts: 12000 }).left, 0);
    assert.deepEqual(drawOf({ ...rack, watts: 1000, measured_watts: 0 }), {
        idle: 1000,
        jobs: 0,
        measured: 0,
        left: 9000,
    });
    assert.equal(powerText(rack), "7,000 W of 10,000 W (70 %)");
    assert.equal(powerText({ ...rack, max_watts: 0 }), "7,000 W of 0 W");
    assert.equal(tileState(node({ throttled: "heat", jobs: 2 })), "heat");
    assert.equal(tileState(node({ state: "lost", silent_ms: 95000 })), "lost");
    assert.equal(tileState(node({ fault: "Xid 79" })), "trouble");
    assert.equal(tileState(node({ jobs: 2 })), "busy");
    assert.equal(tileState(node()), "idle");
});

test("what a pool keeps is said in words", () => {
    assert.equal(baseLoadText(null), "");
    assert.equal(baseLoadText({ min_nodes: 0, warm_nodes: 0, window: null }), "");
    assert.equal(
        baseLoadText({ min_nodes: 1, warm_nodes: 2, window: "day" }),
        "1 node, 2 warm, in window day",
    );
});

test("older events stay below newer ones, each once, and without a gap", () => {
    const ids = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => ({ id: from + i }));
    assert.deepEqual(joined(ids(1, 5), ids(4, 8), 200), ids(1, 8));
    assert.deepEqual(joined(ids(1, 5), [], 200), ids(1, 5));
    assert.deepEqual(joined(ids(1, 5), ids(301, 500), 200), ids(301, 500)); // between: not known
});

test("a reservation has what was filled in", () => {
    const form = new Map([
        ["name", " disks "],
        ["nodes", "n[1-4]"],
        ["pool", ""],
        ["from", ""],
        ["hours", "1.5"],
        ["every", "week"],
        ["reason", ""],
        ["users", "ann, ,bob"],
    ]);
    const body = reservationOf(form);
    assert.deepEqual(body, {
        name: "disks",
        nodes: "n[1-4]",
        for_ms: 5400000,
        every: "week",
        zone: body.zone,
        users: ["ann", "bob"],
    });
    form.set("from", "2026-12-01T09:30");
    form.set("users", "");
    assert.equal(reservationOf(form).from, new Date("2026-12-01T09:30").toISOString());
    form.set("teams", "vision, ops");
    assert.ok(!("users" in reservationOf(form)));
    assert.deepEqual(reservationOf(form).teams, ["vision", "ops"]);
});

test("prices are steps up to now, with a gap before the first", () => {
    const offers = [
        {
            type: "a",
            market: "spot",
            zone: "z",
            pool: "p",
            prices: [
                { at: iso(4), uusd_h: 10 },
                { at: iso(1), uusd_h: 20 },
            ],
        },
        { type: "b", market: "spot", zone: "z", pool: "p", prices: [{ at: iso(2), uusd_h: 7 }] },
    ];
    const { times, series } = priceSeries(offers, now);
    assert.deepEqual(
        times,
        [4, 2, 1, 0].map((h) => now - h * HOUR),
    );
    assert.deepEqual(
        series.map((s) => s.values),
        [
            [10, 10, 20, 20],
            [null, 7, 7, 7],
        ],
    );
    assert.deepEqual(priceSeries([], now), { times: [now], series: [] });
    assert.deepEqual(priceSeries([{ ...offers[1], prices: [] }], now).series, [], "no prices yet");
});

test("machines are counted by the hour, or by the day of a long period", () => {
    const offer = { launched: [iso(3), iso(3), iso(0)], refused: [iso(2)], reclaimed: [iso(1)] };
    const { times, series, range } = outcomeSeries([offer], now - 14 * 24 * HOUR, now);
    assert.ok(times.every((t, i) => i === 0 || t - times[i - 1] === HOUR));
    assert.ok(times[0] <= now - 12 * HOUR && times[times.length - 1] <= now); // half a day at least
    assert.deepEqual(
        series.map((s) => s.values.reduce((a, b) => a + b)),
        [3, 1, 1],
    );
    assert.equal(series[0].values[series[0].values.length - 4], 2);
    assert.deepEqual(range, [times[0], now]);
    const long = outcomeSeries([{ ...offer, launched: [iso(300)] }], now - 14 * 24 * HOUR, now);
    assert.equal(long.times[1] - long.times[0], 24 * HOUR);
    assert.equal(long.series[0].values[0], 1);
    assert.deepEqual(
        busiest(
            [
                { id: 1, launched: [] },
                { id: 2, launched: [1] },
            ],
            1,
        ).map((o) => o.id),
        [2],
    );
});

test("what was read of the list of jobs stays when its first page is read again", () => {
    const jobs = (first, last) =>
        Array.from({ length: first - last + 1 }, (_, i) => ({ id: first - i }));
    const path = "/api/v1/jobs?state=all";
    const page = (first, next) => ({ jobs: jobs(first, first - 199), next });
    assert.deepEqual(restOf(jobs(900, 501), page(905, 706), path), jobs(705, 501));
    assert.equal(restOf(jobs(500, 301), page(905, 706), path), null); // between: not known
    assert.deepEqual(restOf(jobs(900, 701), { jobs: jobs(3, 1), next: null }, path), []);
    // few of many match: the page ends where belayd stopped to look, and may have none
    const few = [{ id: 9000 }, { id: 6000 }, { id: 20 }];
    assert.deepEqual(restOf(few, { jobs: [], next: 5001 }, path), [{ id: 20 }]);
    assert.deepEqual(restOf(few, { jobs: [{ id: 9000 }], next: 5001 }, path), [{ id: 20 }]);
    assert.deepEqual(restOf([], { jobs: [], next: 5001 }, path), []);
    const oldest = path + "&sort=oldest";
    assert.deepEqual(restOf([{ id: 20 }, { id: 9000 }], { jobs: [], next: 5000 }, oldest), [
        { id: 9000 },
    ]);
    assert.deepEqual(restOf(few, { jobs: [], next: 5001 }, path + "&sort=ended"), few);
});

test("a pool is shut when none of its offers can be launched from", () => {
    const open = { withdrawn: false, avoided_until: null },
        avoided = { withdrawn: false, avoided_until: iso(-1) };
    assert.equal(isShut([]), false); // a reserved pool
    assert.equal(isShut([avoided, open]), false);
    assert.equal(isShut([avoided, { withdrawn: true, avoided_until: null }]), true);
});

test("the kind of an event does not stand before a text that begins with it", () => {
    const of = (kind, text) => Object.values(partsOf({ kind, text }));
    assert.deepEqual(of("notice", "reclaim notice on n1"), ["reclaim notice", "on n1"]);
    assert.deepEqual(of("lost", "lost"), ["lost", ""]);
    assert.deepEqual(of("lost", "node lost: silent"), ["lost", "node lost: silent"]);
    assert.deepEqual(of("saved", "saved-late"), ["saved", "saved-late"]);
    assert.deepEqual(of("gone", null), ["gone", null]);
});

test("an exit code says the signal, and is none where no program ended", () => {
    const of = (end, code) => exitText({ end, exit_code: code });
    assert.equal(of("succeeded", 0), "0");
    assert.equal(of("failed", 3), "3");
    assert.equal(of("timeout", 137), "137 (signal 9)");
    assert.equal(of("dependency", 0), "");
    assert.equal(of(null, null), "");
});
