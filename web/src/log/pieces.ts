// A log file of any size, read in pieces of bytes. Each piece shows the lines that start in it.

import { visible } from "../ui/visible";

export const PIECE_BYTES = 16 * 1024;
/** Read beyond a piece, to find the end of its last line. */
const TAIL_BYTES = 16 * 1024;
/** The number of pieces that are remembered. */
const MOST_PIECES = 256;

export type LogPart = { from: number; to: number; size: number; bytes: Uint8Array };
export type LogReader = (from: number, limit: number, signal: AbortSignal) => Promise<LogPart>;

export type Piece = { text: string; lines: number; complete: boolean };

const NEWLINE = 10;
const decoder = new TextDecoder("utf-8");

/**
 * Returns the text of a piece: from the first line that starts in it to the end of the last line that does.
 * A line that is longer than a piece continues in the next one.
 */
export function pieceText(part: LogPart, index: number): Piece {
  const start = index * PIECE_BYTES;
  const { bytes } = part;
  let from = 0;
  if (start > 0) {
    // `part` starts one byte before the piece, so that a line that starts with the piece is seen.
    const newline = bytes.indexOf(NEWLINE);
    // The piece before shows the end of a line only if it is near.
    from = newline >= 0 && newline < TAIL_BYTES ? newline + 1 : 1;
  }
  const end = start + PIECE_BYTES - part.from;
  let to = Math.min(end, bytes.length);
  if (bytes.length > end) {
    const newline = bytes.indexOf(NEWLINE, end - 1);
    to = newline >= 0 && newline < end - 1 + TAIL_BYTES ? newline + 1 : end;
  }
  const text = decoder.decode(bytes.subarray(from, Math.max(from, to))).replace(/\n$/, "");
  const lines = text === "" && to <= from ? 0 : text.split("\n").length;
  return { text: visible(text), lines, complete: part.size >= start + PIECE_BYTES + TAIL_BYTES };
}

/** The pieces of a log that were read, the least recently used ones first. */
export class PieceCache {
  private readonly pieces = new Map<number, Piece>();
  private lines = 0;
  private counted = 0;

  constructor(private readonly read: LogReader) {}

  get(index: number): Piece | undefined {
    const piece = this.pieces.get(index);
    if (piece) {
      this.pieces.delete(index);
      this.pieces.set(index, piece);
    }
    return piece;
  }

  /** The usual number of lines of a piece, for pieces that were not read. */
  usualLines(): number {
    return this.counted === 0 ? 160 : Math.max(1, Math.round(this.lines / this.counted));
  }

  async load(index: number, signal: AbortSignal): Promise<{ piece: Piece; size: number }> {
    const start = index * PIECE_BYTES;
    const before = start > 0 ? 1 : 0;
    const part = await this.read(start - before, PIECE_BYTES + before + TAIL_BYTES, signal);
    const piece = pieceText({ ...part, bytes: part.bytes }, index);
    if (!this.pieces.has(index) && piece.complete) {
      this.lines += piece.lines;
      this.counted += 1;
    }
    this.pieces.set(index, piece);
    if (this.pieces.size > MOST_PIECES) {
      const oldest = this.pieces.keys().next();
      if (!oldest.done) this.pieces.delete(oldest.value);
    }
    return { piece, size: part.size };
  }

  forget(): void {
    this.pieces.clear();
    this.lines = 0;
    this.counted = 0;
  }
}
