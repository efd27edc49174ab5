import { expect, it } from "vitest";
import { plainNames } from "./quoted-names";

it("shows quoted names as they are, with their hidden characters visible", () => {
  const patch = ['diff --git "a/a\\342\\200\\256t\\"x" "b/a\\342\\200\\256t\\"x"', "new file mode 100644", "--- /dev/null", '+++ "b/a\\342\\200\\256t\\"x"', "@@ -0,0 +1 @@", '+++ "b/\\342"'];
  const shown = plainNames(patch.join("\n")).split("\n");
  expect(shown[0]).toBe('diff --git a/a[U+202E]t"x b/a[U+202E]t"x');
  expect(shown[3]).toBe('+++ b/a[U+202E]t"x');
  expect(shown[5]).toBe('+++ "b/\\342"');
});
