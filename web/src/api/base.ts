// The address of the server, relative to the page, so that the dashboard works below a path prefix.

export const base = new URL(document.baseURI);

/** Returns the address of a path of the interface, such as `runs/…`. */
export function apiUrl(path: string): string {
  return new URL(`api/v1/${path.replace(/^\//, "")}`, base).toString();
}

/** Returns the address of a stream of the interface. */
export function streamUrl(path: string): string {
  const url = new URL(`api/v1/${path}`, base);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.toString();
}

/** The path below which the pages are. */
export const basePath = base.pathname.replace(/\/+$/, "");
