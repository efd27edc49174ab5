"""Without the gate: directly to addresses, with every kind of socket."""


@escape
def connect_to_every_address_outside():
    return everywhere(lambda address: tcp(address, PORT))


@escape
def connect_to_the_usual_ports_outside():
    return everywhere(lambda address: [tcp(address, port) for port in (22, 80, 443, 2375, 3128)])


@escape
def connect_to_every_port_outside():
    open_ports = []
    for address in [HOSTS[0], GATEWAYS[0]]:
        for port in range(1, 65536):
            with socket.socket(family(address), socket.SOCK_STREAM) as client:
                client.settimeout(PATIENCE)
                if client.connect_ex((address, port)) == 0:
                    open_ports.append((address, port))
    return open_ports


@escape
def connect_by_the_names_of_the_engine():
    names = ["host.docker.internal", "gateway.docker.internal", "host.containers.internal"]
    return everywhere(lambda name: tcp(socket.gethostbyname(name), PORT), names)


@escape
def connect_to_the_sink_on_own_loopback():
    addresses = ["127.0.0.1", "127.1.0.1", "127.255.255.254", "0.0.0.0", "::1", "::"]
    return everywhere(lambda address: tcp(address, PORT), addresses)


@escape
def connect_to_mapped_addresses():
    mapped = [f"::ffff:{address}" for address in HOSTS if ":" not in address]
    return everywhere(lambda address: tcp(address, PORT), mapped)


@escape
def connect_to_addresses_that_hide_others():
    hidden = ["64:ff9b::ac11:1", "2002:ac11:1::1", "fe80::1", "ff02::1", "2001:db8::1"]
    return everywhere(lambda address: tcp(address, PORT), hidden)


@escape
def connect_to_metadata():
    addresses = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"]
    return everywhere(lambda address: tcp(address, 80), addresses)


@escape
def connect_without_a_handshake():
    def fast(address):
        with socket.socket(family(address), socket.SOCK_STREAM) as client:
            client.settimeout(PATIENCE)
            return client.sendto(b"secret", 0x20000000, (address, PORT))
    return everywhere(fast)


@escape
def connect_through_a_device():
    def bound(address):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.settimeout(PATIENCE)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0\0")
            client.connect((address, PORT))
    return everywhere(bound)


@escape
def connect_from_a_foreign_address():
    def foreign(address):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.settimeout(PATIENCE)
            client.setsockopt(socket.SOL_IP, 15, 1)
            client.setsockopt(socket.SOL_IP, 19, 1)
            client.bind(("172.17.0.9", 0))
            client.connect((address, PORT))
    return everywhere(foreign)


@escape
def connect_with_a_source_route():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(PATIENCE)
        hops = bytes([131, 7, 4]) + socket.inet_aton(HOSTS[0]) + b"\0"
        client.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, hops)
        client.connect((HOSTS[0], PORT))


@escape
def datagrams_to_every_address():
    return everywhere(lambda address: udp(address, PORT))


@escape
def datagrams_that_look_like_quic():
    packet = b"\xc3\x00\x00\x00\x01\x08" + os.urandom(8) + b"\x00\x00\x44\x9e" + os.urandom(1180)
    return everywhere(lambda address: (udp(address, 443, packet), udp(address, PORT, packet)))


@escape
def datagrams_to_everybody():
    def broadcast(address):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            return client.sendto(b"secret", (address, PORT))
    return everywhere(broadcast, ["255.255.255.255", "172.17.255.255", "224.0.0.1", "224.0.0.251"])


@escape
def datagrams_to_a_group():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
        client.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        return client.sendto(b"secret", ("239.1.2.3", PORT))


@escape
def datagrams_of_the_light_kind():
    return everywhere(lambda address: udp(address, PORT, protocol=136))


@escape
def streams_of_other_protocols():
    def other(address):
        outcomes = []
        for kind, protocol in ((socket.SOCK_STREAM, 132), (socket.SOCK_SEQPACKET, 132), (6, 33), (1, 262)):
            try:
                with socket.socket(socket.AF_INET, kind, protocol) as client:
                    client.settimeout(PATIENCE)
                    client.connect((address, PORT))
                    client.send(b"secret")
            except OSError as error:
                outcomes.append(str(error))
        return outcomes
    return everywhere(other)


@escape
def echo_requests_by_hand():
    packet = struct.pack("!BBHHH", 8, 0, 0xF7FE, 0, 1)

    def ping(address, kind=socket.SOCK_RAW):
        with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as client:
            client.settimeout(0.5)
            client.sendto(packet, (address, 0))
            return "an answer: you-have-reached-the-sink", client.recv(100)
    return everywhere(ping), everywhere(lambda address: ping(address, socket.SOCK_DGRAM))


@escape
def echo_requests_by_program():
    said = sh(f"ping -c 1 -W 1 {HOSTS[0]} && echo you-have-reached-the-sink; true")
    return said


@escape
def packets_of_my_own():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as client:
        return client.sendto(b"\x45" + bytes(39), (HOSTS[0], 0))


@escape
def frames_of_my_own():
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300) as client:
        client.bind(("lo", 0))
        return client.send(b"\xff" * 60)


@escape
def virtual_sockets_to_the_host():
    outcomes = []
    for number in (1, 2, 3, 0xFFFFFFFF):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            try:
                with socket.socket(40, kind) as client:
                    client.settimeout(PATIENCE)
                    client.connect((number, PORT))
            except OSError as error:
                outcomes.append(str(error))
    return outcomes


@escape
def sockets_of_every_family():
    outcomes = []
    for number in range(3, 46):
        if number in (socket.AF_INET6, socket.AF_NETLINK):
            continue
        for kind in (1, 2, 3, 5):
            try:
                socket.socket(number, kind).close()
                outcomes.append(f"family {number} kind {kind} is open")
            except OSError:
                pass
    return outcomes


@escape
def sockets_without_a_path():
    outcomes = []
    for name in (SOCKET, "/containerd-shim/moby", "ralph", "ralph-gate"):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.settimeout(PATIENCE)
                client.connect("\0" + name)
                outcomes.append(f"connected to {name}")
        except OSError as error:
            outcomes.append(str(error))
    return outcomes


@escape
def sockets_with_a_path():
    known = ["/.ralph-link/host", "/var/run/docker.sock", "/run/docker.sock",
             "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/dbus/system_bus_socket"]
    found = sh("find / -xdev -type s 2>/dev/null; true").decode().split()
    outcomes = []
    for path in known + found:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.settimeout(PATIENCE)
                client.connect(path)
                client.send(b"GET /containers/json HTTP/1.0\r\n\r\n")
                outcomes.append((path, read(client)))
        except OSError as error:
            outcomes.append(str(error))
    return outcomes


@escape
def rings_instead_of_sockets():
    if platform.machine() not in ("x86_64", "aarch64"):
        return "no numbers for this machine"
    return call(425, 8, ctypes.byref(ctypes.create_string_buffer(120)))


@escape
def sockets_of_the_first_process():
    outcomes = []
    for number in range(3, 40):
        try:
            with open(f"/proc/1/fd/{number}", "wb", buffering=0) as file:
                outcomes.append(file.write(b"secret"))
        except OSError as error:
            outcomes.append(str(error))
    return set(outcomes)


@escape
def descriptors_of_the_first_process():
    numbers = {"pidfd_open": 434, "pidfd_getfd": 438}
    process = call(numbers["pidfd_open"], 1, 0)
    return [call(numbers["pidfd_getfd"], process, number, 0) for number in range(3, 20)]
