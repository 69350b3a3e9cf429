// SPDX-License-Identifier: Apache-2.0
// A table by a list of columns. On narrow screens each row becomes a card of name and value.
import { classes, html, useLayoutEffect, useRef, useState } from "../dom.js";
import { count } from "../format.js";

/**
 * @param columns [{name, cell: row => content, number: right-aligned, wide: takes what is left,
 *   size: px of a LongTable's column}]
 * @param rowKey row => key; `caption` names the table for readers of the screen
 * @param most rows that are shown until the button for all of them is pressed
 */
export function Table({ caption, columns, rows, rowKey, empty, most = Infinity }) {
    const [all, setAll] = useState(false);
    if (rows.length === 0 && empty) return empty;
    const shown = all ? rows : rows.slice(0, most);
    return html`<div class="table-box" tabindex="0" role="region" aria-label=${caption}><table
        class="table">
        <caption class="sr-only">${caption}</caption>
        <thead><${HeadRow} columns=${columns} /></thead>
        <tbody>${shown.map(
            (row) => html`<${Row} key=${rowKey(row)} columns=${columns}
            row=${row} />`,
        )}</tbody>
    </table></div>
    ${
        shown.length < rows.length &&
        html`<p><button type="button" onClick=${() => setAll(true)}>Show
            all ${count(rows.length)}</button></p>`
    }`;
}

export function HeadRow({ columns }) {
    return html`<tr>${columns.map(
        (c) => html`<th scope="col" class=${cellClass(c)}
        style=${c.size && { width: c.size + "px" }}>${c.name}</th>`,
    )}</tr>`;
}

export function Row({ columns, row }) {
    return html`<tr>${columns.map(
        (c) => html`<td class=${cellClass(c)}
        data-name=${c.name}>${c.cell(row)}</td>`,
    )}</tr>`;
}

function cellClass(column) {
    return classes(column.number && "number", column.wide && "wide");
}

const WIDE_PX = 180;

function widthOf(columns) {
    return columns.some((c) => c.size)
        ? columns.reduce((sum, c) => sum + (c.size || WIDE_PX), 0)
        : 0;
}

/** The rows from first to before end that a window of `height` shows, with some above and below. */
export function visibleRows({ total, rowHeight, top, height, spare = 10 }) {
    const first = Math.max(0, Math.min(Math.floor(top / rowHeight), total - 1) - spare);
    const end = Math.min(total, Math.ceil((top + height) / rowHeight) + spare);
    return { first, end: Math.max(first, end) };
}

/**
 * The same for any number of rows of one height: only those in sight are in the page. onEnd is
 * called when the last rows come into sight, to read more. Where columns have widths, the one that
 * is `wide` has WIDE_PX at least, and the table scrolls sideways in its box.
 */
export function LongTable({ caption, columns, rows, rowKey, rowHeight, onEnd }) {
    const box = useRef(null);
    const [range, setRange] = useState({ first: 0, end: 60 });
    useLayoutEffect(() => {
        const update = () => {
            const top = -box.current.getBoundingClientRect().top;
            const next = visibleRows({ total: rows.length, rowHeight, top, height: innerHeight });
            setRange((old) => (old.first === next.first && old.end === next.end ? old : next));
            if (onEnd && next.end >= rows.length) onEnd();
        };
        update();
        addEventListener("scroll", update, { passive: true });
        addEventListener("resize", update);
        return () => {
            removeEventListener("scroll", update);
            removeEventListener("resize", update);
        };
    }, [rows.length, rowHeight, onEnd]);
    const width = widthOf(columns);
    const shown = rows.slice(range.first, range.end);
    const space = (
        n,
    ) => html`<tr class="table-space" aria-hidden="true"><td colspan=${columns.length}
        style=${{ height: n * rowHeight + "px" }}></td></tr>`;
    return html`<div class="table-box table-long" ref=${box} tabindex="0" role="region"
        aria-label=${caption}>
        <table class="table" aria-rowcount=${rows.length + 1}
            style=${width ? { minWidth: width + "px" } : undefined}>
        <caption class="sr-only">${caption}</caption>
        <thead><${HeadRow} columns=${columns} /></thead>
        <tbody>${range.first > 0 && space(range.first)}
            ${shown.map((row) => html`<${Row} key=${rowKey(row)} columns=${columns} row=${row} />`)}
            ${range.end < rows.length && space(rows.length - range.end)}</tbody>
    </table></div>`;
}
