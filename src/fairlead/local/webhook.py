"""Send a message to a URL, as the user whose message it is. Run as a program of its own.

Decides when to try again. Invariant: nothing is sent with more rights than the user has; no redirect is followed, and
it ends after a bounded time.

Arguments: the URL, the user id (or -), the group ids. Standard input: what is sent. Standard output: what went wrong.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401 - what is imported later would be read with the rights of the user
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any

TRIES = 4
PAUSES_S = (1.0, 5.0, 15.0)
TIMEOUT_S = 10.0


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Never: what was said to be sent there is not sent elsewhere."""


def send(url: str, content: bytes) -> str:
    """Try a few times; what went wrong in the end, or nothing."""
    opener = urllib.request.build_opener(_Stay)
    request = urllib.request.Request(url, content, {"Content-Type": "application/json", "User-Agent": "fairlead"})
    wrong = ""
    for pause in (*PAUSES_S, None):
        try:
            with opener.open(request, timeout=TIMEOUT_S):
                return ""
        except urllib.error.HTTPError as error:
            wrong = f"it answered {error.code}"
            error.close()
            if error.code < 500 and error.code != 429:
                return wrong
        except http.client.InvalidURL as error:
            return str(error)
        except http.client.HTTPException:
            wrong = "what it answered is not HTTP"
        except (OSError, ValueError) as error:
            wrong = str(getattr(error, "reason", error))
        if pause is not None:
            time.sleep(pause)
    return f"{wrong}, {TRIES} times"


if __name__ == "__main__":
    target, uid, *gids = sys.argv[1:]
    if uid != "-":
        numbers = [int(each) for each in gids]
        os.setgroups(numbers)
        os.setresgid(numbers[0], numbers[0], numbers[0])
        os.setresuid(int(uid), int(uid), int(uid))
    said = send(target, sys.stdin.buffer.read())
    sys.stdout.write(said[:500])
    sys.exit(1 if said else 0)
