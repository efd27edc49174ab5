// Git writes names with unusual characters in quotes, with escapes.

import { visible } from "../ui/visible";

const ESCAPES: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 };

/** The patch with plain names in the heads of its files; what would be hidden in them is visible. */
export function plainNames(patch: string): string {
  const lines = patch.split("\n");
  return lines
    .map((line, index) => {
      const isHead = /^(diff --git|rename from|rename to|copy from|copy to) .*"/.test(line);
      const isOld = line.startsWith('--- "') && (lines[index + 1] ?? "").startsWith("+++ ");
      const isNew = line.startsWith('+++ "') && (lines[index - 1] ?? "").startsWith("--- ");
      return isHead || isOld || isNew ? line.replace(/"((?:[^"\\]|\\.)*)"/g, (_, quoted: string) => visible(unquoted(quoted)).replace(/[\n\t]/g, "␤")) : line;
    })
    .join("\n");
}

function unquoted(text: string): string {
  const bytes: number[] = [];
  for (const [part] of text.matchAll(/\\[0-7]{3}|\\.|[^\\]+/gs)) {
    if (!part.startsWith("\\")) bytes.push(...new TextEncoder().encode(part));
    else if (part.length === 4) bytes.push(Number.parseInt(part.slice(1), 8));
    else bytes.push(ESCAPES[part[1] ?? ""] ?? 63);
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}
