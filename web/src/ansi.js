// SPDX-License-Identifier: Apache-2.0
// Output of programs as lines of coloured pieces: SGR sequences of ECMA-48 become styles, a
// carriage return begins its line again, every other control is left out, and so is what overrides
// the direction of text: a line could show other words than the program wrote. Pure.

const PLAIN = { fg: null, bg: null, bold: false, dim: false, italic: false, underline: false };
const SGR = /\x1b\[([0-9;:]*)m/; // group 1: its numbers
const CSI = /\x1b\[[0-?]*[ -/]*[@-~]/; // cursor, erasing and the like
const OSC = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?/; // window titles and links
const ESCAPE = /\x1b[@-Z\\-_]/;
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;
const DIRECTION = /[\u202a-\u202e\u2066-\u2069]/; // embeddings, overrides, isolates
const SEQUENCE = new RegExp(
    [SGR, CSI, OSC, ESCAPE, CONTROL, DIRECTION].map((r) => r.source).join("|"),
    "g",
);
const FLAGS = {
    1: ["bold", true],
    2: ["dim", true],
    3: ["italic", true],
    4: ["underline", true],
    23: ["italic", false],
    24: ["underline", false],
};

/** Lines one after the other; a colour lasts until it is changed. */
export class Ansi {
    constructor() {
        this.style = PLAIN;
    }

    /** @returns [{text, style}] of one line, without its line break */
    line(text) {
        const end = text.endsWith("\r") ? text.length - 1 : text.length;
        const at = text.lastIndexOf("\r", end - 1) + 1; // what a progress bar wrote last
        for (const [, codes] of text.slice(0, at).matchAll(SEQUENCE)) this.apply(codes);
        const pieces = [];
        let last = at;
        for (const found of text.slice(at, end).matchAll(SEQUENCE)) {
            this.add(pieces, text.slice(last, at + found.index));
            last = at + found.index + found[0].length;
            this.apply(found[1]);
        }
        this.add(pieces, text.slice(last, end));
        return pieces;
    }

    add(pieces, text) {
        if (text) pieces.push({ text, style: this.style });
    }

    apply(codes) {
        if (codes === undefined) return;
        const list = codes.split(/[;:]/).map(Number);
        const style = { ...this.style };
        for (let i = 0; i < list.length; i++) {
            const code = list[i];
            if (code === 0) Object.assign(style, PLAIN);
            else if (code === 22) style.bold = style.dim = false;
            else if (FLAGS[code]) style[FLAGS[code][0]] = FLAGS[code][1];
            else if (code === 38 || code === 48) i = extended(list, i, style);
            else if (code === 39) style.fg = null;
            else if (code === 49) style.bg = null;
            else basic(code, style);
        }
        this.style = style;
    }
}

function basic(code, style) {
    for (const [first, target, bright] of [
        [30, "fg", 0],
        [40, "bg", 0],
        [90, "fg", 8],
        [100, "bg", 8],
    ])
        if (code >= first && code < first + 8) style[target] = palette(code - first + bright);
}

/** 38;5;N or 38;2;R;G;B; returns the position of its last number. */
function extended(list, i, style) {
    const target = list[i] === 38 ? "fg" : "bg";
    if (list[i + 1] === 5) {
        style[target] = palette(Math.min(255, list[i + 2] || 0));
        return i + 2;
    }
    if (list[i + 1] === 2) {
        style[target] =
            "rgb(" + [2, 3, 4].map((k) => Math.min(255, list[i + k] || 0)).join(",") + ")";
        return i + 4;
    }
    return list.length;
}

/* readable on the log's dark ground, black and blue included */
const COLOURS = [
    "#7a8a92",
    "#ff8f87",
    "#7fdca4",
    "#ffd27a",
    "#9cc8ff",
    "#e2a6f5",
    "#7cd0df",
    "#dfe7ea",
    "#a5b6be",
    "#ffb3ad",
    "#a7f0c2",
    "#ffe3ab",
    "#c2ddff",
    "#f0cbfb",
    "#a9e6f0",
    "#ffffff",
];

function palette(n) {
    if (n < 16) return COLOURS[n];
    if (n >= 232)
        return (
            "rgb(" +
            Array(3)
                .fill(8 + 10 * (n - 232))
                .join(",") +
            ")"
        );
    const level = (v) => (v === 0 ? 0 : 55 + 40 * v);
    return (
        "rgb(" +
        [Math.floor((n - 16) / 36), Math.floor((n - 16) / 6) % 6, (n - 16) % 6]
            .map(level)
            .join(",") +
        ")"
    );
}
