// The entries of guardrails.md and notes.md: `### sign: NAME` or `### note: KIND`, then a list of terms with values.

export type GuidanceEntry = { name: string; facts: [string, string][] };

/** The entries of a file in its order. The file's own example, with `<…>` as values, is left out. */
export function guidanceEntries(text: string): GuidanceEntry[] {
  const entries: GuidanceEntry[] = [];
  for (const part of text.split(/^### (?:sign|note): /m).slice(1)) {
    const [name = "", ...lines] = part.split("\n");
    if (name.startsWith("<")) continue;
    const facts: [string, string][] = [];
    for (const line of lines) {
      if (/^(#|---)/.test(line)) break;
      const [, term, value] = /^- ([a-z_]+): (.*)$/.exec(line) ?? [];
      const last = facts.at(-1);
      if (term !== undefined && value !== undefined) facts.push([term.replaceAll("_", " "), value]);
      else if (last && line.trim() !== "") last[1] += `\n${line}`;
    }
    entries.push({ name, facts });
  }
  return entries;
}
