"""Makes every system call that the profile blocks and prints the results, one per line.

The arguments are invalid, so that the kernel would reject them with another error: a bad address, a
bad descriptor, an impossible combination. The machine is not affected, and the error shows whether
the profile or the kernel rejected the call.
"""
import ctypes
import errno
import mmap
import os
import platform
import pty
import signal

libc = ctypes.CDLL(None, use_errno=True)
ON_X86 = platform.machine() == "x86_64"
BAD_ADDRESS, BAD_DESCRIPTOR = 1, -1
ABOVE_32_BITS = 0x1234 << 32

# name: (number on x86_64, number on aarch64, arguments); calls from 424 on have one number.
CALLS = {
    "mount": (165, 40, (BAD_ADDRESS, BAD_ADDRESS, BAD_ADDRESS, 0, 0)),
    "umount2": (166, 39, (BAD_ADDRESS, 0)),
    "pivot_root": (155, 41, (BAD_ADDRESS, BAD_ADDRESS)),
    "chroot": (161, 51, (BAD_ADDRESS,)),
    "open_tree": (428, 428, (BAD_DESCRIPTOR, BAD_ADDRESS, 0)),
    "move_mount": (429, 429, (BAD_DESCRIPTOR, BAD_ADDRESS, BAD_DESCRIPTOR, BAD_ADDRESS, 0)),
    "fsopen": (430, 430, (BAD_ADDRESS, 0)),
    "fsconfig": (431, 431, (BAD_DESCRIPTOR, 0, BAD_ADDRESS, BAD_ADDRESS, 0)),
    "fsmount": (432, 432, (BAD_DESCRIPTOR, 0, 0)),
    "fspick": (433, 433, (BAD_DESCRIPTOR, BAD_ADDRESS, 0)),
    "mount_setattr": (442, 442, (BAD_DESCRIPTOR, BAD_ADDRESS, 0, BAD_ADDRESS, 0)),
    "open_by_handle_at": (304, 265, (BAD_DESCRIPTOR, BAD_ADDRESS, 0)),
    "unshare": (272, 97, (0,)),
    "setns": (308, 268, (BAD_DESCRIPTOR, 0)),
    "sethostname": (170, 161, (BAD_ADDRESS, 5)),
    "setdomainname": (171, 162, (BAD_ADDRESS, 5)),
    "bpf": (321, 280, (BAD_DESCRIPTOR, BAD_ADDRESS, 0)),
    "perf_event_open": (298, 241, (BAD_ADDRESS, 0, BAD_DESCRIPTOR, BAD_DESCRIPTOR, 0)),
    "userfaultfd": (323, 282, (0x7FFFFFFF,)),
    "add_key": (248, 217, (BAD_ADDRESS, BAD_ADDRESS, 0, 0, 0)),
    "request_key": (249, 218, (BAD_ADDRESS, BAD_ADDRESS, BAD_ADDRESS, 0)),
    "keyctl": (250, 219, (9999,)),
    "kexec_load": (246, 104, (0, 0, 0, 0xFFFF)),
    "kexec_file_load": (320, 294, (BAD_DESCRIPTOR, BAD_DESCRIPTOR, 0, 0, 0xFFFF)),
    "init_module": (175, 105, (BAD_ADDRESS, 0, BAD_ADDRESS)),
    "finit_module": (313, 273, (BAD_DESCRIPTOR, BAD_ADDRESS, 0)),
    "delete_module": (176, 106, (BAD_ADDRESS, 0)),
    "reboot": (169, 142, (0, 0, 0, 0)),
    "swapon": (167, 224, (BAD_ADDRESS, 0)),
    "swapoff": (168, 225, (BAD_ADDRESS,)),
    "acct": (163, 89, (BAD_ADDRESS,)),
    "quotactl": (179, 60, (0, BAD_ADDRESS, 0, 0)),
    "quotactl_fd": (443, 443, (BAD_DESCRIPTOR, 0, 0, 0)),
    "syslog": (103, 116, (10, 0, 0)),
    "settimeofday": (164, 170, (BAD_ADDRESS, 0)),
    "clock_settime": (227, 112, (0, BAD_ADDRESS)),
    "adjtimex": (159, 171, (BAD_ADDRESS,)),
    "clock_adjtime": (305, 266, (0, BAD_ADDRESS)),
    "fanotify_init": (300, 262, (0x7FFFFFFF, 0)),
    "fanotify_mark": (301, 263, (BAD_DESCRIPTOR, 0, 0, BAD_DESCRIPTOR, 0)),
    "mbind": (237, 235, (1, 1, 99, 0, 0, 0)),
    "set_mempolicy": (238, 237, (99, 0, 0)),
    "get_mempolicy": (239, 236, (BAD_ADDRESS, 0, 0, 0, 99)),
    "migrate_pages": (256, 238, (BAD_DESCRIPTOR, 0, BAD_ADDRESS, BAD_ADDRESS)),
    "move_pages": (279, 239, (0, 1, BAD_ADDRESS, BAD_ADDRESS, BAD_ADDRESS, 99)),
    "kcmp": (312, 272, (os.getpid(), os.getpid(), 99, 0, 0)),
    "vhangup": (153, 58, ()),
    "clone3": (435, 435, (BAD_ADDRESS, 0)),
    "io_uring_setup": (425, 425, (0, BAD_ADDRESS)),
    "io_uring_enter": (426, 426, (BAD_DESCRIPTOR, 0, 0, 0, 0, 0)),
    "io_uring_register": (427, 427, (BAD_DESCRIPTOR, 0, 0, 0)),
    "statmount": (457, 457, (BAD_ADDRESS, BAD_ADDRESS, 0, 0)),
    "listmount": (458, 458, (BAD_ADDRESS, BAD_ADDRESS, 0, 0)),
}
X86_CALLS = {
    "iopl": (172, (9,)),
    "ioperm": (173, (0x20000, 1, 1)),
    "modify_ldt": (154, (99, 0, 0)),
    "ustat": (136, (0, BAD_ADDRESS)),
    "sysfs": (139, (99, 0, 0)),
}
CLONE_THREAD = 0x10000  # invalid without CLONE_SIGHAND, so the kernel rejects it
NAMESPACES = {
    "mount": 0x20000,
    "cgroup": 0x2000000,
    "uts": 0x4000000,
    "ipc": 0x8000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
STREAM, DGRAM, RAW, SEQPACKET, PACKET = 1, 2, 3, 5, 10
INET, INET6, NETLINK, AF_PACKET, VSOCK = 2, 10, 16, 17, 40
OPEN_FAMILIES = {1, INET, INET6, NETLINK}
INET_SOCKETS = {
    "raw": (RAW, 0),
    "raw icmp": (RAW, 1),
    "raw of raw": (RAW, 255),
    "packet": (PACKET, 0),
    "ping": (DGRAM, 1),
    "udplite": (DGRAM, 136),
    "sctp": (STREAM, 132),
    "sctp packets": (SEQPACKET, 132),
}
TIOCSTI, TIOCLINUX = 0x5412, 0x541C


def outcome(number, *arguments):
    """Returns the name of the error of a system call, or `done`."""
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    if result == -1 and ctypes.get_errno() != 0:
        return errno.errorcode[ctypes.get_errno()]
    return "done"


def socket_outcome(*arguments):
    return outcome(41 if ON_X86 else 198, *arguments)


def in_child(action):
    """Returns the signal that ends a child that performs the action, or `done`."""
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "done"


def call_as_32_bit(number):
    """Makes a system call through the interface of 32-bit programs, with every argument zero."""
    code = b"\x53\xb8" + number.to_bytes(4, "little") + b"\x31\xdb\x31\xc9\xcd\x80\x5b\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


def grouped(name, outcomes):
    """Yields one line per outcome, with everything that has this outcome."""
    by_outcome = {}
    for thing, result in outcomes.items():
        by_outcome.setdefault(result, []).append(str(thing))
    for result, things in by_outcome.items():
        yield f"{name} {' '.join(things)}", result


def calls():
    for name, (on_x86, on_arm, arguments) in CALLS.items():
        yield name, outcome(on_x86 if ON_X86 else on_arm, *arguments)
    for name, flag in NAMESPACES.items():
        yield f"clone {name}", outcome(56 if ON_X86 else 220, flag | CLONE_THREAD, 0, 0, 0, 0)
    for name, flags in (("PER_LINUX32", 8), ("READ_IMPLIES_EXEC", 0x400000)):
        yield f"personality {name}", outcome(135 if ON_X86 else 92, flags)


def sockets():
    families = {}
    for family in set(range(64)) - OPEN_FAMILIES:
        kinds = {socket_outcome(family, kind, 0) for kind in (STREAM, DGRAM, RAW, SEQPACKET)}
        families[family] = " ".join(sorted(kinds))
    yield from grouped("socket", families)
    pairs = {
        family: outcome(53 if ON_X86 else 199, family, STREAM, 0, BAD_ADDRESS)
        for family in range(2, 64)
    }
    yield from grouped("socketpair", pairs)
    for family in (INET, INET6):
        for name, (kind, protocol) in INET_SOCKETS.items():
            yield f"socket {family} {name}", socket_outcome(family, kind, protocol)
        yield f"socket {family} mptcp", socket_outcome(family, STREAM, 262)
    netlink = {protocol: socket_outcome(NETLINK, RAW, protocol) for protocol in range(1, 32)}
    yield from grouped("socket netlink", netlink)
    for family in (AF_PACKET, VSOCK):
        yield f"socket {family} wide", socket_outcome(ABOVE_32_BITS | family, STREAM, 0)


def terminal():
    terminal = pty.openpty()[1]
    letter = ctypes.addressof(ctypes.create_string_buffer(b"x"))
    for name, request in (("TIOCSTI", TIOCSTI), ("TIOCLINUX", TIOCLINUX)):
        for width, above in (("", 0), (" wide", ABOVE_32_BITS), (" negative", -1 << 32)):
            yield f"{name}{width}", outcome(16 if ON_X86 else 29, terminal, above | request, letter)


def x86():
    for name, (number, arguments) in X86_CALLS.items():
        yield name, outcome(number, *arguments)
    yield "32-bit getpid", in_child(lambda: call_as_32_bit(20))
    yield "32-bit socketcall", in_child(lambda: call_as_32_bit(102))
    yield "x32 socket", in_child(lambda: outcome(0x40000000 | 41, INET, STREAM, 0))


for part in (calls, sockets, terminal) + ((x86,) if ON_X86 else ()):
    for name, result in part():
        print(f"{name}: {result}")
