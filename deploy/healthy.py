"""Whether the web server can work (`/readyz` at `WEB_BIND`): `python deploy/healthy.py`; 0 or 1."""

import http.client
import os
import sys

SECONDS = 5


def main() -> int:
    """The exit status; what is wrong goes to standard error."""
    address = os.environ.get("WEB_BIND") or "127.0.0.1:8000"
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(
        "127.0.0.1" if host in {"", "0.0.0.0", "[::]"} else host.strip("[]"),  # noqa: S104
        int(port),
        timeout=SECONDS,
    )
    try:
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        print(f"{address} does not answer: {error}", file=sys.stderr)  # noqa: T201
        return 1
    finally:
        connection.close()
    if status != 200:
        print(f"{address} answers with {status}", file=sys.stderr)  # noqa: T201
    return int(status != 200)


if __name__ == "__main__":
    sys.exit(main())
