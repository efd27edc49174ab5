import { expect, it } from "vitest";
import { guidanceEntries } from "./guidance-text";

it("finds the entries of a file and not its example", () => {
  const text = [
    "# Guardrails",
    "### sign: <short name>",
    "- trigger: <when>",
    "",
    "---",
    "",
    "### sign: keep diffs small",
    "- trigger: when planning",
    "- added_after: iteration 0",
    "",
    "### sign: one first",
    "- instruction: write one",
    "  and a second line",
    "",
    "## Other",
    "- text: no entry",
  ].join("\n");
  expect(guidanceEntries(text)).toEqual([
    {
      name: "keep diffs small",
      facts: [
        ["trigger", "when planning"],
        ["added after", "iteration 0"],
      ],
    },
    { name: "one first", facts: [["instruction", "write one\n  and a second line"]] },
  ]);
  expect(guidanceEntries("")).toEqual([]);
});
