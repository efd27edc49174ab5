import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { Tooltip } from "radix-ui";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { startLive } from "./api/live";
import { RequestFailed } from "./api/problem";
import "./design/tokens.css";
import "./design/base.css";
import { createPages } from "./router";
import { startNotifications } from "./shell/notifications";
import { styleNonce } from "./shell/nonce";
import { applyTheme } from "./shell/theme";

applyTheme();

if (styleNonce !== "") setNonce(styleNonce);

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: true,
      // A refused request would be refused again.
      retry: (failures, error) => failures < 2 && !(error instanceof RequestFailed && error.problem.status >= 400 && error.problem.status < 500),
    },
  },
});
startLive(client);
startNotifications(client);

const root = document.getElementById("root");
if (!root) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <Tooltip.Provider>
        <RouterProvider router={createPages(client)} />
      </Tooltip.Provider>
    </QueryClientProvider>
  </StrictMode>,
);
