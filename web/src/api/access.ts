// Who may use the server: the session of this browser and the links that share it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body } from "./client";
import { keys } from "./queries";

export function useSession() {
  return useQuery({ queryKey: keys.machine("session"), queryFn: ({ signal }) => body(api.GET("/api/v1/session", { signal })) });
}

export function useSignOut() {
  return useMutation({ mutationFn: () => api.DELETE("/api/v1/session") });
}

export function useShares() {
  return useQuery({ queryKey: keys.machine("shares"), queryFn: ({ signal }) => body(api.GET("/api/v1/shares", { signal })) });
}

export function useNewShare() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (minutes: number) => body(api.POST("/api/v1/shares", { body: { minutes } })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.machine("shares") }),
  });
}

export function useRevokeShare() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => api.DELETE("/api/v1/shares/{id}", { params: { path: { id } } }),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.machine("shares") }),
  });
}
