"""Uses the system calls that programs in a sandbox need and prints the results, one per line."""
import array
import concurrent.futures
import ctypes
import errno
import fcntl
import mmap
import multiprocessing
import os
import platform
import pty
import select
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios

libc = ctypes.CDLL(None, use_errno=True)
ON_X86 = platform.machine() == "x86_64"
NEEDS = []


def need(function):
    NEEDS.append(function)
    return function


def call(number, *arguments):
    """Makes a system call."""
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    if result == -1 and ctypes.get_errno() != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def refused_by_kernel(number, *arguments):
    """Makes a system call that the kernel rejects; the profile would reject it with EPERM."""
    try:
        call(number, *arguments)
    except OSError as error:
        assert error.errno != errno.EPERM, error


def run(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, text=True, **options).stdout


def at(value):
    return ctypes.addressof(value)


@need
def shell_pipeline():
    assert run("bash", "-c", "set -o pipefail; seq 1000 | sort -rn | head -n 1") == "1000\n"


@need
def session_of_its_own():
    leader, process = run("setsid", "--wait", "sh", "-c", "ps -o sid= -p $$; echo $$").split()
    assert leader == process


@need
def git_commit():
    with tempfile.TemporaryDirectory() as directory:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        run("git", "init", "--quiet", directory)
        with open(f"{directory}/file", "w") as file:
            file.write("text\n")
        run("git", "add", "file", cwd=directory)
        run("git", *identity, "commit", "--quiet", "-m", "first", cwd=directory)
        run("git", "gc", "--quiet", cwd=directory)
        run("git", "clone", "--quiet", directory, f"{directory}/clone")
        assert run("git", "log", "--format=%s", cwd=f"{directory}/clone") == "first\n"


@need
def names_of_users_and_hosts():
    assert run("getent", "passwd", "root").startswith("root:")
    assert run("getent", "hosts", "localhost") != ""


@need
def process_list():
    assert "python3" in run("ps", "-e", "-o", "comm")


@need
def threads():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda number: number * 2, range(100))) == 9900


@need
def processes_with_semaphores():
    with multiprocessing.Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    semaphore = multiprocessing.Semaphore(0)
    child = multiprocessing.Process(target=semaphore.release)
    child.start()
    assert semaphore.acquire(timeout=10)
    child.join()


@need
def database():
    with tempfile.TemporaryDirectory() as directory:
        database = sqlite3.connect(f"{directory}/db")
        database.execute("pragma journal_mode = wal")
        database.execute("create table t (n)")
        database.execute("insert into t values (1)")
        database.commit()
        assert database.execute("select n from t").fetchall() == [(1,)]
        database.close()


@need
def generated_code():
    code = b"\xb8\x2a\0\0\0\xc3" if ON_X86 else b"\x40\x05\x80\x52\xc0\x03\x5f\xd6"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    page.write(code)
    start = at(ctypes.c_char.from_buffer(page))
    call(10 if ON_X86 else 226, start, 4096, mmap.PROT_READ | mmap.PROT_EXEC)
    assert ctypes.CFUNCTYPE(ctypes.c_int)(start)() == 42


@need
def program_in_memory():
    descriptor = os.memfd_create("program", 0)
    with open("/bin/true", "rb") as program:
        os.write(descriptor, program.read())
    child = os.fork()
    if child == 0:
        os.execve(descriptor, ["true"], {})
    assert os.waitpid(child, 0)[1] == 0


@need
def file_watching():
    with tempfile.TemporaryDirectory() as directory:
        watch = libc.inotify_init1(os.O_CLOEXEC)
        assert libc.inotify_add_watch(watch, directory.encode(), 0x100) >= 0
        open(f"{directory}/new", "w").close()
        assert b"new" in os.read(watch, 4096)
        os.close(watch)


@need
def epoll_eventfd_timerfd_signalfd():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    mask = struct.pack("Q", 1 << (signal.SIGUSR1 - 1)) + bytes(120)
    timer = libc.timerfd_create(1, 0)
    assert libc.timerfd_settime(timer, 0, struct.pack("4q", 0, 0, 0, 1000), None) == 0
    event = os.eventfd(1)
    signals = libc.signalfd(-1, mask, 0)
    os.kill(os.getpid(), signal.SIGUSR1)
    poll = select.epoll()
    ready = set()
    for descriptor in (timer, event, signals):
        poll.register(descriptor, select.EPOLLIN)
    while ready != {timer, event, signals}:
        ready |= {descriptor for descriptor, _ in poll.poll(10)}
    os.read(signals, 128)


@need
def unix_sockets_with_descriptors():
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    socket.send_fds(left, [b"x"], [sys.stdout.fileno()])
    assert len(socket.recv_fds(right, 1, 1)[1]) == 1
    with tempfile.TemporaryDirectory() as directory:
        exchange(socket.AF_UNIX, f"{directory}/socket")


@need
def tcp_over_loopback():
    exchange(socket.AF_INET, ("127.0.0.1", 0))
    socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP).close()


def exchange(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen()
        with socket.socket(family, socket.SOCK_STREAM) as client:
            client.connect(listener.getsockname())
            server, _ = listener.accept()
            client.sendall(b"hello")
            assert server.recv(5) == b"hello"
            server.close()


@need
def udp_over_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 17) as receiver:
        receiver.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"hello", receiver.getsockname())
        select.select([receiver], [], [], 10)
        assert receiver.recv(5) == b"hello"


@need
def list_of_interfaces():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as route:
        route.send(struct.pack("=IHHIIB3x", 20, 18, 0x301, 1, 0, 0))
        assert b"lo\0" in route.recv(65536)


@need
def terminals():
    child, terminal = pty.fork()
    if child == 0:
        os.execvp("stty", ["stty", "size"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    assert os.waitpid(child, 0)[1] == 0
    # musl passes a request whose highest bit is set with its sign extended.
    number = ctypes.c_int()
    call(16 if ON_X86 else 29, terminal, (-1 << 32) | 0x80045430, at(number))


@need
def debugger():
    child = os.fork()
    if child == 0:
        libc.ptrace(0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(7)
    assert os.WIFSTOPPED(os.waitpid(child, 0)[1])
    assert libc.ptrace(7, child, 0, 0) == 0
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@need
def memory_of_another_process():
    here, there = ctypes.create_string_buffer(5), ctypes.create_string_buffer(b"hello")
    local = (ctypes.c_void_p * 2)(at(here), 5)
    remote = (ctypes.c_void_p * 2)(at(there), 5)
    assert libc.process_vm_readv(os.getpid(), local, 1, remote, 1, 0) == 5
    assert libc.process_vm_writev(os.getpid(), local, 1, remote, 1, 0) == 5


@need
def personality_of_debuggers():
    assert libc.personality(ctypes.c_ulong(0xFFFFFFFF)) == 0
    assert libc.personality(0x40000) == 0
    assert libc.personality(0) == 0x40000


@need
def confining_itself():
    refused_by_kernel(317 if ON_X86 else 277, 99, 0, 0)
    refused_by_kernel(444, 0, 0, 1)
    assert libc.prctl(38, 1, 0, 0, 0) == 0


@need
def older_asynchronous_io():
    context = ctypes.c_ulong(0)
    call(206 if ON_X86 else 0, 8, at(context))
    call(207 if ON_X86 else 1, context.value)


@need
def shared_memory_and_queues():
    memory = libc.shmget(0, 4096, 0o1600)
    assert memory >= 0
    assert libc.shmctl(memory, 0, None) == 0
    queue = libc.mq_open(b"/ralph", os.O_CREAT | os.O_RDWR, 0o600, None)
    assert queue >= 0
    assert libc.mq_unlink(b"/ralph") == 0


@need
def copying_inside_the_kernel():
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(b"hello")
        source.flush()
        assert os.copy_file_range(source.fileno(), target.fileno(), 5, 0, 0) == 5
        assert os.sendfile(target.fileno(), source.fileno(), 0, 5) == 5
        reader, writer = os.pipe()
        assert os.splice(source.fileno(), writer, 5, 0) == 5
        assert os.read(reader, 5) == b"hello"


@need
def limits_and_scheduling():
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.nice(1)
    assert run("sh", "-c", "ulimit -n 64; ulimit -n") == "64\n"


@need
def named_pipes_and_attributes():
    with tempfile.TemporaryDirectory() as directory:
        os.mkfifo(f"{directory}/pipe")
        open(f"{directory}/file", "w").close()
        os.chmod(f"{directory}/file", 0o700)
        os.utime(f"{directory}/file", (1, 1))
        assert os.listxattr(f"{directory}/file") == []


@need
def newer_calls():
    path, how = ctypes.create_string_buffer(b"/etc/passwd"), array.array("Q", [0, 0, 0])
    os.close(call(437, -100, at(path), how.buffer_info()[0], 24))  # openat2
    call(439, -100, at(path), 4, 0)  # faccessat2
    call(332 if ON_X86 else 291, -100, at(path), 0, 0x7FF, at(ctypes.create_string_buffer(256)))
    call(436, 1000, 1001, 0)  # close_range
    call(324 if ON_X86 else 283, 0, 0, 0)  # membarrier
    refused_by_kernel(334 if ON_X86 else 293, 1, 0, 0, 0)  # rseq
    refused_by_kernel(441, -1, 0, 0, 0, 0, 0)  # epoll_pwait2
    refused_by_kernel(449, 1, 0, 0, 0, 0)  # futex_waitv
    refused_by_kernel(440, -1, 0, 0, 0, 0)  # process_madvise
    descriptor = os.pidfd_open(os.getpid())
    signal.pidfd_send_signal(descriptor, 0)
    os.close(call(438, descriptor, 1, 0))  # pidfd_getfd


@need
def calls_newer_than_the_runtime():
    # A container runtime that does not know a call yet must fail it like an old kernel, not with EPERM.
    for number in (451, 452, 453, 454, 455, 456, 459, 460, 461, 462, 463, 464, 465, 466):
        refused_by_kernel(number, -1, 1, 0, 0, 0, 0)


for function in NEEDS:
    try:
        function()
        print(f"{function.__name__}: ok")
    except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"{function.__name__}: {error!r} {getattr(error, 'stderr', '')}")
