// SPDX-License-Identifier: Apache-2.0
// Numbers and times as people read them (web/src/format.js).
import assert from "node:assert/strict";
import test from "node:test";
import * as format from "../../../web/src/format.js";

const {
    NONE,
    absolute,
    axisTimes,
    bytes,
    clock,
    count,
    duration,
    mebibytes,
    money,
    percent,
    plural,
    rate,
    relative,
    shortTime,
    utcDay,
    weekday,
} = format;
const SECOND = 1000,
    MINUTE = 60 * SECOND,
    HOUR = 60 * MINUTE,
    DAY = 24 * HOUR;

function table(fn, rows) {
    for (const [value, text] of rows) assert.equal(fn(value), text, `of ${value}`);
}

test("what is not known is a dash, and never a number", () => {
    for (const fn of [money, rate, duration, bytes, mebibytes, count, percent])
        for (const value of [null, undefined]) assert.equal(fn(value), NONE);
});

test("money has the digits that say something", () => {
    table(money, [
        [0, "$0"],
        [49, "<$0.0001"],
        [50, "$0.0001"],
        [4200, "$0.0042"],
        [100000, "$0.10"],
        [3100000, "$3.10"],
        [999990000, "$999.99"],
        [1204000000, "$1,204"],
        [-2500000, "-$2.50"],
    ]);
    assert.equal(rate(76800), "$0.0768/h");
});

test("durations have at most two units", () => {
    table(duration, [
        [0, "0 ms"],
        [240, "240 ms"],
        [999, "999 ms"],
        [1000, "1.0 s"],
        [3240, "3.2 s"],
        [9949, "9.9 s"],
        [9950, "10 s"],
        [59 * SECOND, "59 s"],
        [MINUTE, "1 min"],
        [5 * MINUTE + 3 * SECOND, "5 min 3 s"],
        [2 * HOUR, "2 h"],
        [2 * HOUR + 59 * SECOND, "2 h"],
        [3 * DAY + 4 * HOUR, "3 d 4 h"],
        [400 * DAY, "400 d"],
        [-1500, "-1.5 s"],
    ]);
});

test("a duration that rounds up to the next unit is written in it", () => {
    table(duration, [
        [59.6 * SECOND, "1 min"],
        [HOUR - 400, "1 h"],
        [DAY - 1, "1 d"],
    ]);
});

test("bytes are in binary units", () => {
    table(bytes, [
        [0, "0 B"],
        [1023, "1023 B"],
        [1024, "1.0 KiB"],
        [1536, "1.5 KiB"],
        [150 * 1024, "150 KiB"],
        [1 << 30, "1.0 GiB"],
        [2 ** 60, "1024 PiB"],
    ]);
    assert.equal(mebibytes(16384), "16.0 GiB");
});

test("counts and their nouns agree", () => {
    table(count, [
        [0, "0"],
        [100000, "100,000"],
    ]);
    table(
        (n) => plural(n, "job"),
        [
            [0, "0 jobs"],
            [1, "1 job"],
            [2000, "2,000 jobs"],
        ],
    );
    assert.equal(plural(2, "entry", "entries"), "2 entries");
    table(percent, [
        [0, "0 %"],
        [0.374, "37 %"],
        [1, "100 %"],
    ]);
});

test("relative times count down to now and away from it", () => {
    const now = 1e12;
    table(
        (ms) => relative(now + ms, now),
        [
            [0, "now"],
            [999, "now"],
            [-999, "now"],
            [-5 * SECOND, "5 s ago"],
            [-59999, "59 s ago"],
            [3 * MINUTE + 1, "in 3 min"],
            [-90 * MINUTE, "1 h ago"],
            [-49 * HOUR, "2 d ago"],
        ],
    );
});

test("times are in the viewer's zone, which the absolute one names", () => {
    const at = Date.parse("2026-07-27T22:15:03Z"); // the next day in Berlin
    assert.equal(absolute(at), "28 Jul 2026, 00:15:03 GMT+2");
    assert.equal(shortTime(at, at + HOUR), "00:15");
    assert.equal(shortTime(at, at + 5 * DAY), "28 Jul, 00:15");
    assert.equal(shortTime(at, at + 400 * DAY), "28 Jul 2026");
    assert.equal(clock(at, true), "00:15:03");
    assert.equal(weekday(at), "Tue 28 Jul");
    table(utcDay, [
        ["2026-11-01", "1 Nov 2026"],
        ["2026-11", "2026-11"],
        ["", ""],
    ]);
});

test("an axis of time names each day once, and only days where its ticks are days apart", () => {
    const at = Date.parse("2026-07-27T20:00:00Z");
    const labels = (n, step) =>
        axisTimes(
            Array.from({ length: n }, (_, i) => at + i * step),
            step,
        );
    assert.deepEqual(labels(4, HOUR), ["22:00\n27 Jul", "23:00", "00:00\n28 Jul", "01:00"]);
    assert.deepEqual(labels(2, 30 * SECOND), ["22:00:00\n27 Jul", "22:00:30"]);
    assert.deepEqual(labels(2, DAY), ["27 Jul", "28 Jul"]);
    assert.deepEqual(labels(2, 365 * DAY), ["Jul 2026", "Jul 2027"]);
});
