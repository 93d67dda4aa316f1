"""A backend that does one thing wrong: misbehaving.py MODE. `well` is the smallest one that answers everything."""

import json
import os
import sys
import time

mode = sys.argv[1]
HELLO = {
    "protocol": 1, "name": "misbehaving", "time": "virtual" if mode == "silent-in-virtual-time" else "real", "budget_ms": 300,
    "capabilities": {"provider": "misbehaving", "tags": {"max_tags": 9, "max_key_chars": 64, "max_value_chars": 64},
                     "max_user_data_bytes": 9},
    "config": {"image": "image-1", "instance_type": "small"}, "unknown_id": "i-0",
}


def reply(number, **message):
    print(json.dumps({"id": number, **message}), flush=True)


def answer(number, method):
    """Answers a request on an account that is always empty and knows no id."""
    if method == "stop_instance":
        reply(number, error={"kind": "not_found", "effect": "none", "retry": "never", "message": "there is none"})
    elif method == "list_instances":
        reply(number, result=[])
    else:
        reply(number, result=None)


if mode == "dies-at-once":
    sys.exit("there is no cloud")
if mode == "greets-loudly":
    print("starting up ...", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    method, number = request.get("method"), request.get("id")
    if method is None:
        continue
    if method == "hello":
        if mode == "never-greets":
            time.sleep(60)
        reply(number, result=HELLO if mode != "other-version" else {**HELLO, "protocol": 2})
    elif mode == "never-opens" and method == "open":
        time.sleep(60)
    elif method != "stop_instance" or mode == "well":
        answer(number, method)
    elif mode == "garbage":
        print("Traceback ...", flush=True)
    elif mode == "long-line":
        sys.stdout.write("x" * (17 << 20))
        sys.stdout.flush()
    elif mode == "half-line":
        os.write(1, b'{"id"')
        os._exit(0)
    elif mode == "dies":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    elif mode == "answers-twice":
        answer(number, method)
        answer(number, method)
    elif mode == "answers-another":
        reply(number + 1000, result=None)
    elif mode == "wrong-result":
        reply(number, result="stopped")
    elif mode == "forgets-the-effect":
        reply(number, error={"kind": "not_found", "retry": "never", "message": "there is none"})
    elif mode == "not-utf8":
        os.write(1, b"\xff\xfe\n")
    # Otherwise: no answer.
