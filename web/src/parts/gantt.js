// SPDX-License-Identifier: Apache-2.0
// A job's attempts over time, drawn; a list beside it says the same in words.
import { html, useEffect, useRef, useState } from "../dom.js";
import { absolute, clock, dayTime, duration } from "../format.js";
import { KINDS, ticks } from "../timeline.js";

const ROW_PX = 30,
    BAR_PX = 16,
    LEFT_PX = 40,
    AXIS_PX = 22,
    LEAST_PX = 2,
    EDGE_PX = 46;

/** @param line of timeline(); `rates` attempt => millionths of a dollar an hour; may be left out */
export function Gantt({ line, describe }) {
    const box = useRef(null);
    const [width, setWidth] = useState(600);
    const [chosen, setChosen] = useState(null);
    useEffect(() => {
        const observer = new ResizeObserver(() => {
            if (box.current) setWidth(Math.max(240, box.current.clientWidth)); // else: removed
        });
        observer.observe(box.current);
        return () => observer.disconnect();
    }, []);
    const height = line.rows.length * ROW_PX + AXIS_PX;
    const x = (at) => LEFT_PX + ((at - line.from) / (line.to - line.from)) * (width - LEFT_PX - 4);
    return html`<figure class="gantt" ref=${box}>
        <svg width=${width} height=${height} viewBox=${"0 0 " + width + " " + height} role="img"
            aria-label="Timeline of the attempts; the table of attempts has the same">
            <${Axis} line=${line} x=${x} width=${width} height=${height} />
            ${line.rows.map(
                (row, i) => html`<${GanttRow} key=${i} row=${row} y=${i * ROW_PX} x=${x}
                choose=${setChosen} describe=${describe} />`,
            )}
        </svg>
        <figcaption><ul class="legend">${Object.entries(KINDS).map(
            ([kind, name]) => html`<li key=${kind}>
            <span class=${"legend-key gantt-" + kind}></span>${name}</li>`,
        )}
            <li><span class="gantt-legend-notice">▼</span>notice</li></ul>
            <p class="gantt-chosen" aria-live="polite">${
                chosen || "Point at a part, or touch it, for its time and cost."
            }</p></figcaption>
    </figure>`;
}

function Axis({ line, x, width, height }) {
    const at = ticks(line.from, line.to, Math.max(2, Math.floor(width / 110)));
    const isLong = line.to - line.from > 86400000;
    const text = (t) => (isLong ? dayTime(t) : clock(t, line.to - line.from < 600000));
    return at.map(
        (t) => html`<g key=${t}><line class="gantt-grid" x1=${x(t)} x2=${x(t)} y1="0"
            y2=${height - AXIS_PX} />
        <text class="gantt-text" x=${Math.max(EDGE_PX, Math.min(x(t), width - EDGE_PX))}
            y=${height - 6} text-anchor="middle">${text(t)}</text></g>`,
    );
}

function GanttRow({ row, y, x, choose, describe }) {
    const top = y + (ROW_PX - BAR_PX) / 2;
    return html`<g>
        <text class="gantt-text" x="0" y=${y + ROW_PX / 2 + 4}>${
            row.attempt === null ? "" : "#" + row.attempt
        }</text>
        ${row.spans.map((s, i) => {
            const text = say(row, s, describe);
            return html`<rect key=${i} class=${"gantt-" + s.kind} x=${x(s.from)}
                y=${s.kind === "save" ? top - 3 : top}
                width=${Math.max(LEAST_PX, x(s.to) - x(s.from))}
                    height=${s.kind === "save" ? BAR_PX + 6 : BAR_PX}
                onPointerEnter=${() => choose(text)}
                    onClick=${() => choose(text)}><title>${text}</title></rect>`;
        })}
        ${row.marks
            .filter((m) => m.kind !== "saved")
            .map(
                (m, i) => html`<path key=${i} class=${"gantt-mark gantt-mark-" + m.kind}
            d=${"M" + x(m.at) + " " + (top + 2) + " l-5 -9 h10 z"}
                onPointerEnter=${() => choose(m.text)}><title>${
                    absolute(m.at) + ": " + m.text
                }</title></path>`,
            )}
    </g>`;
}

function say(row, s, describe) {
    const text =
        (row.attempt === null ? "" : "attempt " + row.attempt + ": ") +
        KINDS[s.kind] +
        " for " +
        duration(s.to - s.from) +
        ", from " +
        absolute(s.from);
    return describe ? text + describe(row, s) : text;
}
