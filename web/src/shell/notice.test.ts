import { expect, it } from "vitest";
import { notice } from "./notice";

it("tells the user only what needs a decision or is an end", () => {
  const status = (status: string, reason?: unknown) => notice({ type: "status_changed", data: { status, reason } });
  expect(status("paused", { kind: "model", question: "Which port?" })).toBe("asks: Which port?");
  expect(status("paused", { kind: "broken" })).toBe("is paused and needs you");
  expect(status("paused", { kind: "person" })).toBeUndefined();
  expect(status("running")).toBeUndefined();
  expect(status("failed")).toBe("failed");
  expect(notice({ type: "iteration_started", data: {} })).toBeUndefined();
});
