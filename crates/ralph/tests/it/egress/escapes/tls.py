"""In TLS: domain fronting, an allowed host in the handshake and another in the request."""

FRONT, BEHIND = "cdn.example", "evil-cdn.example"
HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


def frames(authority):
    """Returns an HTTP/2 request: the preface, settings and headers."""
    def literal(index, value):
        return bytes([index, len(value)]) + value.encode()
    head = b"\x82\x87\x84" + literal(0x01, authority)
    return HTTP_2 + struct.pack("!I", len(head))[1:] + b"\x01\x05\0\0\0\x01" + head


def behind(data, protocols=()):
    """Sends data to the front host, in TLS for that host."""
    return tls(tunnel(f"{FRONT}:443"), FRONT, data, protocols)


def without_a_tunnel(data):
    address = socket.gethostbyname(FRONT)
    return tls(dial(address, 443), FRONT, data)


REQUESTS = {
    "another host": get("/", BEHIND),
    "a whole address": get(f"https://{BEHIND}/", FRONT),
    "both": get(f"https://{BEHIND}/", BEHIND),
    "a host with a port": get("/", f"{BEHIND}:443"),
    "a host in capitals": get("/", BEHIND.upper() + "."),
    "two hosts": f"GET / HTTP/1.1\r\nHost: {FRONT}\r\nHost: {BEHIND}\r\n\r\n".encode(),
    "a second request": f"GET / HTTP/1.1\r\nHost: {FRONT}\r\n\r\n".encode() + get("/", BEHIND),
    "no host": f"GET https://{BEHIND}/ HTTP/1.0\r\n\r\n".encode(),
    "a web socket": get("/", BEHIND, "Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"),
    "a tunnel": f"CONNECT {BEHIND}:443 HTTP/1.1\r\nHost: {BEHIND}:443\r\n\r\n".encode(),
    "a smuggled request": (f"POST / HTTP/1.1\r\nHost: {FRONT}\r\nContent-Length: 4\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n").encode() + get("/", BEHIND),
    "a newer protocol": frames(BEHIND),
}
each("front and", lambda title: behind(REQUESTS[title]), REQUESTS)
each("front without a tunnel and", lambda title: without_a_tunnel(REQUESTS[title]), REQUESTS)


@escape
def front_and_a_newer_protocol_that_was_agreed_on():
    return behind(frames(BEHIND), ("h2",))


@escape
def hello_for_another_host():
    return through("allowed.example:443", hello("evil.example"))


@escape
def hello_for_nobody():
    return through("allowed.example:443", hello(None))


@escape
def hello_for_an_address():
    return through("allowed.example:443", hello("127.0.0.1"))


@escape
def hello_in_pieces():
    first = hello("evil.example")
    with tunnel("allowed.example:443") as stream:
        for byte in first:
            stream.sendall(bytes([byte]))
        return read(stream)


@escape
def hello_after_something_else():
    return through("allowed.example:443", hello("allowed.example")[:40] + hello("evil.example"))


@escape
def plain_text_where_tls_belongs():
    return through("allowed.example:443", get("/", "evil.example"))


@escape
def another_protocol_where_tls_belongs():
    return through("allowed.example:443", b"SSH-2.0-evil\r\n")


@escape
def secure_port_for_evil():
    return tls(dial("127.0.0.1", 443), "evil.example", get("/", "evil.example"))


@escape
def secure_port_for_what_leads_inside():
    return [tls(dial("127.0.0.1", 443), name, b"x") for name in ("rebind.example", "metadata.example")]


@escape
def secure_port_at_the_address_of_another():
    address = socket.gethostbyname("allowed.example")
    return tls(dial(address, 443), "evil.example", get("/", "evil.example"))


@escape
def secure_port_without_a_name():
    return tls(dial("127.0.0.1", 443), None, get("/", "evil.example"))


@escape
def secure_port_with_plain_text():
    return tcp("127.0.0.1", 443, get("/", "evil.example"))


@escape
def secure_port_at_addresses_of_nobody():
    return [tls(dial(f"127.1.{number}.9", 443), "evil.example", b"x") for number in (0, 7, 63)]
