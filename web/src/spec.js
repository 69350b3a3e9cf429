// SPDX-License-Identifier: Apache-2.0
// The fields of a job's specification, from the schema in belayd's OpenAPI document, which belayd
// makes from its one table of job options. Pure: schema in, fields and bodies out.
import { parseDuration, parseMebibytes } from "./units.js";

/* What most jobs set, in this order, in the form's words; the rest is under "More options". */
const COMMON = {
    name: ["Name", ""],
    cpus: ["CPUs on each node", ""],
    gpus: ["GPUs on each node", ""],
    memory_mib: ["Memory on each node", ""],
    time_limit_ms: ["Time limit of an attempt", "empty: none"],
    nodes: ["Nodes", "they start together"],
    pool: ["Pools", "empty: any"],
    market: ["Market", "spot costs least; belay survives its reclaims"],
    team: ["Team", "empty: yours"],
    "checkpoint.method": ["Checkpoints", "how the program takes part"],
    "checkpoint.every_ms": ["Save every", "empty: belay decides by cost"],
    finish_in_ms: ["Finish within", "at the least cost; needs a time limit, and any market"],
    max_uusd: ["Most it may cost, in dollars", "then it is saved and parked; empty: no limit"],
};
/* They have parts of the form of their own, or are for programs. */
const LEFT_OUT = [
    "script",
    "cwd",
    "args",
    "env",
    "labels",
    "input",
    "retry",
    "depends",
    "launch",
    "notify",
    "resources",
    "licences",
    "deadline_at_ms",
    "finish_by_ms",
    "begin_at_ms",
];

const UNITS = [
    { ending: "_ms", hint: "2h30m", unit: "", read: parseDuration },
    { ending: "_mib", hint: "16G", unit: "", read: parseMebibytes },
    { ending: "_uusd", hint: "40", unit: "in dollars", read: dollars },
    { ending: "_uusd_per_hour", hint: "3.50", unit: "in dollars an hour", read: dollars },
];

function dollars(text) {
    if (text.trim() === "") return null;
    const usd = Number(text);
    if (!(usd >= 0)) throw new Error('Expected a sum of dollars, found "' + text + '"');
    return Math.round(usd * 1e6);
}

function number(text) {
    return text.trim() === "" ? null : Number(text);
}

/** @returns an object {common: [field], more: [field]}; a field is {path, label, flag, type,
 *   choices, hint, min, max, maxLength, about, read}; flag is that of the command line, or "" */
export function fieldsOf(schema) {
    const all = [];
    for (const [name, member] of Object.entries(schema.properties)) {
        if (LEFT_OUT.includes(name)) continue;
        if (name === "checkpoint")
            for (const [inner, m] of Object.entries(member.properties))
                all.push(fieldOf(name + "." + inner, m));
        else all.push(fieldOf(name, member));
    }
    return {
        common: Object.entries(COMMON).flatMap(([path, [label, about]]) =>
            all.filter((f) => f.path === path).map((f) => ({ ...f, label, about })),
        ),
        more: all.filter((f) => !COMMON[f.path]).sort((a, b) => a.label.localeCompare(b.label)),
    };
}

function fieldOf(path, m) {
    const types = [].concat(m.type),
        unit = UNITS.find((u) => path.endsWith(u.ending));
    const stem = unit ? path.slice(0, -unit.ending.length) : path;
    const label =
        stem.replace("checkpoint.", "checkpoint ").replace(/_/g, " ") +
        (unit && unit.unit ? ", " + unit.unit : "");
    const field = {
        path,
        label,
        about: m.description || "",
        flag: m["x-belay-flag"] || "",
        initial: m.default === undefined ? "" : String(m.default),
    };
    if (m.enum) return { ...field, type: "choice", choices: m.enum, read: (t) => t };
    if (types.includes("boolean")) return { ...field, type: "flag", read: (t) => t === "on" };
    if (unit) return { ...field, type: "text", hint: unit.hint, initial: "", read: unit.read };
    if (types.includes("integer") || types.includes("number"))
        return { ...field, type: "number", min: m.minimum, max: m.maximum, read: number };
    return {
        ...field,
        type: "text",
        maxLength: m.maxLength,
        hint: (m.examples || []).find((e) => typeof e === "string" && e) || "",
        read: (t) => t.trim(),
    };
}

/**
 * @param texts path => text of the form; flags "on" or absent
 * @returns the body of a submit: what differs from the defaults. Throws with the field's name.
 */
export function specOf(fields, texts, { script, cwd, labels, env }) {
    const spec = { script: script.replace(/\r\n/g, "\n"), cwd };
    for (const f of fields) {
        const text = texts[f.path] || "";
        if (f.type === "flag" ? text !== "on" : text.trim() === "" || text === f.initial) continue;
        put(spec, f.path, readField(f, text));
    }
    for (const [name, text] of [
        ["labels", labels],
        ["env", env],
    ])
        if (text.trim()) spec[name] = pairs(name, text);
    return spec;
}

/** A message of belayd with the fields' labels in place of the flags of the command line. */
export function inWords(message, fields) {
    const labels = new Map(fields.filter((f) => f.flag).map((f) => ["--" + f.flag, f.label]));
    return message.replace(/--[a-z][a-z-]*/g, (flag) =>
        labels.has(flag) ? `"${labels.get(flag)}"` : flag,
    );
}

function readField(f, text) {
    try {
        return f.read(text);
    } catch (e) {
        throw new Error(f.label + ": " + e.message);
    }
}

function put(spec, path, value) {
    const [name, inner] = path.split(".");
    if (inner) spec[name] = { ...spec[name], [inner]: value };
    else spec[name] = value;
}

function pairs(name, text) {
    const found = {};
    for (const line of text
        .split("\n")
        .map((l) => l.trim())
        .filter(Boolean)) {
        const at = line.indexOf("=");
        if (at < 1)
            throw new Error(name + ': expected NAME=VALUE in each line, found "' + line + '"');
        found[line.slice(0, at)] = line.slice(at + 1);
    }
    return found;
}

/** Whether the script has lines that only the command line reads. */
export function hasDirectives(script) {
    return /^#(BELAY|SBATCH)\s/m.test(script);
}
