"""Serves a backend to contract-run: JSON lines on standard input and output. docs/exec-protocol.md describes them.

Needs only the standard library. Copy this file to test a backend of your own:

    contract_pipe.serve(MyAccount)

`serve` calls the class once, with the parameters of the request `hello`. The object has a method `hello` that returns the
declaration, and one for each method of the protocol that it implements, with `_` instead of `.` in the name:
`launch_instance(call, config)`, `oracle_calls(call)`. `call` has the session and the time of the request. A method returns the
result, raises `Failure`, raises `Hangs`, or, for `stream_instances`, yields the pages.
"""

import json
import sys
import threading
import types


class Failure(Exception):
    """The error of a call. `effect` is none, done or unknown; `retry` is never, same_token, or a delay in milliseconds."""

    def __init__(self, kind, message, effect="none", retry="never", **more):
        super().__init__(message)
        if not isinstance(retry, str):
            retry = {"after": duration(retry)}
        self.form = {"kind": kind, "message": message, "effect": effect, "retry": retry, **more}


class Hangs(Exception):
    """The call never returns. Only a simulated cloud needs it: a call that really hangs is simply not answered."""


class Call:
    """What a request says besides its parameters."""

    def __init__(self, request):
        self.session = request.get("session")
        self.now_ms = request["now_ms"]


def duration(milliseconds):
    """Returns a duration in the core's form."""
    return {"secs": milliseconds // 1000, "nanos": milliseconds % 1000 * 1_000_000}


def serve(account_class, concurrent=False):
    """Answers requests until the input ends: one after the other, or each in a thread of its own."""
    output, lock = sys.stdout, threading.Lock()
    # What anybody prints by mistake must not become a reply.
    sys.stdout = sys.stderr

    def reply(**message):
        line = json.dumps(message, ensure_ascii=False) + "\n"
        with lock:
            output.write(line)
            output.flush()

    output.reconfigure(encoding="utf-8", newline="\n")
    sys.stdin.reconfigure(encoding="utf-8")
    account = None
    for line in sys.stdin:
        request = json.loads(line)
        if "cancel" in request:
            continue
        if request["method"] == "hello":
            account = account_class(**request["params"])
            reply(id=request["id"], result=account.hello())
        elif concurrent:
            # A call that hangs must not keep the process alive.
            threading.Thread(target=answer, args=(account, request, reply), daemon=True).start()
        else:
            answer(account, request, reply)
    if hasattr(account, "shut_down"):
        account.shut_down()


def answer(account, request, reply):
    """Carries out one request and replies."""
    number, method = request["id"], request["method"].replace(".", "_")
    try:
        result = getattr(account, method)(Call(request), **request["params"])
        if isinstance(result, types.GeneratorType):
            for page in result:
                reply(id=number, page=page)
            result = None
        reply(id=number, result=result)
    except Failure as failure:
        reply(id=number, error=failure.form)
    except Hangs:
        reply(id=number, hangs=True)
    except Exception as error:  # A bug of the backend is an error of the call, and is shown.
        sys.excepthook(*sys.exc_info())
        reply(id=number, error=Failure("unexpected", f"bug: {error!r}", "unknown", "same_token").form)
