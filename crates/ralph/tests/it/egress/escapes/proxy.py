"""Through the proxy and the ports for plain HTTP, in every spelling."""

# The requested URL, and the `Host` header.
ADDRESSES = [
    ("http://evil.example/", "evil.example"),
    ("http://EVIL.example./", "EVIL.example."),
    ("http://allowed.example.evil.example/", "allowed.example.evil.example"),
    ("http://evilallowed.example/", "evilallowed.example"),
    ("http://sub.allowed.example/", "sub.allowed.example"),
    ("http://allowed.example@evil.example/", "allowed.example"),
    ("http://allowed.example:80@evil.example/", "evil.example"),
    ("http://user:password@evil.example/", "evil.example"),
    ("http://evil.example#@allowed.example/", "allowed.example"),
    ("http://evil.example?@allowed.example/", "allowed.example"),
    ("http://evil.example\\@allowed.example/", "allowed.example"),
    ("http://evil.example/", "allowed.example"),
    ("http://allowed.example/", "evil.example"),
    (f"http://allowed.example:{PORT}/", f"allowed.example:{PORT}"),
    (f"http://evil.example:{PORT}/", f"evil.example:{PORT}"),
    ("https://evil.example/", "evil.example"),
    ("ftp://evil.example/", "evil.example"),
    ("ws://evil.example/", "evil.example"),
    ("//evil.example/", "evil.example"),
    ("/", "evil.example"),
    ("http://evil\u3002example/", "evil.example"),
    ("http://\u0430llowed.example/", "allowed.example"),
    ("http://xn--llowed-4fg.example/", "xn--llowed-4fg.example"),
    ("http://evil.example%00.allowed.example/", "allowed.example"),
    ("http://evil.example\0.allowed.example/", "allowed.example"),
    ("http://evil.example%2eallowed.example/", "allowed.example"),
    ("http://allowed.example,evil.example/", "allowed.example"),
    ("http://rebind.example/", "rebind.example"),
    ("http://metadata.example/latest/meta-data/", "metadata.example"),
    ("http://169.254.169.254/latest/meta-data/", "169.254.169.254"),
    ("http://models.example/v1/chat/completions", "models.example"),
]
# Spellings of the loopback address.
HERE = ["127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "0177.0.0.1", "2130706433", "0", "localhost",
        "LOCALHOST.", "127.0.0.1.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25lo]", "127.0.0.1.nip.example", "\uff11\uff12\uff17.0.0.1"]
# Other protocols, duplicate headers, requests inside requests.
INSIDE = "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
FIRST = "POST http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n"
BYTES = {
    "two hosts": "GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nHost: evil.example\r\n\r\n",
    "a folded host": "GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\tevil.example\r\n\r\n",
    "a host with a space": "GET http://allowed.example/ HTTP/1.1\r\nHost : evil.example\r\n\r\n",
    "no version": "GET http://evil.example/\r\n\r\n",
    "an old version": "GET http://evil.example/ HTTP/1.0\r\n\r\n",
    "an odd version": "GET http://evil.example/ HTTP/1.9\r\nHost: evil.example\r\n\r\n",
    "lines of their own": "GET http://allowed.example/ HTTP/1.1\nHost: evil.example\n\n",
    "two addresses": "GET http://allowed.example/ http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "a tab": "GET\thttp://evil.example/\tHTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "all of it": "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    "a newer protocol": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "a newer protocol by upgrade": get("http://evil.example/", "evil.example",
                                       "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n").decode(),
    "socks 5": "\5\1\0\5\1\0\3\x0cevil.example\0\x50",
    "socks 4": "\4\1\0\x50\0\0\0\1x\0evil.example\0",
    "mail": "EHLO evil.example\r\n",
    "a head of the proxy protocol": "PROXY TCP4 127.0.0.1 127.0.0.1 1 80\r\n" + INSIDE,
    "a web socket": get("http://evil.example/", "evil.example",
                        "Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n").decode(),
    "a length and chunks": FIRST + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INSIDE,
    "chunks spelled oddly": FIRST + "Content-Length: 4\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + INSIDE,
    "chunks with a tab": FIRST + "Content-Length: 4\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n" + INSIDE,
    "two lengths": FIRST + f"Content-Length: 0\r\nContent-Length: {len(INSIDE)}\r\n\r\n" + INSIDE,
    "a length with a sign": FIRST + "Content-Length: +0\r\n\r\n" + INSIDE,
    "a body on a read": get("http://allowed.example/", "allowed.example", "Content-Length: 0\r\n").decode() + INSIDE,
    "one after the other": "GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n" + INSIDE,
    "a path with lines": "GET http://allowed.example/%0d%0aHost:%20evil.example HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "hop by hop": get("http://evil.example/", "evil.example", "Connection: Host\r\n").decode(),
    "forwarded": get("http://allowed.example/", "evil.example", "X-Forwarded-Host: evil.example\r\n").decode(),
}
AUTHORITIES = ["evil.example:443", "evil.example:80", f"evil.example:{PORT}", "EVIL.EXAMPLE.:443",
               "allowed.example:22", f"allowed.example:{PORT}", "allowed.example.evil.example:443",
               "sub.allowed.example:443", "evil.example:443@allowed.example:443",
               "allowed.example:443@evil.example:443", "evil.example\0.allowed.example:443", "evil.example",
               "evil.example:", "evil.example:0443", "evil.example:65979", "evil.example:443/allowed.example",
               "http://evil.example:443", "rebind.example:443", "metadata.example:80", "models.example:443",
               "169.254.169.254:80", "[fe80::1]:443", "[fd00:ec2::254]:80", f"0.0.0.0:{PORT}", "*:443", ":443"]

each("proxy", lambda value: proxy(get(*value)), ADDRESSES)
each("proxy to this machine as", lambda here: proxy(get(f"http://{here}:{PORT}/", f"{here}:{PORT}")), HERE)
each("tunnel to this machine as", lambda here: through(f"{here}:{PORT}", get("/", "evil.example")), HERE)
each("tunnel to", lambda authority: through(authority, get("/", "evil.example")), AUTHORITIES)
each("proxy and", lambda title: proxy(BYTES[title].encode("latin-1")), BYTES)
each("plain port and", lambda title: tcp("127.0.0.1", 80, BYTES[title].encode("latin-1")), BYTES)
each("plain port", lambda value: tcp("127.0.0.1", 80, get(*value)), ADDRESSES[:12])


@escape
def tunnel_whose_host_is_another():
    return tunnel("allowed.example:443", "evil.example:443"), tunnel("evil.example:443", "allowed.example:443")


@escape
def tunnel_in_a_tunnel():
    inner = b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"
    return through("allowed.example:80", inner + hello("evil.example"))


@escape
def tunnel_to_plain_http_for_another():
    return through("allowed.example:80", get("/", "evil.example"))


@escape
def tunnel_to_plain_http_by_a_whole_address():
    return through("allowed.example:80", get("http://evil.example/", "allowed.example"))


@escape
def tunnel_to_the_proxy_itself():
    return through("127.0.0.1:3128", INSIDE.encode())


@escape
def every_address_that_names_could_have():
    request = get("/", "evil.example")
    return [tcp(f"127.1.0.{number}", 80, request)[:20] for number in range(1, 9)]


@escape
def redirect_to_evil():
    return sh("curl -sLm 5 http://allowed.example/to-evil; wget -qO- -T 3 -t 1 http://allowed.example/to-evil; true")


@escape
def redirect_to_metadata():
    return sh("curl -sLm 5 https://allowed.example/to-metadata -k; true")


@escape
def redirect_of_a_program():
    return urllib.request.urlopen("http://allowed.example/to-sink", timeout=3).read()
