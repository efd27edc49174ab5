import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { basePath } from "./api/base";
import { Home } from "./pages/home/home";
import { RunPage } from "./pages/run/run-page";
import { Layout } from "./shell/layout";
import { NotFound } from "./shell/not-found";

const root = createRootRouteWithContext<{ client: QueryClient }>()({ component: Layout, notFoundComponent: NotFound });

const home = createRoute({ getParentRoute: () => root, path: "/", component: Home });
const runSearch = (search: Record<string, unknown>): { iteration?: number } => {
  const iteration = Number(search.iteration);
  return Number.isInteger(iteration) && iteration > 0 ? { iteration } : {};
};
const run = createRoute({ getParentRoute: () => root, path: "/runs/$run", component: RunPage, validateSearch: runSearch });
const runTab = createRoute({ getParentRoute: () => root, path: "/runs/$run/$tab", component: RunPage, validateSearch: runSearch });
const newRun = createRoute({ getParentRoute: () => root, path: "/new", component: lazyRouteComponent(() => import("./pages/new/new-run")) });
const cost = createRoute({ getParentRoute: () => root, path: "/cost", component: lazyRouteComponent(() => import("./pages/cost/cost")) });
const machine = createRoute({ getParentRoute: () => root, path: "/machine", component: lazyRouteComponent(() => import("./pages/machine/machine")) });
const machineTab = createRoute({
  getParentRoute: () => root,
  path: "/machine/$tab",
  component: lazyRouteComponent(() => import("./pages/machine/machine")),
});

const tree = root.addChildren([home, run, runTab, newRun, cost, machine, machineTab]);

/** The pages of the dashboard, below the path of the server. */
export function createPages(client: QueryClient) {
  return createRouter({ routeTree: tree, basepath: basePath || "/", context: { client }, defaultPreload: "intent" });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createPages>;
  }
}
