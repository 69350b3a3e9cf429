/* The plots of belay breakeven. */
const sides = [shown.own].concat(shown.rent),
    names = cycle(sides.length);
const titles = sides.map((s, i) => (i === 0 ? "own" : i + " " + s.name));
const hour = (s, u) => (s.line.uusd_per_gpu_hour / u + s.line.uusd_per_productive_gpu_hour) / 1e6;
/* 5 to 100 percent, and where owning costs as much as one of the others. */
const met = shown.rent
    .map((r) => r.break_even.utilisation.utilisation)
    .filter((u) => u !== null && u >= 0.05);
const at = Array.from({ length: 96 }, (_, i) => [(i + 5) / 100, false])
    .concat(met.map((u) => [u, true]))
    .sort((a, b) => a[0] - b[0]);
plot(
    "hours",
    at.map(([u, dot]) =>
        [100 * u].concat(
            sides.map((s) => hour(s, u)),
            [dot ? hour(shown.own, u) : null],
        ),
    ),
    ["utilisation"].concat(titles, ["break-even"]),
    names.concat(["text"]),
    ["percent of the hours that are productive", "dollars a productive GPU-hour"],
    {
        series: { "break-even": { strokeWidth: 0, drawPoints: true, pointSize: 5 } },
        valueRange: [
            0,
            Math.max.apply(
                null,
                sides.map((s) => hour(s, 0.3)),
            ),
        ],
    },
);
plot(
    "paid",
    sides[0].paid_so_far_uusd.map((_, m) =>
        [m + 1].concat(sides.map((s) => s.paid_so_far_uusd[m] / 1e9)),
    ),
    ["month"].concat(titles),
    names,
    ["months", "paid so far, thousands of dollars"],
    { maxNumberWidth: 12 },
);
