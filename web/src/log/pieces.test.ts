import { describe, expect, it } from "vitest";
import { findBefore } from "./log-search";
import { PIECE_BYTES, PieceCache, type LogReader } from "./pieces";

const encoder = new TextEncoder();

function reader(text: string): LogReader {
  const bytes = encoder.encode(text);
  return async (from, limit) => {
    const part = bytes.slice(from, from + limit);
    return { from, to: from + part.length, size: bytes.length, bytes: part };
  };
}

async function allPieces(text: string): Promise<string[]> {
  const cache = new PieceCache(reader(text));
  const count = Math.ceil(encoder.encode(text).length / PIECE_BYTES);
  const pieces: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const { piece } = await cache.load(index, new AbortController().signal);
    if (piece.lines > 0) pieces.push(piece.text);
  }
  return pieces;
}

describe("the pieces of a log", () => {
  it("show every line once, whatever the lengths of the lines", async () => {
    for (const length of [1, 7, 80, 1000, 5000]) {
      const lines = Array.from({ length: Math.ceil(200_000 / length) }, (_, number) => `${number} ${"x".repeat(length)}`);
      const text = `${lines.join("\n")}\n`;
      expect((await allPieces(text)).join("\n").split("\n")).toEqual(lines);
    }
  });

  it("show a line that is longer than a piece in parts", async () => {
    const line = "y".repeat(3 * PIECE_BYTES + 17);
    const shown = (await allPieces(`before\n${line}\nafter\n`)).join("\n");
    expect(shown.replaceAll("\n", "")).toBe(`before${line}after`);
  });
});

describe("the search", () => {
  it("finds matches from the end to the start, also in a large log", async () => {
    const text = `needle\n${"hay\n".repeat(600_000)}NEEDLE\nend\n`;
    const read = reader(text);
    const size = encoder.encode(text).length;
    const signal = new AbortController().signal;
    const last = await findBefore(read, "needle", size, signal);
    expect(last).toBe(text.indexOf("NEEDLE"));
    expect(await findBefore(read, "needle", last ?? 0, signal)).toBe(0);
    expect(await findBefore(read, "needle", 0, signal)).toBeUndefined();
  });
});
