"""Makes all attempts, several at a time and each in its own process, and prints the outcomes."""
import json
import select
import traceback

AT_ONCE = 24
TIME = 15


def refused(error):
    """Returns whether an attempt was refused; other errors are bugs of the attempt."""
    return isinstance(error, (OSError, http.client.HTTPException, subprocess.SubprocessError, UnicodeError))


def attempt(name, pipe):
    signal.alarm(TIME)
    try:
        outcome = f"got {ESCAPES[name]()!r}"
    except BaseException as error:
        outcome = f"refused {error!r}" if refused(error) else "broken " + traceback.format_exc()
    os.write(pipe, json.dumps([name, outcome[:2000]]).encode())
    os._exit(0)


def main():
    waiting, running = list(ESCAPES), {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name = waiting.pop(0)
            ours, theirs = os.pipe()
            process = os.fork()
            if process == 0:
                attempt(name, theirs)
            os.close(theirs)
            running[ours] = (name, process)
        ready, _, _ = select.select(list(running), [], [], TIME)
        for pipe in ready:
            name, process = running.pop(pipe)
            said = os.read(pipe, 65536)
            os.close(pipe)
            os.waitpid(process, 0)
            print(said.decode() if said else json.dumps([name, "refused in time"]), flush=True)


main()
