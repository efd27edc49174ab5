import { expect, it } from "vitest";
import { ago, bytes, count, duration, plural, repoName, usd } from "./format";

it("formats numbers as people read them", () => {
  expect([usd(0), usd(0.0042), usd(12.5)]).toEqual(["$0.00", "$0.0042", "$12.50"]);
  expect([count(999), count(12_345), count(2_000_000)]).toEqual(["999", "12.3k", "2M"]);
  expect([bytes(10), bytes(2048), bytes(5 << 20)]).toEqual(["10 B", "2 KiB", "5 MiB"]);
  expect([duration(0.25), duration(42), duration(60), duration(3725), duration(90_000)]).toEqual(["0.3 s", "42 s", "1 min", "1 h 2 min", "1 d 1 h"]);
  expect([plural(1, "file"), plural(2, "file")]).toEqual(["1 file", "2 files"]);
});

it("formats the time since an event", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect(ago("2026-01-01T23:59:58Z", now)).toBe("now");
  expect(ago("2026-01-01T23:58:00Z", now)).toBe("2 min ago");
  expect(ago("2025-12-31T00:00:00Z", now)).toBe("2 d ago");
});

it("shortens repositories to their names", () => {
  expect(repoName("/home/me/project/")).toBe("project");
  expect(repoName("https://github.com/owner/name")).toBe("owner/name");
});
