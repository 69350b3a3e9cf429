// SPDX-License-Identifier: Apache-2.0
// Light, dark, or as the system has it (src/style/tokens.css).

const KEY = "belay-theme";
export const THEMES = ["system", "light", "dark"];

export function theme() {
    const kept = localStorage.getItem(KEY);
    return THEMES.includes(kept) ? kept : "system";
}

export function applyTheme() {
    document.documentElement.dataset.theme = theme();
}

export function setTheme(name) {
    localStorage.setItem(KEY, name);
    applyTheme();
    dispatchEvent(new Event("themechange")); // charts draw on a canvas
}
