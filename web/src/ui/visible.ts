// Characters that change how a text is displayed, or that nobody sees, become visible. Models, commands and
// repositories choose most texts of the pages.

/** Controls except line feed and tab, marks of direction, invisible spaces and tags. Joiners stay: emoji need them. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Makes hidden characters visible: controls by their pictures, others by their numbers. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
  });
}

/** Makes hidden characters visible in all texts of a value. */
export function visibleTexts<T>(value: T): T {
  return mapped(value) as T;
}

function mapped(value: unknown): unknown {
  if (typeof value === "string") return visible(value);
  if (Array.isArray(value)) return value.map(mapped);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, mapped(part)]));
}

/** Removes colours of terminals. */
export function withoutColours(text: string): string {
  return text.replace(/\u001b\[[0-9;]*m/g, "");
}
