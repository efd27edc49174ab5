"""At the credential port: the credential is for one host, some methods and paths."""

BODY = '{"model":"m","messages":[]}'
RIGHT = "/models/v1/chat/completions"
PATHS = [
    "http://evil.example/models/v1/chat/completions",
    "https://models.example/v1/chat/completions",
    "//evil.example/models/v1/chat/completions",
    "/v1/chat/completions",
    "/models/v1/chat/completions/",
    "/models/v1/chat/completions/../../organization",
    "/models/v1/chat/completions/..%2f..%2forganization",
    "/models/v1/../v1/organization/api_keys",
    "/models/%2e%2e/v1/chat/completions",
    "/models/v1%2fchat%2fcompletions",
    "/models/v1//chat/completions",
    "/models/v1/chat/completions;x",
    "/models/v1/chat/completions%00",
    "/models/v1/chat/completions%0d%0aHost:%20evil.example",
    "/models/v1/chat\\completions",
    "/models/v1/files",
    "/models/v1/organization/api_keys",
    "/models/echo",
    "/models@evil.example/v1/chat/completions",
    "/modelsx/v1/chat/completions",
    "/models/v1/fine_tuning/jobs",
    "/github/owner/repo.git/git-receive-pack",
    "/../../etc/passwd",
]
HEADERS = [
    "X-Nothing: here",
    "Authorization: Bearer wrong",
    f"Authorization: Bearer {PHANTOM[:-1]}",
    f"Authorization: Bearer {PHANTOM}x",
    f"Authorization: Bearer {PHANTOM}\r\nAuthorization: Bearer mine",
    f"Authorization: Basic {base64.b64encode(PHANTOM.encode()).decode()}",
    f"Cookie: token={PHANTOM}",
    f"X-Goog-Api-Key: {PHANTOM}",
    f"Authorization: Bearer {PHANTOM}\r\nUpgrade: websocket\r\nConnection: Upgrade",
]


def credential(method, target, header=f"Authorization: Bearer {PHANTOM}", host="evil.example"):
    return tcp("127.0.0.1", 4141, (f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{header}\r\nConnection: close\r\n"
                                   f"Content-Length: {len(BODY)}\r\n\r\n{BODY}").encode())


each("credential for", lambda path: credential("POST", path), PATHS)
each("credential to", lambda method: credential(method, RIGHT),
     ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post", "CONNECT"])
each("credential with", lambda header: credential("POST", RIGHT, header), HEADERS)


@escape
def credential_by_the_proxy():
    return proxy(f"POST http://127.0.0.1:4141{RIGHT} HTTP/1.1\r\nHost: 127.0.0.1:4141\r\n\r\n".encode())


@escape
def credential_in_the_address():
    return credential("POST", f"{RIGHT}?key={PHANTOM}", "X-Nothing: here")


@escape
def credential_host_itself():
    return tls(dial("127.0.0.1", 443), "models.example", get("/v1/models", "models.example"))


@escape
def credential_host_by_its_name():
    return socket.gethostbyname("models.example")
