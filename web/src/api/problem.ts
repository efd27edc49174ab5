import { visibleTexts } from "../ui/visible";

/** Why the server did not answer a request as asked (RFC 9457). */
export type ProblemDetails = {
  type: string;
  title: string;
  status: number;
  detail: string;
  hint?: string;
  allowed?: string[];
  [key: string]: unknown;
};

export class RequestFailed extends Error {
  constructor(readonly problem: ProblemDetails) {
    super(problem.hint ? `${problem.detail} — ${problem.hint}` : problem.detail);
    this.name = "RequestFailed";
  }
}

/** The error of a response, also of one that no server of ours wrote. */
export async function failure(response: Response): Promise<RequestFailed> {
  const type = response.headers.get("content-type") ?? "";
  if (type.includes("json")) {
    try {
      const body: unknown = await response.json();
      if (isProblem(body)) return new RequestFailed(visibleTexts(body));
    } catch (error) {
      console.debug("a response is not JSON", error);
    }
  }
  return new RequestFailed({
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    detail: `the server responded with ${response.status} ${response.statusText}`,
  });
}

/** The error of a request that got no response. */
export function unreachable(error: unknown): RequestFailed {
  return new RequestFailed({
    type: "about:blank",
    title: "No response",
    status: 0,
    detail: "the server does not respond",
    hint: error instanceof Error ? error.message : "check that `ralph serve` is running",
  });
}

function isProblem(body: unknown): body is ProblemDetails {
  return typeof body === "object" && body !== null && "detail" in body && "status" in body;
}
