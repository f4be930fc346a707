"""How gunicorn serves the site: `gunicorn -c deploy/gunicorn.conf.py`.

Where systemd or another parent hands it a socket (`LISTEN_FDS`), it listens there and not at
`WEB_BIND`. It believes `X-Forwarded-Proto` of a proxy at `FORWARDED_ALLOW_IPS`, by default
this machine.
"""

import os

wsgi_app = "project.wsgi"
bind = os.environ.get("WEB_BIND") or "127.0.0.1:8000"
# Each thread holds a connection to the database.
workers = int(os.environ.get("WEB_CONCURRENCY") or 2)
worker_class = "gthread"
threads = int(os.environ.get("WEB_THREADS") or 8)
# After SIGTERM, requests under way have so many seconds; a download that is cut off goes on by
# a request for the rest.
graceful_timeout = 30
# Its heartbeat file: in memory, where a slow disk stops no worker.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108
# Signals do all that is needed here.
control_socket_disable = True
