// SPDX-License-Identifier: Apache-2.0
// Tables as files for spreadsheets (RFC 4180).

/** A cell. Text that a spreadsheet would run as a formula gets a quotation mark in front, so that
 * a job's name cannot do anything there. Numbers stay numbers. */
export function csvCell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[\s]*[=+\-@\t\r|]/.test(value) ? "'" + value : String(value);
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}

/** @param rows arrays of cells, the names of the columns first */
export function csvText(rows) {
    return rows.map((row) => row.map(csvCell).join(",") + "\r\n").join("");
}

/** Hands the browser a file. */
export function download(name, text, type = "text/csv;charset=utf-8") {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = document.createElement("a");
    Object.assign(link, { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
}
