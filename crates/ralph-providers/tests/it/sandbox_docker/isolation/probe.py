"""Tries to leave a sandbox in every known way and prints the result of each attempt, one per line.

arguments: the port of a service outside, then the addresses of that service.
"""
import ctypes
import errno
import os
import signal
import socket
import stat
import struct
import sys

PORT, ADDRESSES = int(sys.argv[1]), sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
signal.alarm(30)


def tried(name, attempt):
    """Prints the result of an attempt, or its error."""
    try:
        got = attempt()
        print(f"{name}: {got if got is not None else 'ok'}")
    except socket.gaierror:
        print(f"{name}: no answer")
    except OSError as error:
        print(f"{name}: {errno.errorcode[error.errno]}")


def call(function, *arguments):
    ctypes.set_errno(0)
    if getattr(libc, function)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), function)


def connected(family, address, port=PORT):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.connect((address, port))


def anywhere(attempt, addresses):
    """Returns the addresses where an attempt succeeds."""
    reached = []
    for address in addresses:
        try:
            attempt(address)
            reached.append(address)
        except OSError:
            pass
    return " ".join(reached) or "nothing"


def datagrams(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.connect((address, 53))
        client.send(b"x")


def new_interface():
    """Asks the kernel for a dummy interface, which needs no other one."""
    kind = struct.pack("HH", 9, 1) + b"dummy\0\0\0"
    info = struct.pack("HH", 4 + len(kind), 18) + kind
    body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + info
    ask(16, 0x5 | 0x400 | 0x200, body)


def new_route():
    body = struct.pack("BBBBBBBBI", socket.AF_INET, 0, 0, 0, 254, 3, 253, 1, 0)
    ask(24, 0x5 | 0x400 | 0x200, body + struct.pack("HHI", 8, 4, 1))


def new_address():
    address = socket.inet_aton("172.17.0.9")
    body = struct.pack("BBBBI", socket.AF_INET, 16, 0, 0, 1)
    ask(20, 0x5 | 0x400 | 0x200, body + struct.pack("HH", 8, 2) + address)


def ask(message, flags, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack("IHHII", 16 + len(body), message, flags, 1, 0) + body)
        answer = kernel.recv(4096)
        refused = struct.unpack("i", answer[16:20])[0]
        if refused:
            raise OSError(-refused, "netlink")


def routes():
    lines = open("/proc/net/route").read().splitlines()[1:]
    lines += [line for line in open("/proc/net/ipv6_route") if line.split()[-1] != "lo"]
    return len(lines)


def host_mounts():
    """Returns the mount points of file systems on a disk, and whether they are writable."""
    found = []
    for line in open("/proc/self/mountinfo"):
        fields, _, rest = line.partition(" - ")
        point, options = fields.split()[4:6]
        if rest.split()[1].startswith("/dev/"):
            found.append(f"{point} {options.split(',')[0]}")
    return ", ".join(sorted(found))


def written(path):
    with open(path, "w") as file:
        file.write("1")


def listed(path):
    return " ".join(sorted(os.listdir(path))) or "nothing"


def first_process():
    seen = []
    for name in ["environ", "mem", "root/etc", "fd/0", "cwd/etc"]:
        try:
            os.listdir(f"/proc/1/{name}") if "/etc" in name else open(f"/proc/1/{name}", "rb").read(1)
            seen.append(name)
        except OSError:
            pass
    return " ".join(seen) or "nothing"


def sockets():
    """Returns every socket in the file system, and every Unix socket that listens."""
    found = []
    for directory, inner, names in os.walk("/"):
        inner[:] = [name for name in inner if os.path.join(directory, name) not in ("/proc", "/sys")]
        paths = [os.path.join(directory, name) for name in names]
        found += [path for path in paths if stat.S_ISSOCK(os.lstat(path).st_mode)]
    for line in open("/proc/net/unix").read().splitlines()[1:]:
        accepts = int(line.split()[3], 16) & 0x10000
        found += [line] if accepts else []
    return " ".join(found) or "none"


tried("interfaces", lambda: listed("/sys/class/net"))
tried("routes", routes)
tried("name", lambda: socket.getaddrinfo("example.com", 80) and "answered")
tried("names come from", lambda: open("/etc/resolv.conf").read().split("\n")[0])
v4 = [address for address in ADDRESSES if ":" not in address]
v6 = [address for address in ADDRESSES if ":" in address]
tried("connect", lambda: anywhere(lambda a: connected(socket.AF_INET, a), v4 + ["127.0.0.1", "1.1.1.1", "169.254.169.254"]))
tried("connect v6", lambda: anywhere(lambda a: connected(socket.AF_INET6, a), v6 + ["::1", "2606:4700::1111"]))
tried("datagrams", lambda: anywhere(datagrams, v4 + v6 + ["1.1.1.1", "2606:4700::1111"]))
tried("broadcast", lambda: datagrams("255.255.255.255"))
tried("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
tried("packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
tried("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
tried("new interface", new_interface)
tried("new route", new_route)
tried("new address", new_address)
tried("new network", lambda: call("unshare", 0x40000000))
tried("new user namespace", lambda: call("unshare", 0x10000000))
tried("new mounts", lambda: call("unshare", 0x00020000))
tried("another namespace", lambda: call("setns", os.open("/proc/self/ns/net", os.O_RDONLY), 0))
tried("mount", lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None))
tried("mount writable", lambda: call("mount", b"", b"/.ralph-link", b"", 0x1000 | 0x20, None))
tried("unmount", lambda: call("umount2", b"/etc/resolv.conf", 2))
tried("chroot", lambda: call("chroot", b"/tmp"))
tried("device", lambda: os.mknod("/tmp/disk", 0o060600, os.makedev(254, 0)))
tried("devices", lambda: listed("/dev"))
tried("host mounts", host_mounts)
tried("sockets", sockets)
tried("link directory", lambda: listed("/.ralph-link"))
tried("link file", lambda: written("/.ralph-link/x"))
tried("guest's program", lambda: written("/.ralph-guest/ralph-guest"))
tried("kernel settings", lambda: written("/proc/sys/kernel/core_pattern"))
tried("helper of the kernel", lambda: written("/sys/kernel/uevent_helper"))
for path in ["/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/pids.max"]:
    if os.path.exists(path):
        tried("own limits", lambda: written(path))
tried("trace the first process", lambda: call("ptrace", 16, 1, 0, 0))
tried("see the first process", first_process)
tried("kill the first process", lambda: os.kill(1, signal.SIGKILL))
tried("time", lambda: call("clock_settime", 0, struct.pack("qq", 0, 0)))
tried("host name", lambda: socket.sethostname("x"))
tried("rights", lambda: call("prctl", 47, 2, 21, 0, 0))
print("environment:", " ".join(sorted(os.environ)))
