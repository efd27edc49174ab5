// A reverse proxy that serves a server below a path, as the previews of hosted sandboxes do.

import { createServer, request } from "node:http";
import { connect } from "node:net";

/**
 * Starts a proxy that passes the addresses below `prefix` on, without the prefix. `target` is set when the server
 * listens; nothing else is answered.
 */
export async function startProxy(prefix) {
  const proxy = { url: "", target: undefined, foreign: [], close: undefined };
  const inner = (path) => (path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined);
  const headers = (incoming) => ({ ...incoming.headers, "x-forwarded-for": incoming.socket.remoteAddress });
  const server = createServer((incoming, outgoing) => {
    const path = inner(incoming.url);
    if (incoming.url === prefix) {
      outgoing.writeHead(301, { location: `${prefix}/` }).end();
      return;
    }
    if (path === undefined) {
      proxy.foreign.push(incoming.url);
      outgoing.writeHead(404).end();
      return;
    }
    const { hostname, port } = new URL(proxy.target);
    const passed = request({ hostname, port, path, method: incoming.method, headers: headers(incoming) }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    incoming.pipe(passed);
  });
  server.on("upgrade", (incoming, socket, head) => {
    const { hostname, port } = new URL(proxy.target);
    const upstream = connect(Number(port), hostname, () => {
      const lines = Object.entries(headers(incoming)).map(([name, value]) => `${name}: ${value}\r\n`);
      upstream.write(`${incoming.method} ${inner(incoming.url) ?? "/"} HTTP/1.1\r\n${lines.join("")}\r\n`);
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    upstream.on("error", () => socket.destroy());
    socket.on("error", () => upstream.destroy());
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  proxy.url = `http://127.0.0.1:${server.address().port}${prefix}`;
  proxy.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return proxy;
}

/** A port that nothing listens on. */
export async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}
