"""Real Redis servers that are several: a cluster; a master that a sentinel looks after."""

import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from renders.demo.embedded_redis import find_server
from renders.demo.processes import Child, free_port, kill_group, wait_until

START_SECONDS = 15.0
SLOTS = 16384
PASSWORD, SENTINEL_PASSWORD = "pass/word#of:redis", "pass@word?of:sentinel"
QUOTED, SENTINEL_QUOTED = "pass%2Fword%23of%3Aredis", "pass%40word%3Fof%3Asentinel"


class Server:
    """One process: a server, or with `sentinel` one that watches. `lines` are its configuration."""

    def __init__(self, folder: Path, *lines: str, password: str, sentinel: bool = False) -> None:
        self.port = free_port()
        self.client = redis.Redis(
            port=self.port, password=password, socket_timeout=5, retry=Retry(NoBackoff(), 0)
        )
        self._folder = folder / str(self.port)
        self._folder.mkdir()
        configuration = self._folder / "server.conf"
        common = (f"port {self.port}", "bind 127.0.0.1", f"dir {self._folder}")
        lines = (*common, f'requirepass "{password}"', *lines)
        configuration.write_text("\n".join(lines) + "\n")
        self._command = [find_server(), str(configuration), *(["--sentinel"] if sentinel else [])]
        self._child: Child | None = None

    def start(self) -> None:
        """Start it and return once it answers."""
        self._child = Child("Redis", self._command, log=self._folder / "log", cwd=self._folder)
        wait_until(self._answers, f"Redis on {self.port}", START_SECONDS)

    def kill(self) -> None:
        """SIGKILL."""
        if self._child:
            kill_group(self._child)

    def fall_silent(self) -> None:
        """Let it keep its connections and answer nothing."""
        assert self._child
        self._child.process.send_signal(signal.SIGSTOP)

    def speak(self) -> None:
        """Let it answer again."""
        assert self._child
        self._child.process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        assert self._child
        if not self._child.alive:
            raise self._child.death()
        with suppress(redis.RedisError):
            return bool(self.client.ping())
        return False


class Servers:
    """Some servers and their folder. A context manager."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="renders-redis-"))
        self.servers: list[Server] = []

    def __enter__(self) -> Any:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for server in self.servers:
            server.kill()
            server.client.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self) -> str:
        """The address for `REDIS_URL`."""
        raise NotImplementedError

    def start(self) -> None:
        """Start all, and return once they know each other."""
        raise NotImplementedError

    def kill(self) -> None:
        """All are gone at once."""
        for server in self.servers:
            server.kill()

    def fall_silent(self) -> None:
        """All keep their connections and answer nothing."""
        for server in self.servers:
            server.fall_silent()


class Cluster(Servers):
    """Three masters that share the slots."""

    def __init__(self) -> None:
        super().__init__()
        for _ in range(3):
            self.servers.append(
                Server(
                    self.folder,
                    "cluster-enabled yes",
                    f"cluster-port {free_port()}",
                    "cluster-node-timeout 1000",
                    'save ""',
                    password=PASSWORD,
                )
            )

    @property
    def url(self) -> str:
        """The address for `REDIS_URL`; of two nodes, the third is found."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers[:2])
        return f"redis+cluster://:{QUOTED}@{hosts}"

    def start(self) -> None:
        for number, server in enumerate(self.servers):
            server.start()
            first, last = (SLOTS * step // len(self.servers) for step in (number, number + 1))
            server.client.execute_command("CLUSTER ADDSLOTSRANGE", first, last - 1)
            server.client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
        first_one = self.servers[0]
        bus = first_one.client.config_get("cluster-port")["cluster-port"]
        for server in self.servers[1:]:
            server.client.execute_command("CLUSTER MEET", "127.0.0.1", first_one.port, bus)
        wait_until(self.sound, "The cluster", START_SECONDS)

    def sound(self) -> bool:
        """Whether every node knows all others and serves."""
        return all(
            int(info["cluster_known_nodes"]) == 3 and info["cluster_state"] == "ok"
            for info in (server.client.cluster("info") for server in self.servers)
        )

    def holder(self, key: str) -> Server:
        """The node that holds this key."""
        slot = int(self.servers[0].client.cluster("keyslot", key))
        return self.servers[(slot * len(self.servers) + len(self.servers) - 1) // SLOTS]


class Watched(Servers):
    """A master, its replica, and a sentinel that puts the one in the other's place."""

    def __init__(self) -> None:
        super().__init__()
        auth = f'masterauth "{PASSWORD}"', 'save ""'
        self.master = Server(self.folder, *auth, password=PASSWORD)
        replicaof = f"replicaof 127.0.0.1 {self.master.port}"
        self.replica = Server(
            self.folder, *auth, replicaof, "repl-diskless-sync-delay 0", password=PASSWORD
        )
        self.sentinel = Server(
            self.folder,
            f"sentinel monitor renders 127.0.0.1 {self.master.port} 1",
            f'sentinel auth-pass renders "{PASSWORD}"',
            "sentinel down-after-milliseconds renders 500",
            "sentinel failover-timeout renders 2000",
            password=SENTINEL_PASSWORD,
            sentinel=True,
        )
        self.servers += [self.master, self.replica, self.sentinel]
        self._gone = free_port()

    @property
    def url(self) -> str:
        """The address for `REDIS_URL`; the first sentinel of it is down."""
        hosts = f"127.0.0.1:{self._gone},127.0.0.1:{self.sentinel.port}"
        return f"redis+sentinel://:{QUOTED}@{hosts}/renders/1?sentinel_password={SENTINEL_QUOTED}"

    def start(self) -> None:
        self.master.start()
        self.master.client.config_set("repl-diskless-sync-delay", 0)
        self.replica.start()
        wait_until(self._replicates, "The replica", START_SECONDS)
        self.sentinel.start()
        wait_until(self._knows_the_replica, "The sentinel", START_SECONDS)

    def _replicates(self) -> bool:
        return self.replica.client.info("replication")["master_link_status"] == "up"

    def _knows_the_replica(self) -> bool:
        replicas = self.sentinel.client.sentinel_slaves("renders")
        return any(replica["port"] == self.replica.port for replica in replicas)
