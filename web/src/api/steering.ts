// The commands of the user. Each refreshes what it may have changed.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Finding } from "../editor/task-editor";
import { api, body } from "./client";
import { ignoreRun } from "./live";
import { keys } from "./queries";
import type { components } from "./schema";

type Schemas = components["schemas"];

/** A command of a run: afterwards everything about the run is loaded again. */
function useRunMutation<Input, Output>(run: string, send: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSettled: () => {
      void client.invalidateQueries({ queryKey: keys.run(run) });
      void client.invalidateQueries({ queryKey: keys.runs() });
    },
  });
}

/** A request that adds something: a repeat after a lost response adds nothing. */
const once = () => ({ "Idempotency-Key": crypto.randomUUID() });

export function useCommand(id: string) {
  const params = { path: { id } };
  return useRunMutation(id, async (name: "pause" | "resume" | "rotate" | "stop") => {
    switch (name) {
      case "pause":
        return body(api.POST("/api/v1/runs/{id}/pause", { params }));
      case "resume":
        return body(api.POST("/api/v1/runs/{id}/resume", { params }));
      case "rotate":
        return body(api.POST("/api/v1/runs/{id}/rotate", { params }));
      case "stop":
        return body(api.POST("/api/v1/runs/{id}/stop", { params }));
    }
  });
}

export function useAnswer(id: string) {
  return useRunMutation(id, (text: string) => body(api.POST("/api/v1/runs/{id}/answer", { params: { path: { id }, header: once() }, body: { text } })));
}

export function useContinue(id: string) {
  return useRunMutation(id, (budgets: Schemas["NewBudgets"]) => body(api.POST("/api/v1/runs/{id}/continue", { params: { path: { id } }, body: budgets })));
}

export function useChangeMode(id: string) {
  return useRunMutation(id, (mode: Schemas["RunMode"]) => body(api.PUT("/api/v1/runs/{id}/mode", { params: { path: { id } }, body: { mode } })));
}

export function useChangeProfile(id: string) {
  return useRunMutation(id, (profile: string) => body(api.PUT("/api/v1/runs/{id}/profile", { params: { path: { id } }, body: { profile } })));
}

export function useRemoveRun(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (force: boolean) => body(api.DELETE("/api/v1/runs/{id}", { params: { path: { id }, query: { force } } })),
    // The events of the removal must not load what is gone while its page is still open.
    onMutate: () => ignoreRun(id, true),
    onError: () => ignoreRun(id, false),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.runs() }),
  });
}

export function useChangeTask(id: string) {
  return useRunMutation(id, ({ text, version }: { text: string; version: string }) =>
    body(api.PUT("/api/v1/runs/{id}/task", { params: { path: { id }, header: { "If-Match": version } }, body: { text } })),
  );
}

export function useSaveFile(id: string, path: string) {
  return useRunMutation(id, ({ text, version }: { text: string; version: string }) =>
    body(api.PUT("/api/v1/runs/{id}/files/{path}", { params: { path: { id, path }, header: { "If-Match": version } }, body: { text } })),
  );
}

export function useAddGuardrail(id: string) {
  return useRunMutation(id, (guardrail: Schemas["NewGuardrail"]) =>
    body(api.POST("/api/v1/runs/{id}/guardrails", { params: { path: { id }, header: once() }, body: guardrail })),
  );
}

export function useAddNote(id: string) {
  return useRunMutation(id, (note: Schemas["NewNote"]) =>
    body(api.POST("/api/v1/runs/{id}/notes", { params: { path: { id }, header: once() }, body: note })),
  );
}

export function useSendMessage(id: string) {
  return useRunMutation(id, (text: string) =>
    body(api.POST("/api/v1/runs/{id}/messages", { params: { path: { id }, header: once() }, body: { text } })),
  );
}

export function useDiagnose(id: string) {
  return useRunMutation(id, () => body(api.POST("/api/v1/runs/{id}/diagnostics", { params: { path: { id } } })));
}

export function useApplyDiagnosis(id: string) {
  return useRunMutation(id, () => body(api.POST("/api/v1/runs/{id}/diagnostics/apply", { params: { path: { id } } })));
}

export function useDebug(id: string) {
  return useRunMutation(id, (command_id: string) => body(api.POST("/api/v1/runs/{id}/debug/{command_id}", { params: { path: { id, command_id } } })));
}

export function useAllowHost(id: string) {
  return useRunMutation(id, (allowed: Schemas["NewAllowedHost"]) =>
    body(api.POST("/api/v1/runs/{id}/egress", { params: { path: { id } }, body: allowed })),
  );
}

export function useMerge(id: string) {
  return useRunMutation(id, (unverified: boolean) => body(api.POST("/api/v1/runs/{id}/merge", { params: { path: { id } }, body: { unverified } })));
}

export function useDiscard(id: string) {
  return useRunMutation(id, () => body(api.POST("/api/v1/runs/{id}/discard", { params: { path: { id } } })));
}

/** The findings of the linter about a text. */
export async function lintTask(text: string): Promise<Finding[]> {
  const result = await body(api.POST("/api/v1/lint", { body: { text } }));
  return result.findings.map((finding) => ({
    severity: finding.severity === "error" ? "error" : "warning",
    code: finding.code,
    message: finding.message,
    fix: finding.fix,
    line: finding.line ?? undefined,
    column: finding.column ?? undefined,
  }));
}
