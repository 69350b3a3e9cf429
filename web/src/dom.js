// SPDX-License-Identifier: Apache-2.0
// What a component needs: htm's templates over Preact, and Preact's hooks. Text in a template is
// always text; nothing of the console sets innerHTML.
import htm from "htm";
import { h } from "preact";

export { render } from "preact";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);

/** Joins the class names that are not false. */
export function classes(...names) {
    return names.filter(Boolean).join(" ");
}
