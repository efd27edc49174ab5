// Data and commands that concern the machine and not a single run.

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body, shownBody } from "./client";
import { keys } from "./queries";
import type { components } from "./schema";

type Schemas = components["schemas"];

export function useFleet() {
  return useQuery({
    queryKey: [...keys.runs(), "fleet"],
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/fleet", { signal })),
  });
}

export function useCost(by: Schemas["CostGrouping"], since: string) {
  return useQuery({
    queryKey: keys.machine("cost", by, since),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/cost", { params: { query: { by, since: since || undefined } }, signal })),
    placeholderData: keepPreviousData,
  });
}

export function useRepositories() {
  return useQuery({
    queryKey: keys.machine("repositories"),
    queryFn: ({ signal }) => body(api.GET("/api/v1/repositories", { signal })),
  });
}

/** What the server finds in a directory: language, test command, hosts that the lockfiles need. */
export function useInspection(directory: string) {
  return useQuery({
    queryKey: keys.machine("inspection", directory),
    enabled: directory.startsWith("/"),
    retry: false,
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/repositories/inspection", { params: { query: { directory } }, signal })),
  });
}

export function useRunChoices(directory: string) {
  return useQuery({
    queryKey: keys.machine("choices", directory),
    queryFn: ({ signal }) => body(api.GET("/api/v1/templates/choices", { params: { query: { directory: directory || undefined } }, signal })),
    placeholderData: keepPreviousData,
  });
}

export function useNewTaskText() {
  return useMutation({
    mutationFn: (request: Schemas["NewTaskRequest"]) => body(api.POST("/api/v1/templates/task", { body: request })),
  });
}

export function usePlanPreview() {
  return useMutation({
    mutationFn: (run: Schemas["NewRun"]) => body(api.POST("/api/v1/runs", { body: { ...run, dry_run: true } })) as Promise<Schemas["StartPreview"]>,
  });
}

export function useStartRun() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ run, key }: { run: Schemas["NewRun"]; key: string }) =>
      body(api.POST("/api/v1/runs", { params: { header: { "Idempotency-Key": key } }, body: run })) as Promise<Schemas["StartedRun"]>,
    onSuccess: () => client.invalidateQueries({ queryKey: keys.runs() }),
  });
}

export function useAgents() {
  return useQuery({ queryKey: keys.machine("agents"), queryFn: ({ signal }) => body(api.GET("/api/v1/agents", { signal })) });
}

export function useTokens() {
  return useQuery({ queryKey: keys.machine("tokens"), queryFn: ({ signal }) => body(api.GET("/api/v1/tokens", { signal })) });
}

export function useCheckToken() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (agent: string) => body(api.POST("/api/v1/tokens/{agent}/check", { params: { path: { agent } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.machine("tokens") }),
  });
}

export function useModels() {
  return useQuery({ queryKey: keys.machine("models"), queryFn: ({ signal }) => body(api.GET("/api/v1/models", { signal })) });
}

export function useTestModel() {
  return useMutation({ mutationFn: (model: string) => body(api.POST("/api/v1/models/test", { body: { model } })) });
}

export function useImages() {
  return useQuery({ queryKey: keys.machine("images"), queryFn: ({ signal }) => body(api.GET("/api/v1/images", { signal })) });
}

export function useSandboxes() {
  return useQuery({ queryKey: keys.machine("sandboxes"), queryFn: ({ signal }) => shownBody(api.GET("/api/v1/sandboxes", { signal })) });
}

export function usePruneSandboxes() {
  return useOperation(() => body(api.POST("/api/v1/sandboxes/prune", { body: {} })));
}

export function useDisk() {
  return useQuery({ queryKey: keys.machine("disk"), queryFn: ({ signal }) => shownBody(api.GET("/api/v1/disk", { signal })) });
}

export function useCleanDisk() {
  return useOperation((setup: boolean) => body(api.POST("/api/v1/disk/gc", { body: { setup } })));
}

export function useConfig(directory: string) {
  return useQuery({
    queryKey: keys.machine("config", directory),
    queryFn: ({ signal }) => body(api.GET("/api/v1/config", { params: { query: { directory: directory || undefined } }, signal })),
    placeholderData: keepPreviousData,
  });
}

export function useApprove(directory: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (proposals: Schemas["ApprovedValue"][]) => body(api.POST("/api/v1/config/approvals", { body: { directory, proposals } })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.machine("config", directory) }),
  });
}

export function useScmCheck() {
  return useMutation({ mutationFn: (repo: string) => body(api.POST("/api/v1/scm/check", { body: { repo } })) });
}

export function useIssues(repo: string) {
  return useQuery({
    queryKey: keys.machine("issues", repo),
    enabled: repo !== "",
    retry: false,
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/issues", { params: { query: { repo } }, signal })),
  });
}

export function usePoller() {
  return useQuery({
    queryKey: keys.machine("poller"),
    queryFn: ({ signal }) => body(api.GET("/api/v1/issues/poller", { signal })),
    refetchInterval: 5_000,
  });
}

export function useStartPoller() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (repo: string) => body(api.POST("/api/v1/issues/poller/start", { body: { repo } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.machine("poller") }),
  });
}

export function useStopPoller() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => body(api.POST("/api/v1/issues/poller/stop", {})),
    onSettled: () => client.invalidateQueries({ queryKey: keys.machine("poller") }),
  });
}

export function useSelftest() {
  return useOperation((provider: Schemas["TestedProvider"]) => body(api.POST("/api/v1/selftest", { body: { type: provider } })));
}

/** The operations of the server, while one is in progress. */
export function useOperations() {
  return useQuery({
    queryKey: keys.machine("operations"),
    queryFn: ({ signal }) => shownBody(api.GET("/api/v1/operations", { signal })),
    refetchInterval: (query) => (query.state.data?.operations.some((operation) => operation.state === "running") ? 1_000 : false),
  });
}

function useOperation<Input, Output>(start: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: start,
    onSettled: () => client.invalidateQueries({ queryKey: keys.machine() }),
  });
}

export function useInspectOrphan(run: string) {
  return useMutation({ mutationFn: () => body(api.POST("/api/v1/orphans/{run}/inspect", { params: { path: { run } }, body: {} })) });
}

export function useAdopt(run: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (confirmation: string) => body(api.POST("/api/v1/orphans/{run}/adopt", { params: { path: { run } }, body: { confirmation, choice: {} } })),
    onSettled: () => client.invalidateQueries(),
  });
}

export function useRemoveOrphan(run: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => body(api.DELETE("/api/v1/orphans/{run}", { params: { path: { run } } })),
    onSettled: () => client.invalidateQueries(),
  });
}

export function usePreflight() {
  return useOperation((request: Schemas["PreflightRequest"]) => body(api.POST("/api/v1/preflight", { body: request })));
}

export function useBuildImage() {
  return useOperation(() => body(api.POST("/api/v1/images/build", { body: {} })));
}

export function usePullImage() {
  return useOperation(() => body(api.POST("/api/v1/images/pull", { body: {} })));
}

export function useCancelOperation() {
  return useOperation((id: string) => body(api.DELETE("/api/v1/operations/{id}", { params: { path: { id } } })));
}
