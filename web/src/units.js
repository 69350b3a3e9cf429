// SPDX-License-Identifier: Apache-2.0
// What people type for durations, sizes and sums, as the API's integers. Pure.

const SECONDS = { d: 86400, h: 3600, m: 60, s: 1 };

/** "2h30m", "90m", "1-12:00:00", "10:00": milliseconds; "" is null. Throws on another text. */
export function parseDuration(text) {
    const t = text.trim().toLowerCase();
    if (t === "") return null;
    const parts = /^(\d+d)?(\d+h)?(\d+m(?:in)?)?(\d+s)?$/.exec(t.replace(/\s+/g, ""));
    if (parts)
        return (
            1000 *
            parts
                .slice(1)
                .filter(Boolean)
                .reduce((sum, p) => sum + parseInt(p, 10) * SECONDS[p.replace(/^\d+/, "")[0]], 0)
        );
    const clock = /^(?:(\d+)-)?(\d+):([0-5]\d)(?::([0-5]\d))?$/.exec(t);
    if (!clock) throw new Error('Expected a duration such as 2h30m, found "' + text + '"');
    const [, days = 0, first, second, third] = clock;
    const seconds =
        third === undefined
            ? Number(first) * (days ? 3600 : 60) + Number(second) * (days ? 60 : 1)
            : Number(first) * 3600 + Number(second) * 60 + Number(third);
    return 1000 * (days * 86400 + seconds);
}

/** The reverse: "2h30m"; "" for null and 0. */
export function writeDuration(ms) {
    let left = Math.round((ms || 0) / 1000),
        text = "";
    for (const [unit, size] of Object.entries(SECONDS)) {
        const n = Math.floor(left / size);
        left -= n * size;
        text += n ? n + unit : "";
    }
    return text;
}

const BINARY = { "": 1, m: 1, mib: 1, g: 1024, gib: 1024, t: 1048576, tib: 1048576 };

/** "16G", "512M", "1.5T": MiB; "" is null. Throws on another text. */
export function parseMebibytes(text) {
    const t = text.trim().toLowerCase();
    if (t === "") return null;
    const parts = /^(\d+(?:\.\d+)?)\s*([mgt]?(?:ib)?)$/.exec(t);
    if (!parts || BINARY[parts[2]] === undefined)
        throw new Error('Expected a size such as 16G, found "' + text + '"');
    return Math.ceil(Number(parts[1]) * BINARY[parts[2]]);
}
