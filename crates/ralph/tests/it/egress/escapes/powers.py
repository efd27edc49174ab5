"""With privileges that no process in the sandbox should have."""

LINES = {
    "a new network": "unshare --net ip link",
    "a new network as a new user": "unshare --user --map-root-user --net ip link",
    "the network of the first process": f"nsenter --target 1 --net curl -sm 2 http://{HOSTS[0]}:{PORT}/",
    "all of the first process": "nsenter --target 1 --all id",
    "a new device": "ip link add dummy0 type dummy",
    "a tunnel device": "ip tuntap add dev tun0 mode tun; cat /dev/net/tun; mknod /tmp/tun c 10 200",
    "a pair of devices": "ip link add name va type veth peer name vb netns 1",
    "a device of the host": "ip link set eth0 up; ip link set docker0 up",
    "a new address": "ip addr add 172.17.0.9/16 dev lo",
    "a new route": f"ip route add {HOSTS[0]} dev lo; ip route add default via 172.17.0.1",
    "no rules": "iptables --flush; iptables --policy OUTPUT ACCEPT",
    "other rules": f"iptables -t nat -A OUTPUT -p tcp --dport 80 -j DNAT --to {HOSTS[0]}:{PORT}",
    "settings of the kernel": "echo 1 > /proc/sys/net/ipv4/ip_forward; sysctl -w net.ipv4.ip_nonlocal_bind=1",
    "a helper of the kernel": "echo '|/tmp/x' > /proc/sys/kernel/core_pattern; echo /tmp/x > /sys/kernel/uevent_helper",
    "another view of the kernel": "mount -t proc proc /mnt; mount -t sysfs sysfs /mnt; mount -t cgroup2 x /mnt",
    "the disk of the host": "mknod /tmp/disk b 254 0 && dd if=/tmp/disk of=/tmp/x count=1; mount /dev/vda /mnt",
    "files made writable": "mount -o remount,rw /; mount -o remount,rw /etc/resolv.conf; umount /etc/resolv.conf",
    "another root": "chroot /proc/1/root id; ls /proc/1/root/; cat /proc/1/environ",
    "memory of the first process": "dd if=/proc/1/mem of=/dev/null count=1; cat /proc/1/maps",
    "modules": "insmod /tmp/x; modprobe vsock; cat /proc/kcore | head -c 10",
    "more rights": "setpriv --ambient-caps +net_admin,+net_raw --inh-caps +net_admin,+net_raw id",
    "rights in a file": "cp /bin/ping /tmp/ping; setcap cap_net_raw+ep /tmp/ping || chmod u+s /tmp/ping; /tmp/ping -c1 -W1 127.0.0.2",
    "messages of the kernel": "dmesg; cat /dev/kmsg | head -1",
}
each("power over", lambda title: sh(f"({LINES[title]}) 2>&1; true"), LINES)


@escape
def trace_the_first_process():
    return libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0), ctypes.get_errno()


@escape
def read_the_memory_of_the_first_process():
    return call(310 if platform.machine() == "x86_64" else 270, 1, 0, 0, 0, 0, 0)


@escape
def stop_the_first_process():
    outcomes = []
    for number in (signal.SIGKILL, signal.SIGSTOP):
        try:
            outcomes.append(os.kill(1, number))
        except OSError as error:
            outcomes.append(str(error))
    return outcomes


@escape
def enter_other_namespaces():
    outcomes = []
    for name in ("net", "mnt", "pid", "ipc", "uts", "user", "cgroup"):
        try:
            with open(f"/proc/1/ns/{name}") as file:
                outcomes.append(libc.setns(file.fileno(), 0))
        except OSError as error:
            outcomes.append(str(error))
    return outcomes


@escape
def take_the_ports_of_the_guest():
    """A program on the guest's ports receives requests meant for the guest, but nothing gets out."""
    outcomes = []
    for port in (3128, 80, 443, 53, 4141):
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            try:
                with socket.socket() as server:
                    server.setsockopt(socket.SOL_SOCKET, option, 1)
                    server.bind(("127.0.0.1", port))
                    server.listen()
                    outcomes.append(f"listens on {port}")
            except OSError as error:
                outcomes.append(str(error))
    return outcomes


@escape
def programs_of_the_kernel():
    buffer = ctypes.create_string_buffer(128)
    number = 321 if platform.machine() == "x86_64" else 280
    return call(number, 0, ctypes.byref(buffer), 72)


@escape
def keys_of_the_kernel():
    number = 250 if platform.machine() == "x86_64" else 219
    return call(number, 0, -3 & 0xFFFFFFFF, 0)


@escape
def routes_by_messages_to_the_kernel():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as client:
        body = struct.pack("BBBBBBBBI", socket.AF_INET, 0, 0, 0, 254, 3, 253, 1, 0)
        body += struct.pack("HHI", 8, 4, 1)
        client.sendto(struct.pack("IHHII", 16 + len(body), 24, 0x605, 1, 0) + body, (0, 0))
        return client.recv(4096)
