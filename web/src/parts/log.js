// SPDX-License-Identifier: Apache-2.0
// A job's output over all its attempts: the end first, earlier pieces on demand, followed while the
// job runs, seams between attempts marked, searched.
import { Ansi } from "../ansi.js";
import { getBytes, withQuery } from "../api.js";
import { usePoll } from "../data.js";
import { classes, html, useEffect, useMemo, useRef, useState } from "../dom.js";
import { bytes, count } from "../format.js";
import { followLog, useStreamState } from "../stream.js";
import { RankChoice } from "./rank_choice.js";
import { Failure, Loading } from "./states.js";

const PIECE = 65536; // bytes at a time
const LINES_MAX = 20000; // kept; older ones are read again on demand
const POLL_MS = 3000;
const BLOCK = 200; // lines that are drawn together
const LINE_PX = 19; // of a short line in job.css, for blocks that were never in sight
const SEAM = /^---- belay: (attempt .*) ----$/;

export function Log({ job, ranks }) {
    const [rank, setRank] = useState(0);
    const log = useLog(job.id, rank, job.state !== "ended");
    const [follow, setFollow] = useState(true);
    const [word, setWord] = useState("");
    const [hit, setHit] = useState(0);
    const box = useRef(null);
    const hits = useMemo(
        () =>
            word
                ? log.lines.flatMap((l, i) => (lower(l).includes(word.toLowerCase()) ? [i] : []))
                : [],
        [word, log.lines],
    );
    useEffect(() => {
        if (follow && !word && box.current) box.current.scrollTop = box.current.scrollHeight;
    }, [log.lines, follow, word]);
    useEffect(() => {
        const line =
            hits.length && box.current && lineAt(box.current, log.first, hits[hit % hits.length]);
        if (line) line.scrollIntoView({ block: "center" });
    }, [hit, word]);
    const scrolled = () => {
        const b = box.current;
        setFollow(b.scrollHeight - b.scrollTop - b.clientHeight < 40);
    };
    return html`<div class="log-tools">
            <form role="search" onSubmit=${(e) => {
                e.preventDefault();
                setHit((hit + 1) % Math.max(1, hits.length));
            }}>
                <input type="search" aria-label="Search the output" placeholder="Search"
                    value=${word} onInput=${(e) => {
                        setWord(e.target.value);
                        setHit(0);
                    }} />
                ${
                    word &&
                    html`<span role="status">${
                        hits.length
                            ? (hit % hits.length) + 1 + " of " + count(hits.length)
                            : "not found"
                    }</span>
                    <button type="submit">Next</button>`
                }
            </form>
            ${ranks > 1 && html`<${RankChoice} ranks=${ranks} rank=${rank} choose=${setRank} />`}
            <label><input type="checkbox" checked=${follow}
                onChange=${(e) => setFollow(e.target.checked)} /> follow</label>
            <a class="button" href=${withQuery("/api/v1/jobs/" + job.id + "/logs", {
                offset: Math.max(0, log.end - 262144),
                rank: rank || "",
                max: 262144,
            })}
                download=${"job-" + job.ref + ".log"}>Save the last 256 KiB</a>
        </div>
        ${log.error && html`<${Failure} error=${log.error} retry=${log.reload} />`}
        ${log.loading && html`<${Loading} lines=${6} />`}
        ${!log.loading && !log.error && log.end === 0 && html`<p class="quiet">No output yet.</p>`}
        ${
            log.end > 0 &&
            html`<div class="log" ref=${box} onScroll=${scrolled} tabindex="0" role="log"
                aria-label="Output" aria-live="off">
            <div>${
                log.start > 0 &&
                html`<button type="button"
                onClick=${log.earlier}>Show earlier output (${bytes(log.start)})</button>`
            }</div>
            ${blocksOf(log.first, log.lines).map(
                (block) => html`<${Block} key=${block.number} lines=${block.lines}
                first=${block.first} word=${word} hit=${
                    hits.length ? log.first + hits[hit % hits.length] : null
                } />`,
            )}
        </div>`
        }`;
}

function plain(line) {
    return line.map((p) => p.text).join("");
}

const lowered = new WeakMap(); // line => its text in lower case

function lower(line) {
    if (!lowered.has(line)) lowered.set(line, plain(line).toLowerCase());
    return lowered.get(line);
}

/** Lines by number: those of one block stay together when lines are added at either end. */
export function blocksOf(first, lines) {
    const blocks = [];
    for (let from = 0, n = first; from < lines.length; from = n - first) {
        const number = Math.floor(n / BLOCK),
            next = (number + 1) * BLOCK;
        blocks.push({ number, first: n, lines: lines.slice(from, next - first) });
        n = next;
    }
    return blocks;
}

/** The element of the i-th line. */
function lineAt(box, first, i) {
    const number = Math.floor((first + i) / BLOCK);
    const block = box.querySelector(`[data-block="${number}"]`);
    return block && block.children[first + i - Math.max(first, number * BLOCK)];
}

function isSame(a, b) {
    return a.length === b.length && a.every((line, i) => line === b[i]);
}

/** Lines that are drawn again only when they have changed, and of which matches are marked only
 * near the window: a log has thousands, and each change of the word may be in all of them. */
function Block({ lines, first, word, hit }) {
    const [near, setNear] = useState(false);
    const element = useRef(null),
        kept = useRef(lines);
    if (!isSame(kept.current, lines)) kept.current = lines;
    useEffect(() => {
        const observer = new IntersectionObserver(([e]) => setNear(e.isIntersecting), {
            rootMargin: "50%",
        });
        observer.observe(element.current);
        return () => observer.disconnect();
    }, []);
    const isHere = hit !== null && hit >= first && hit < first + lines.length;
    const marked = near || isHere ? word : "";
    return useMemo(
        () => html`<div class="log-block" ref=${element}
            style=${{ containIntrinsicSize: "auto " + LINE_PX * lines.length + "px" }}
            data-block=${Math.floor(first / BLOCK)}>${kept.current.map((line, i) =>
                lineOf(line, first + i, isHere && hit === first + i, marked),
            )}</div>`,
        [kept.current, first, marked, isHere ? hit : null],
    );
}

function lineOf(line, key, isHit, word) {
    const seam = SEAM.exec(plain(line));
    if (seam) return html`<div key=${key} class="log-seam" role="separator">${seam[1]}</div>`;
    return html`<div key=${key} class=${classes("log-line", isHit && "log-hit")}>${
        line.length
            ? line.map((p) => html`<span style=${styleOf(p.style)}>${marked(p.text, word)}</span>`)
            : "\n"
    }</div>`;
}

function styleOf(s) {
    return {
        color: s.fg || undefined,
        background: s.bg || undefined,
        fontWeight: s.bold ? "bold" : undefined,
        opacity: s.dim ? 0.75 : undefined,
        fontStyle: s.italic ? "italic" : undefined,
        textDecoration: s.underline ? "underline" : undefined,
    };
}

function marked(text, word) {
    const at = word ? text.toLowerCase().indexOf(word.toLowerCase()) : -1;
    return at < 0
        ? text
        : [
              text.slice(0, at),
              html`<mark>${text.slice(at, at + word.length)}</mark>`,
              text.slice(at + word.length),
          ];
}

/** {lines, first, start, end, loading, error, earlier, reload}; first: number of the first line,
 * start and end: offsets */
function useLog(id, rank, runs) {
    const live = useStreamState() === "live";
    const [, redraw] = useState(0);
    const reader = useRef(null);
    useEffect(() => {
        const one = (reader.current = new LogReader("/api/v1/jobs/" + id + "/logs", rank, () =>
            redraw((n) => n + 1),
        ));
        one.more();
        return () => {
            one.ended = true;
        };
    }, [id, rank]);
    useEffect(() => (runs ? followLog(id, () => reader.current.more()) : undefined), [id, runs]);
    usePoll(!live && runs, POLL_MS, () => reader.current.more());
    const r = reader.current || {
        lines: [],
        first: 0,
        start: 0,
        end: 0,
        loading: true,
        error: null,
    };
    return {
        lines: r.lines,
        first: r.first,
        start: r.start,
        end: r.end,
        loading: r.loading,
        error: r.error,
        earlier: () => r.earlier(),
        reload: () => r.more(),
    };
}

class LogReader {
    constructor(path, rank, changed) {
        Object.assign(this, {
            path,
            rank,
            changed,
            lines: [],
            first: 0,
            start: 0,
            end: 0,
            rest: "",
            loading: true,
            error: null,
            busy: false,
            again: false,
            ended: false,
        });
        this.ansi = new Ansi();
        this.decoder = new TextDecoder();
    }

    read(offset, max) {
        return getBytes(withQuery(this.path, { offset, max, rank: this.rank || "" }));
    }

    /** What has been added since the last reading; at first the end of what there is. */
    async more() {
        if (this.busy) {
            this.again = true;
            return;
        }
        this.busy = true;
        try {
            for (let full = true; full && !this.ended; ) full = await this.next();
            this.error = null;
        } catch (error) {
            this.error = error;
        }
        this.loading = this.busy = false;
        if (!this.ended) this.changed();
        if (this.again && !this.ended) {
            this.again = false;
            this.more();
        }
    }

    async next() {
        const first = this.end === 0;
        const piece = await this.read(first ? -PIECE : this.end, PIECE);
        const end = Number(piece.headers.get("Belay-Log-Next"));
        if (first) this.start = Math.max(0, end - piece.bytes.length);
        this.end = end;
        this.add(this.decoder.decode(piece.bytes, { stream: true }), first && this.start > 0);
        return piece.bytes.length === PIECE;
    }

    /** @param cut the text begins within a line, which is left out */
    add(text, cut) {
        const parts = (this.rest + text).split("\n");
        const had = this.rest ? 1 : 0; // the unfinished line is the last one shown
        this.rest = parts.pop();
        if (cut && parts.length)
            this.start += new TextEncoder().encode(parts.shift() + "\n").length;
        const whole = this.lines.slice(0, this.lines.length - had);
        const lines = parts.map((p) => this.ansi.line(p));
        const tail = this.rest ? [new Ansi().line(this.rest)] : [];
        this.lines = [...whole, ...lines, ...tail];
        if (this.lines.length > LINES_MAX) {
            this.first += this.lines.length - LINES_MAX;
            this.lines = this.lines.slice(-LINES_MAX);
        }
    }

    /** One piece before what is shown. Colours begin anew in it. */
    async earlier() {
        const from = Math.max(0, this.start - PIECE);
        try {
            const piece = await this.read(from, this.start - from);
            const parts = new TextDecoder().decode(piece.bytes).split("\n");
            parts.pop();
            if (from > 0 && parts.length > 1)
                this.start = from + new TextEncoder().encode(parts.shift() + "\n").length;
            else this.start = from;
            const ansi = new Ansi();
            this.first -= parts.length;
            this.lines = [...parts.map((p) => ansi.line(p)), ...this.lines];
        } catch (error) {
            this.error = error;
        }
        this.changed();
    }
}
