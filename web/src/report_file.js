// SPDX-License-Identifier: Apache-2.0
// Files that `belay simulate` (--html or --json) and `belay cost forecast --json` wrote, as plain
// values to show. Pure. A file may come from anybody: only its numbers and texts of known names are
// taken, in limits; its markup and scripts are not even parsed.

export const FILE_MAX = 16 << 20; // bytes
const LISTED_MAX = 1000; // pools, teams, offers, notes
const POINTS_MAX = 5000; // of a line over time
const SIMULATIONS_MAX = 16;
const TEXT_MAX = 300;
const DATA = '<script type="application/json" id="data">'; // of cli/html/page.c

const number = (v) => (typeof v === "number" && Number.isFinite(v) ? v : null);
const text = (v) => (typeof v === "string" ? v.slice(0, TEXT_MAX) : "");
const object = (v) => (v !== null && typeof v === "object" && !Array.isArray(v) ? v : {});
const list = (v, max = LISTED_MAX) => (Array.isArray(v) ? v.slice(0, max) : []);
const numbers = (v, names) => Object.fromEntries(names.map((n) => [n, number(object(v)[n])]));

/** The JSON of a report: the file itself, or what stands in a page. Throws with what to do. */
function jsonOf(file) {
    const at = file.indexOf(DATA);
    const isPage = /^\s*</.test(file);
    if (isPage && at < 0)
        throw new Error(
            "This page has no figures of belay simulate in it; open it in a tab of its own",
        );
    const json = isPage ? file.slice(at + DATA.length).split("</script>", 1)[0] : file;
    try {
        return JSON.parse(json);
    } catch (e) {
        throw new Error("The file is damaged, or was not written by belay: " + e.message);
    }
}

/** {kind: "simulate", simulations} or {kind: "forecast", offers}; throws with what to do. */
export function readReport(file) {
    const found = object(jsonOf(file));
    if (Array.isArray(found.simulations) && found.simulations.length > 0)
        return {
            kind: "simulate",
            simulations: list(found.simulations, SIMULATIONS_MAX).map(simulationOf),
        };
    if (Array.isArray(found.candidates))
        return {
            kind: "forecast",
            offers: list(found.candidates).map(offerOf),
            more: number(found.more) || 0,
            infeasibleByMs: number(found.infeasible_by_ms),
        };
    throw new Error(
        "Expected a file of belay simulate --html, belay simulate --json or " +
            "belay cost forecast --json",
    );
}

const JOBS = ["jobs", "ended", "started", "cost_uusd", "lost_ms", "reclaims", "late", "late_ms"];

function jobsOf(v) {
    return {
        ...numbers(v, [...JOBS, "with_deadline"]),
        wait_ms: numbers(object(v).wait_ms, ["mean", "median", "p95", "max"]),
    };
}

function simulationOf(v, i) {
    const s = object(v),
        use = object(s.utilisation);
    return {
        file: text(s.pools_file) || "file " + (i + 1),
        start: Date.parse(text(s.start)) || 0,
        ...numbers(s, ["length_ms", "cost_uusd", "useful_on_demand_uusd", "launches", "refusals"]),
        ...numbers(s, ["reclaims", "moves"]),
        byMarket: numbers(s.cost_uusd_by_market, ["owned", "spot", "on_demand"]),
        use: numbers(use, ["cpus", "gpus"]),
        all: jobsOf(s.all),
        waits: list(s.waits_ms, POINTS_MAX)
            .map(number)
            .filter((w) => w !== null),
        teams: list(s.teams).map((t) => ({ team: text(object(t).team), ...jobsOf(t) })),
        pools: list(s.pools).map(poolOf),
        notes: list(s.notes).map(text).filter(Boolean),
        lines: linesOf(s.over_time),
    };
}

function poolOf(v) {
    const p = object(v);
    return {
        pool: text(p.pool),
        ...numbers(p, ["cost_uusd", "launches", "refusals", "reclaims"]),
        ...numbers(p, ["cpu_utilisation", "gpu_utilisation"]),
        jobs: jobsOf(p.started_there),
    };
}

const LINES = ["owned", "spot", "on_demand", "running", "waiting", "spent_usd"];

function linesOf(v) {
    const o = object(v);
    return {
        bin_ms: Math.max(1, number(o.bin_ms) || 1),
        ...Object.fromEntries(LINES.map((name) => [name, list(o[name], POINTS_MAX).map(number)])),
    };
}

function offerOf(v) {
    const o = object(v),
        place = object(o.offer);
    return {
        name: o.offer ? [place.pool, place.zone, place.type].map(text).join("/") : "",
        market: text(place.market),
        ...numbers(o, ["starts", "done", "late", "reclaims"]),
        cost: numbers(o.cost_uusd, ["mean", "median", "p95", "data"]),
        done_ms: numbers(o.done_ms, ["median", "p95"]),
    };
}

/** Lines of several simulations on one axis of time; `of` gives a line's values. */
export function together(simulations, of) {
    const ends = simulations.map((s) => of(s).length * s.lines.bin_ms);
    const step = Math.min(...simulations.map((s) => s.lines.bin_ms)),
        start = Math.min(...simulations.map((s) => s.start));
    const length = Math.max(0, ...simulations.map((s, i) => s.start - start + ends[i]));
    const n = Math.min(POINTS_MAX, Math.ceil(length / step));
    const times = Array.from({ length: n }, (_, k) => start + (k * length) / n);
    return {
        times,
        series: simulations.map((s) => ({
            name: s.file,
            values: times.map((t) => {
                const v = of(s)[Math.floor((t - s.start) / s.lines.bin_ms)];
                return v === undefined ? null : v;
            }),
        })),
    };
}

/** The sums of a line so far. */
export function summed(values) {
    let sum = 0;
    return values.map((v) => (sum += v || 0));
}

/** The longest wait of `percent` of the jobs; waits are sorted. */
export function waitOf(waits, percent) {
    return waits.length ? waits[Math.floor(((waits.length - 1) * percent) / 100)] : null;
}
