// The data that the pages show. The stream of events marks it as changed; see `live.ts`.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { apiUrl } from "./base";
import { api, body, shownBody } from "./client";
import { failure } from "./problem";
import type { ListedRun } from "./types";

/** The names of the data. Everything about a run starts with its id, so that an event refreshes all of it. */
export const keys = {
  runs: () => ["runs"] as const,
  run: (run: string) => ["run", run] as const,
  part: (run: string, ...part: unknown[]) => ["run", run, ...part] as const,
  machine: (...part: unknown[]) => ["machine", ...part] as const,
};

type RunFilter = { text?: string | undefined; repo?: string | undefined; status?: string | undefined; limit?: number };

export function useRuns(filter: RunFilter) {
  return useQuery({
    queryKey: [...keys.runs(), filter],
    queryFn: async ({ signal }) => {
      const list = await shownBody(api.GET("/api/v1/runs", { params: { query: filter }, signal }));
      // A run whose journal cannot be read has a summary only.
      return { ...list, runs: list.runs as ListedRun[] };
    },
    placeholderData: keepPreviousData,
  });
}

export function useRun(id: string) {
  return useQuery({
    queryKey: keys.run(id),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}", { params: { path: { id } }, signal })),
  });
}

export function useAttention(id: string) {
  return useQuery({
    queryKey: keys.part(id, "attention"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/attention", { params: { path: { id } }, signal })),
  });
}

export function useIterations(id: string) {
  return useQuery({
    queryKey: keys.part(id, "iterations"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/iterations", { params: { path: { id } }, signal })),
    placeholderData: keepPreviousData,
  });
}

export function useActions(id: string, iteration: number) {
  return useQuery({
    queryKey: keys.part(id, "actions", iteration),
    queryFn: ({ signal }) => body(api.GET("/api/v1/runs/{id}/actions", { params: { path: { id }, query: { iteration, limit: 500 } }, signal })),
  });
}

export function useTranscript(id: string, number: number) {
  return useQuery({
    queryKey: keys.part(id, "transcript", number),
    queryFn: ({ signal }) => body(api.GET("/api/v1/runs/{id}/iterations/{number}/transcript", { params: { path: { id, number } }, signal })),
  });
}

/** The page shows the end of a large file. */
const ARTIFACT_BYTES = 256 * 1024;

export function useArtifact(id: string, number: number, name: string) {
  return useQuery({
    queryKey: keys.part(id, "artifact", number, name),
    queryFn: async ({ signal }) => {
      const url = apiUrl(`runs/${encodeURIComponent(id)}/iterations/${number}/${name}`);
      const response = await fetch(url, { signal, headers: { range: `bytes=-${ARTIFACT_BYTES}` } });
      if (response.status === 404) return { text: "", size: 0 };
      if (!response.ok) throw await failure(response);
      const size = Number(response.headers.get("content-range")?.split("/")[1] ?? response.headers.get("content-length") ?? 0);
      return { text: await response.text(), size };
    },
  });
}

type DiffChoice = { of?: "base" | "workspace" | "uncommitted"; iteration?: number };

export function useDiff(id: string, choice: DiffChoice) {
  return useQuery({
    queryKey: keys.part(id, "diff", choice),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/diff", { params: { path: { id }, query: choice }, signal })),
    placeholderData: keepPreviousData,
  });
}

export function useEvidence(id: string) {
  return useQuery({
    queryKey: keys.part(id, "evidence"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/evidence", { params: { path: { id } }, signal })),
  });
}

export function useAudit(id: string, enabled: boolean) {
  return useQuery({
    // An audit reads all files of the run, so only the user starts one.
    queryKey: ["audit", id],
    enabled,
    staleTime: Infinity,
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/audit", { params: { path: { id } }, signal })),
  });
}

export function usePull(id: string, enabled: boolean) {
  return useQuery({
    queryKey: keys.part(id, "pull"),
    enabled,
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/pull", { params: { path: { id } }, signal })),
  });
}

export function useTask(id: string) {
  return useQuery({
    queryKey: keys.part(id, "task"),
    queryFn: async ({ signal }) => {
      const { data, response } = await api.GET("/api/v1/runs/{id}/task", { params: { path: { id } }, signal });
      return { ...data!, version: response.headers.get("etag") ?? "" };
    },
  });
}

export function useGuardrails(id: string) {
  return useQuery({
    queryKey: keys.part(id, "guardrails"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/guardrails", { params: { path: { id } }, signal })),
  });
}

export function useNotes(id: string) {
  return useQuery({
    queryKey: keys.part(id, "notes"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/notes", { params: { path: { id } }, signal })),
  });
}

export function useMessages(id: string) {
  return useQuery({
    queryKey: keys.part(id, "messages"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/messages", { params: { path: { id } }, signal })),
  });
}

export function useDiagnostics(id: string) {
  return useQuery({
    queryKey: keys.part(id, "diagnostics"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/diagnostics", { params: { path: { id } }, signal })),
  });
}

export function useDebugCommands(id: string) {
  return useQuery({
    queryKey: keys.part(id, "debug"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/debug", { params: { path: { id } }, signal })),
  });
}

export function useSandbox(id: string) {
  return useQuery({
    queryKey: keys.part(id, "sandbox"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/sandbox", { params: { path: { id } }, signal })),
  });
}

export function useEgress(id: string) {
  return useQuery({
    queryKey: keys.part(id, "egress"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/runs/{id}/egress", { params: { path: { id } }, signal })),
  });
}

export function useTree(id: string) {
  return useQuery({
    queryKey: keys.part(id, "tree"),
    queryFn: ({ signal }) => body(api.GET("/api/v1/runs/{id}/tree", { params: { path: { id } }, signal })),
    placeholderData: keepPreviousData,
  });
}

export function useFile(id: string, path: string) {
  return useQuery({
    queryKey: keys.part(id, "file", path),
    queryFn: async ({ signal }) => {
      const { data, response } = await api.GET("/api/v1/runs/{id}/files/{path}", { params: { path: { id, path } }, signal });
      return { ...data!, version: response.headers.get("etag") ?? "" };
    },
  });
}

export function useProfiles() {
  return useQuery({
    queryKey: keys.machine("profiles"),
    queryFn: ({ signal }) => body(api.GET("/api/v1/profiles", { signal })),
  });
}
