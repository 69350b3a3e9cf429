/* The plots of belay simulate. */
const all = shown.simulations,
    files = all.map((s, i) => i + 1 + " " + s.pools_file);
/* One line a file; where they end at different times the shorter ones stop. */
function together(of, summed) {
    const rows = new Map();
    all.forEach((s, i) => {
        const step = s.over_time.bin_ms,
            start = Date.parse(s.start);
        let sum = 0;
        of(s).forEach((v, k) => {
            const at = start + k * step;
            if (!rows.has(at))
                rows.set(
                    at,
                    all.map(() => null),
                );
            sum = summed ? sum + v : v;
            rows.get(at)[i] = sum;
        });
    });
    return Array.from(rows.entries())
        .sort((a, b) => a[0] - b[0])
        .map((r) => [new Date(r[0])].concat(r[1]));
}
/* By part of the jobs: most wait little and few wait long, so the axis of waits is logarithmic. */
function waits() {
    const points = [];
    all.forEach((s, i) =>
        s.waits_ms.forEach((ms, k) => {
            const row = [(100 * (k + 1)) / s.waits_ms.length].concat(all.map(() => null));
            row[i + 1] = Math.max(1, ms / 1e3);
            points.push(row);
        }),
    );
    return points.sort((a, b) => a[0] - b[0]);
}
function short(s) {
    const units = [
        [86400, "d"],
        [3600, "h"],
        [60, "m"],
        [1, "s"],
    ];
    const [size, name] = units.find((u) => s >= u[0]) || units[3];
    return Math.round((10 * s) / size) / 10 + name;
}
const names = cycle(all.length),
    connected = { connectSeparatedPoints: true };
plot(
    "spent",
    together((s) => s.over_time.spent_usd, true),
    ["time"].concat(files),
    names,
    ["time, UTC", "dollars"],
    connected,
);
plot(
    "waiting",
    together((s) => s.over_time.waiting, false),
    ["time"].concat(files),
    names,
    ["time, UTC", "jobs"],
    connected,
);
const waited = waits();
if (document.getElementById("plot-waits")) {
    const ticks = [1, 10, 60, 600, 3600, 21600, 86400, 604800].map((v) => ({
        v: v,
        label: v === 1 ? "≤ 1s" : short(v),
    }));
    const most = Math.max(60, ...waited.flatMap((r) => r.slice(1)));
    plot(
        "waits",
        waited,
        ["percent"].concat(files),
        names,
        ["percent of the jobs, by their wait", "waited at most"],
        Object.assign({}, connected, {
            logscale: true,
            dateWindow: [0, 100],
            valueRange: [0.9, 1.5 * most],
            axes: {
                y: {
                    axisLabelWidth: 56,
                    ticker: () => ticks.filter((t) => t.v <= 1.5 * most),
                    valueFormatter: short,
                },
                x: { valueFormatter: (v) => v.toFixed(1) + " %" },
            },
        }),
    );
}
all.forEach((s, i) => {
    const t = s.over_time,
        at = (k) => new Date(Date.parse(s.start) + k * t.bin_ms);
    plot(
        "machines-" + i,
        t.owned.map((v, k) => [at(k), t.on_demand[k], t.spot[k], v]),
        ["time", "on-demand", "spot", "owned"],
        ["series-2", "series-4", "series-1"],
        ["time, UTC", "machines"],
        { stackedGraph: true },
    );
    plot(
        "jobs-" + i,
        t.running.map((v, k) => [at(k), v, t.waiting[k]]),
        ["time", "running", "waiting"],
        ["series-1", "series-2"],
        ["time, UTC", "jobs"],
        {},
    );
});
