// SPDX-License-Identifier: Apache-2.0
// What the page of a job and the form of a submit compute.
import assert from "node:assert/strict";
import test from "node:test";
import { Ansi } from "../../../web/src/ansi.js";
import { withStored } from "../../../web/src/checkpoints.js";
import { gangOf } from "../../../web/src/gang.js";
import { fieldsOf, hasDirectives, inWords, specOf } from "../../../web/src/spec.js";
import { ticks, timeline } from "../../../web/src/timeline.js";
import { parseDuration, parseMebibytes, writeDuration } from "../../../web/src/units.js";

const T = Date.parse("2026-11-28T20:00:00Z");
const at = (s) => new Date(T + 1000 * s).toISOString();

const DETAIL = {
    job: { state: "running", submitted_at: at(0), ended_at: null },
    attempts: [
        {
            attempt: 2,
            rank: 0,
            node: 3,
            end: null,
            assigned_at: at(110),
            started_at: at(112),
            ended_at: null,
            restart: {
                lost_ms: 20000,
                launch_ms: 2000,
                boot_ms: 5000,
                agent_ms: 1000,
                place_ms: 0,
            },
        },
        {
            attempt: 1,
            rank: 0,
            node: 1,
            end: "node-lost",
            assigned_at: at(4),
            started_at: at(5),
            ended_at: at(100),
            restart: null,
        },
        {
            attempt: 1,
            rank: 1,
            node: 2,
            end: "gang",
            assigned_at: at(4),
            started_at: at(5),
            ended_at: at(100),
            restart: null,
        },
    ],
};
const EVENTS = [
    { attempt: 1, kind: "saved", at: at(80), a: 3, b: 1500, text: "saved" },
    { attempt: 1, kind: "notice", at: at(95), text: "reclaim notice" },
    { attempt: null, kind: "submitted", at: at(0), text: "" },
];

test("a timeline has each attempt once, with what it was when", () => {
    const line = timeline(DETAIL, EVENTS, T + 130000);
    assert.deepEqual([line.from, line.to], [T, T + 130000]);
    assert.deepEqual(
        line.rows.map((r) => r.attempt),
        [1, 2],
    );
    const spans = line.rows.map((r) =>
        r.spans.map((s) => [s.kind, (s.from - T) / 1000, (s.to - T) / 1000]),
    );
    assert.deepEqual(spans[0], [
        ["wait", 0, 4],
        ["restore", 4, 5],
        ["useful", 5, 80],
        ["lost", 80, 100],
        ["save", 78.5, 80],
    ]);
    assert.deepEqual(spans[1], [
        ["wait", 100, 102],
        ["boot", 102, 110],
        ["restore", 110, 112],
        ["useful", 112, 130],
    ]);
    assert.deepEqual(
        line.rows[0].marks.map((m) => m.kind),
        ["saved", "notice"],
    );
});

test("a job that waits has one row, and one that never ran and ended has none", () => {
    const job = { state: "pending", submitted_at: at(0), ended_at: null };
    assert.deepEqual(
        timeline({ job, attempts: [] }, [], T + 9000).rows.map((r) => r.spans),
        [[{ kind: "wait", from: T, to: T + 9000 }]],
    );
    const ended = timeline(
        { job: { ...job, state: "ended", ended_at: at(3) }, attempts: [] },
        [],
        T + 9000,
    );
    assert.deepEqual([ended.rows, ended.to], [[], T + 3000]);
});

test("spans of one attempt neither overlap nor leave its time, whatever the clocks say", () => {
    for (let seed = 1; seed <= 500; seed++) {
        let x = seed;
        const next = () => (x = (x * 48271) % 2147483647) % 200;
        const attempts = [1, 2, 3].map((attempt) => ({
            attempt,
            rank: 0,
            node: 1,
            end: null,
            assigned_at: at(next()),
            started_at: at(next()),
            ended_at: next() % 4 ? at(next()) : null,
            restart: {
                lost_ms: 1000 * next(),
                launch_ms: 1000 * next(),
                boot_ms: 0,
                agent_ms: 0,
                place_ms: 0,
            },
        }));
        const line = timeline({ job: DETAIL.job, attempts }, [], T + 200000);
        for (const { spans } of line.rows)
            spans.forEach((s, i) =>
                assert.ok(s.to > s.from && (i === 0 || s.from >= spans[i - 1].to), `seed ${seed}`),
            );
    }
});

test("an axis has round moments, few of any time", () => {
    for (const span of [1000, 61000, 3600000, 86400000, 90 * 86400000, 3650 * 86400000]) {
        const list = ticks(T, T + span, 8);
        assert.ok(list.length <= 33 && list.every((t) => t >= T && t <= T + span), `${span}`);
    }
    assert.deepEqual(
        ticks(T, T + 60000, 6).map((t) => (t - T) / 1000),
        [0, 10, 20, 30, 40, 50, 60],
    );
});

function texts(line) {
    return new Ansi().line(line).map((p) => [p.text, p.style.fg, p.style.bold]);
}

test("colours of a log become styles, and other sequences nothing", () => {
    assert.deepEqual(texts("plain"), [["plain", null, false]]);
    assert.deepEqual(texts("a\x1b[1;31mb\x1b[0mc"), [
        ["a", null, false],
        ["b", "#ff8f87", true],
        ["c", null, false],
    ]);
    assert.deepEqual(texts("\x1b[38;2;1;2;300mx"), [["x", "rgb(1,2,255)", false]]);
    assert.deepEqual(texts("\x1b[38;5;196mx"), [["x", "rgb(255,0,0)", false]]);
    assert.deepEqual(texts("\x1b[2J\x1b]0;title\x07\x1b[?25lx\x00\x08"), [["x", null, false]]);
    assert.equal(
        texts("\u202egnp.exe\u2066")
            .map(([text]) => text)
            .join(""),
        "gnp.exe",
    );
    assert.deepEqual(texts("10 %\r50 %\r100 %"), [["100 %", null, false]]);
    assert.deepEqual(texts("end of DOS\r"), [["end of DOS", null, false]]);
    assert.deepEqual(texts("\x1b[38;5mx\x1b[38mx\x1b[999999;;mx"), [
        ["x", "#7a8a92", false],
        ["x", "#7a8a92", false],
        ["x", null, false],
    ]);
});

test("a colour lasts over lines", () => {
    const ansi = new Ansi();
    ansi.line("\x1b[32mgreen");
    assert.equal(ansi.line("still")[0].style.fg, "#7fdca4");
});

test("durations and sizes are read as Slurm and people write them", () => {
    for (const [text, ms] of [
        ["", null],
        ["90", undefined],
        ["2h30m", 9000000],
        ["90m", 5400000],
        ["1-12:00:00", 129600000],
        ["10:00", 600000],
        ["1:00:00", 3600000],
        ["2-3:00", 183600000],
        ["1d 2h", 93600000],
        ["5min", 300000],
        ["abc", undefined],
        ["-3h", undefined],
    ])
        if (ms === undefined) assert.throws(() => parseDuration(text), /Expected a duration/, text);
        else assert.equal(parseDuration(text), ms, text);
    for (const ms of [1000, 61000, 3600000, 90061000])
        assert.equal(parseDuration(writeDuration(ms)), ms);
    assert.equal(writeDuration(0), "");
    assert.deepEqual(["16G", "512M", "1.5T", "100", ""].map(parseMebibytes), [
        16384,
        512,
        1572864,
        100,
        null,
    ]);
    assert.throws(() => parseMebibytes("16X"), /Expected a size/);
});

const SCHEMA = {
    properties: {
        script: { type: "string" },
        name: { type: "string", default: "job", maxLength: 63 },
        cpus: { type: "integer", default: 1, minimum: 1 },
        memory_mib: { type: "integer", default: 0 },
        time_limit_ms: { type: "integer", default: 0 },
        max_uusd: { type: "integer", default: 0 },
        market: { type: "string", enum: ["any", "spot"], default: "any" },
        exclusive: { type: "boolean" },
        new_option: { type: "string", description: "of another version" },
        checkpoint: {
            type: "object",
            properties: {
                method: { type: "string", enum: ["none", "signal"], default: "none" },
                every_ms: { type: "integer", default: 0 },
            },
        },
    },
};

test("an option of belayd's table is a field without being known here", () => {
    const { common, more } = fieldsOf(SCHEMA);
    assert.deepEqual(
        common.map((f) => f.path),
        [
            "name",
            "cpus",
            "memory_mib",
            "time_limit_ms",
            "market",
            "checkpoint.method",
            "checkpoint.every_ms",
            "max_uusd",
        ],
    );
    assert.deepEqual(
        more.map((f) => [f.path, f.type, f.about]),
        [
            ["exclusive", "flag", ""],
            ["new_option", "text", "of another version"],
        ],
    );
});

test("a submit has what differs from the defaults, in the units of the API", () => {
    const { common, more } = fieldsOf(SCHEMA),
        rest = { script: "#!/bin/sh\r\ntrue\r\n", cwd: "/tmp", labels: "", env: "" };
    const spec = (form, parts = {}) => specOf([...common, ...more], form, { ...rest, ...parts });
    assert.deepEqual(spec({ name: "job", cpus: "1", market: "any", "checkpoint.method": "none" }), {
        script: "#!/bin/sh\ntrue\n",
        cwd: "/tmp",
    });
    const full = spec(
        {
            cpus: "4",
            memory_mib: "16G",
            time_limit_ms: "2h",
            max_uusd: "1.5",
            exclusive: "on",
            "checkpoint.method": "signal",
            "checkpoint.every_ms": "10m",
        },
        { labels: "exp=3\n team=a=b \n" },
    );
    assert.deepEqual(full, {
        script: "#!/bin/sh\ntrue\n",
        cwd: "/tmp",
        cpus: 4,
        memory_mib: 16384,
        time_limit_ms: 7200000,
        max_uusd: 1500000,
        exclusive: true,
        checkpoint: { method: "signal", every_ms: 600000 },
        labels: { exp: "3", team: "a=b" },
    });
    assert.throws(() => spec({ time_limit_ms: "soon" }), /Time limit.*Expected a duration/);
    assert.throws(() => spec({}, { env: "X" }), /env: expected NAME=VALUE/);
});

test("directives are found where the command line would read them", () => {
    assert.ok(hasDirectives("#!/bin/sh\n#SBATCH -n 4\n") && hasDirectives("#BELAY --gpus 1"));
    assert.ok(!hasDirectives("#!/bin/sh\n# SBATCH\necho '#BELAYED'\n"));
});

test("a checkpoint is shown with what the store has of it", () => {
    const reported = [1, 2, 3].map((sequence) => ({ attempt: 1, sequence, bytes: 9 }));
    const stored = [
        { attempt: 2, sequence: 1, pinned: false }, // not reported: belayd was away
        { attempt: 1, sequence: 2, pinned: true },
    ];
    const verified = [
        { attempt: 1, sequence: 2, state: "running" },
        { attempt: 1, sequence: 2, state: "damaged" },
    ];
    assert.deepEqual(
        withStored(reported, stored, verified).map((c) => [
            c.attempt + "." + c.sequence,
            c.stored,
            c.pinned,
            c.verified && c.verified.state,
        ]),
        [
            ["2.1", true, false, undefined],
            ["1.3", false, false, undefined],
            ["1.2", true, true, "running"],
            ["1.1", false, false, undefined],
        ],
    );
    assert.deepEqual(
        withStored(reported, undefined).map((c) => c.stored),
        [undefined, undefined, undefined],
    );
});

test("a gang's rank is behind when all others wait and it does not", () => {
    const attempts = [
        { attempt: 1, rank: 0, node: 1 },
        { attempt: 2, rank: 1, node: 3 },
        { attempt: 2, rank: 0, node: 2 },
        { attempt: 2, rank: 2, node: 4 },
    ];
    const loads = (...waited) =>
        waited.map((waited_ms, rank) => ({ rank, node: rank + 2, ms: 1000, waited_ms }));
    const { rows, behind } = gangOf(attempts, loads(400, 20, 360));
    assert.deepEqual(
        rows.map((r) => [r.rank, r.node, r.load.waited_ms]),
        [
            [0, 2, 400],
            [1, 3, 20],
            [2, 4, 360],
        ],
    );
    assert.deepEqual(behind, { rank: 1, part: 0.38 });
    assert.equal(gangOf(attempts, loads(400, 380, 360)).behind, null);
    assert.equal(gangOf(attempts, loads(0, 0, 0)).behind, null, "none reports its waiting");
    const old = loads(400, 20, 360).map((l) => ({ ...l, node: 9 }));
    assert.equal(gangOf(attempts, old).behind, null, "loads are of an earlier attempt");
    assert.deepEqual(gangOf([], []), { rows: [], behind: null });
});

test("messages of belayd have the labels of the form in place of flags", () => {
    const { common, more } = fieldsOf({
        properties: {
            time_limit_ms: { type: "integer", "x-belay-flag": "time" },
            finish_in_ms: { type: "integer", "x-belay-flag": "finish-by" },
            work_ms: { type: "integer", "x-belay-flag": "work" },
            wait_all: { type: "boolean" },
        },
    });
    assert.equal(
        inWords("--finish-by needs --work (such as 6h) or --time, not --", [...common, ...more]),
        '"Finish within" needs "work" (such as 6h) or "Time limit of an attempt", not --',
    );
    assert.equal(inWords("--timeout is unknown", common), "--timeout is unknown");
});
