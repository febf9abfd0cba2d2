"""nginx, tuned: upstream keepalive pool, HTTP/1.1 upstream, no limit of requests per connection.

In: a `Setup`. Out: nginx.conf in the folder and a command line. Directives that routes share stand
at the http level, where nginx keeps one copy: a generous configuration for many routes.
Must never write outside the folder.
"""

import signal
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from bench import newest
from bench.newest import find_newest
from bench.peers import nginx_policy
from bench.peers.peer import Peer, Running, Setup, find_program, read_first_line
from bench.scenario import Route, Scenario

#: Debian's libnginx-mod-stream, of the release that nginx itself is from.
STREAM_MODULE = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
if find_newest("nginx") is not None:
    STREAM_MODULE = newest.STREAM_MODULE
LOG_FORMAT = (
    "log_format bench escape=json '{"
    '"time":"$time_iso8601","client":"$remote_addr","method":"$request_method",'
    '"path":"$request_uri","host":"$host","status":$status,"sent":$bytes_sent,'
    '"received":$request_length,"duration":$request_time,"upstream":"$upstream_addr",'
    '"upstream_time":"$upstream_response_time","request_id":"$request_id",'
    '"agent":"$http_user_agent","forwarded":"$http_x_forwarded_for"}\';\n'
)
HEADERS = """\
 proxy_http_version 1.1;
 proxy_set_header Connection "";
 proxy_set_header Host $host;
 proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
 proxy_set_header X-Forwarded-Proto $scheme;
 proxy_set_header X-Request-Id $request_id;
 proxy_set_header X-Edge-Internal true;
 proxy_set_header X-Edge-Expected-Rq-Timeout-Ms 15000;
 add_header X-Edge-Upstream-Service-Time $upstream_response_time;
 proxy_read_timeout 15s; proxy_connect_timeout 5s;
 proxy_buffering on; proxy_max_temp_file_size 0; proxy_buffers 16 16k; proxy_buffer_size 16k;
 client_body_buffer_size 16k; client_max_body_size 0;
"""
GRPC_HEADERS = """\
 grpc_set_header Host $host;
 grpc_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
 grpc_set_header X-Forwarded-Proto $scheme;
 grpc_set_header X-Request-Id $request_id;
 grpc_set_header X-Edge-Internal true;
 grpc_read_timeout 15s; grpc_connect_timeout 5s; grpc_buffer_size 16k;
"""


class Nginx(Peer):
    """Debian's nginx."""

    name = "nginx"
    policies = True

    def find_program(self) -> Path | None:
        """nginx of the system."""
        return find_program("nginx")

    def read_version(self) -> str:
        """As `nginx -v` says."""
        return read_first_line([str(self.find_program()), "-v"]).rpartition(": ")[2]

    def check_scenario(self, scenario: Scenario) -> str | None:
        """Debian has its stream part as a module; of encodings it has one, and no tokens."""
        if scenario.policy in nginx_policy.WITHOUT:
            return "has no such policy"
        return "has no stream module" if scenario.stream and not STREAM_MODULE.exists() else None

    def render(self, setup: Setup) -> list[str]:
        """Write nginx.conf."""
        config = setup.folder / "nginx.conf"
        with config.open("w") as out:
            out.writelines(_render_stream(setup) if setup.scenario.stream else _render_lines(setup))
        folder = str(setup.folder) + "/"
        program = str(self.find_program())
        return [program, "-p", folder, "-c", str(config), "-e", f"{folder}nginx.err"]

    def prepare_reload(self, running: Running, scenario: Scenario) -> Callable[[], None]:
        """Rewrite the file; SIGHUP to the master takes it up."""
        old = running.setup
        self.render(Setup(scenario, old.folder, old.port, old.origin_port, old.certificate))
        return lambda: running.process.send_signal(signal.SIGHUP)


def _render_stream(setup: Setup) -> Iterator[str]:
    """Connections and datagrams passed on, by server name where they are TLS."""
    scenario, folder = setup.scenario, setup.folder
    yield f"load_module {STREAM_MODULE};\nworker_processes 1; daemon off; pid nginx.pid;\n"
    yield f"error_log {folder}/nginx.err error; worker_rlimit_nofile 20000;\n"
    yield f"events {{ worker_connections {2 * scenario.connections + 1024}; }}\nstream {{\n"
    yield f" upstream b0 {{ server 127.0.0.1:{setup.origin_port}; }}\n"
    yield " proxy_connect_timeout 5s; proxy_timeout 600s; proxy_buffer_size 64k; tcp_nodelay on;\n"
    to, more = "b0", ""
    if scenario.stream == "tls":
        to, more = "$to", " ssl_preread on;"
        yield f" map $ssl_preread_server_name $to {{ {scenario.make_route(0).host} b0; }}\n"
    listen = f"127.0.0.1:{setup.port}" + " udp" * (scenario.stream == "udp")
    yield f" server {{ listen {listen} reuseport;{more} proxy_pass {to}; }}\n}}\n"


def _render_lines(setup: Setup) -> Iterator[str]:
    scenario, folder = setup.scenario, setup.folder
    yield "worker_processes 1; daemon off; pid nginx.pid;\n"
    yield f"error_log {folder}/nginx.err error; worker_rlimit_nofile 20000;\n"
    yield f"events {{ worker_connections {scenario.connections + 1024}; }}\nhttp {{\n"
    yield " default_type text/plain; server_tokens off; keepalive_requests 1000000;\n"
    yield " keepalive_timeout 600s; tcp_nodelay on;\n"
    for area in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        yield f" {area}_temp_path {folder}/{area};\n"
    if scenario.logs:
        yield " " + LOG_FORMAT
        yield f" access_log {folder}/access.log bench buffer=64k flush=1s;\n"
    else:
        yield " access_log off;\n"
    yield f" server_names_hash_max_size {max(1024, 2 * scenario.routes)};\n"
    yield " server_names_hash_bucket_size 128;\n" + HEADERS
    if scenario.http2_backends:
        yield GRPC_HEADERS
        if not scenario.grpc:
            yield " grpc_set_header X-Edge-Expected-Rq-Timeout-Ms 15000;\n"
    keep = 16 if scenario.own_backends else 256  # nginx reserves them: a pool each is dear
    for index in range(scenario.backends):
        servers = " ".join(
            f"server {one}:{setup.origin_port};" for one in scenario.list_addresses()
        )
        yield f" upstream b{index} {{ {servers}"
        yield f" keepalive {keep}; keepalive_requests 10000000; }}\n"
    yield nginx_policy.render_upstream(scenario, setup.origin_port)
    listen = f"127.0.0.1:{setup.port}" + " ssl" * scenario.tls + " http2" * scenario.http2
    tls = ""
    if scenario.tls:
        pair = setup.certificate
        tls = f" ssl_certificate {pair.cert}; ssl_certificate_key {pair.key};"
        tls += " ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:s:10m;"
    yield f" server {{ listen {listen} reuseport default_server; server_name _;{tls}"
    yield " location / { return 404; } }\n"
    for host, routes in groupby(scenario.list_routes(), key=lambda route: route.host):
        yield f" server {{ listen {listen}; server_name {host};{tls}\n"
        yield nginx_policy.render_location(scenario.policy)
        yield from (_render_location(route, scenario.http2_backends) for route in routes)
        yield "  location / { return 404; }\n }\n"
    yield "}\n"


def _render_location(route: Route, http2: bool) -> str:
    """To backends nginx speaks HTTP/2 as gRPC's alone, one request at a time on a connection."""
    to = f"grpc_pass grpc://b{route.backend}" if http2 else f"proxy_pass http://b{route.backend}"
    return f"  location {route.prefix} {{ {to}; }}\n"
