import { expect, it } from "vitest";
import { visible, visibleTexts, withoutColours } from "./visible";

it("shows characters that change the display", () => {
  expect(visible("a\u0007b\u202ec\u0000d\r")).toBe("a\u2407b[U+202E]c\u2400d\u240d");
  expect(visible("\u200bz\ufeff\u{e0041}")).toBe("[U+200B]z[U+FEFF][U+E0041]");
  expect(visible("tab\tand\nline, \u{1f469}\u200d\u{1f680} stay")).toBe("tab\tand\nline, \u{1f469}\u200d\u{1f680} stay");
});

it("shows them in all texts of a value", () => {
  expect(visibleTexts({ a: ["x\u202e", 1, null], b: { c: "\u0000" }, d: true })).toEqual({ a: ["x[U+202E]", 1, null], b: { c: "\u2400" }, d: true });
});

it("removes colours only", () => {
  expect(withoutColours("\u001b[1;31mred\u001b[0m text")).toBe("red text");
});
