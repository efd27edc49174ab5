# Looks whether the walls of this sandbox stand: what must answer, and what must not. What it prints:
#   ok                      commands run here
#   tool NAME               what it tries with: curl, wget, python3, bash, or none
#   gate STATUS             what the gate answered, 000 for nothing
#   host STATUS             what the forbidden host answered, 000 for nothing
#   direct reached|blocked  whether an address was reached past the gate
# Nothing after the word means that the tool itself broke down.
# The environment says what: GATE (host:port), HOST (a name), ADDRESS (host:port). An empty one is left out.
LC_ALL=C
export LC_ALL
echo ok

has() { command -v "$1" >/dev/null 2>&1; }

# Asks without the proxy.
past() { (unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy && ask "$@"); }

with_curl() {
    ask() { curl -q -s -k -m 3 -o /dev/null -w "$2" "$1" 2>/dev/null; }
    [ -z "$GATE" ] || echo "gate $(past "http://$GATE/health" '%{http_code}')" &
    [ -z "$HOST" ] || echo "host $(ask "https://$HOST/" '%{http_code}')" &
    [ -z "$ADDRESS" ] || case $(past "http://$ADDRESS/" '%{time_connect}') in
        '') echo "direct" ;;
        0.000 | 0.000000) echo "direct blocked" ;;
        *) echo "direct reached" ;;
    esac &
    wait
}

with_wget() {
    ask() {
        wget -S --no-check-certificate -T 3 -t 1 -O /dev/null "$1" 2>&1 |
            sed -n -e 's/.*HTTP\/1\.[01] \([0-9][0-9][0-9]\).*/\1/p' -e '$s/.*/000/p' | head -n 1
    }
    [ -z "$GATE" ] || echo "gate $(past "http://$GATE/health")" &
    [ -z "$HOST" ] || echo "host $(ask "https://$HOST/")" &
    [ -z "$ADDRESS" ] || case $(past "http://$ADDRESS/") in
        000 | '') echo "direct blocked" ;;
        *) echo "direct reached" ;;
    esac &
    wait
}

with_python() {
    # Isolated: no module of the project is taken for one of its own.
    python3 -I -S -c '
import os, socket, threading

def get(key):
    return os.environ.get(key, "")

def dial(address):
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), 3)

def ask(stream, path, host):
    stream.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    return status(stream)

def status(stream):
    line = b""
    while b"\r\n\r\n" not in line and len(line) < 65536:
        piece = stream.recv(1024)
        if not piece:
            break
        line += piece
    return line.split()[1].decode()[:3]

def gate():
    return ask(dial(get("GATE")), "/health", get("GATE"))

def host():
    name = get("HOST")
    proxy = get("https_proxy") or get("HTTPS_PROXY")
    if proxy:
        stream = dial(proxy.rpartition("/")[2] if "//" in proxy else proxy)
        stream.sendall(f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n".encode())
        if status(stream) != "200":
            return "000"
    else:
        stream = dial(name + ":443")
    import ssl
    context = ssl._create_unverified_context()
    return ask(context.wrap_socket(stream, server_hostname=name), "/", name)

def direct():
    dial(get("ADDRESS"))
    return "reached"

def tell(name, probe, nothing):
    try:
        seen = probe()
    except Exception:
        seen = nothing
    os.write(1, f"{name} {seen}\n".encode())

probes = [("GATE", "gate", gate, "000"), ("HOST", "host", host, "000"), ("ADDRESS", "direct", direct, "blocked")]
for key, *rest in probes:
    if get(key):
        threading.Thread(target=tell, args=rest).start()
'
}

with_bash() {
    bash --norc -c '
# Whoever hangs up early has answered nothing, or has said it already.
trap "" PIPE
ask() {
    exec 3<>"/dev/tcp/${1%:*}/${1##*:}" || {
        echo 000
        return
    }
    printf "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n" "$2" "$3" >&3
    read -t 3 -r _ status _ <&3
    echo "${status:-000}"
}
proxy=${http_proxy:-$HTTP_PROXY}
proxy=${proxy#http://}
proxy=${proxy%/}
[ -z "$GATE" ] || echo "gate $(ask "$GATE" /health "$GATE")" &
# It cannot speak TLS, so it asks for the same host without.
[ -z "$HOST" ] || echo "host $(ask "${proxy:-$HOST:80}" "http://$HOST/" "$HOST")" &
[ -z "$ADDRESS" ] || if (exec 3<>"/dev/tcp/${ADDRESS%:*}/${ADDRESS##*:}"); then
    echo "direct reached"
else
    echo "direct blocked"
fi &
wait
' 2>/dev/null
}

[ -n "$GATE$HOST$ADDRESS" ] || exit 0
if has curl; then
    echo "tool curl" && with_curl
elif has wget; then
    echo "tool wget" && with_wget
elif has python3; then
    echo "tool python3" && with_python
elif has bash; then
    echo "tool bash" && with_bash
else
    echo "tool none"
fi
