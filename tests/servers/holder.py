"""Starts a server, prints its pid and its folder, and waits to be killed."""

import sys

from storekit.servers import PostgresServer, RedisServer, postgres_of_wheel, valkey_of_wheel

if __name__ == "__main__":
    made = PostgresServer(postgres_of_wheel()) if sys.argv[1] == "postgres" else RedisServer(valkey_of_wheel())
    with made as server:
        if sys.argv[2] == "frozen":
            server.freeze()
        print("server", server.pid, server.folder)
        sys.stdin.read()
