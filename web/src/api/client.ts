import createClient, { type Middleware } from "openapi-fetch";
import { base } from "./base";
import { failure, unreachable } from "./problem";
import { visibleTexts } from "../ui/visible";
import type { paths } from "./schema";

/** Says that the request comes from this page: another origin cannot send the header. */
const fromThisPage: Middleware = {
  onRequest({ request }) {
    if (request.method !== "GET") request.headers.set("X-Ralph-Csrf", "1");
    return request;
  },
  async onResponse({ response }) {
    if (!response.ok) throw await failure(response.clone());
    return response;
  },
  onError({ error }) {
    return unreachable(error);
  },
};

/** The interface of the server. A call throws `RequestFailed` unless it succeeds. */
export const api = createClient<paths>({ baseUrl: base.pathname.replace(/\/+$/, ""), credentials: "same-origin" });
api.use(fromThisPage);

/** The body of a successful response. */
export async function body<T>(call: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const { data, error } = await call;
  if (error !== undefined) throw error instanceof Error ? error : new Error(String(error));
  return data as T;
}

/** The body of a response whose texts are only shown: nothing in them is hidden. */
export async function shownBody<T>(call: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  return visibleTexts(await body(call));
}
