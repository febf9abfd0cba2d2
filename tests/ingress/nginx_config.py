"""A configuration for real nginx without Lua, from the controller's model.

In: `Model`, the ports and files of this run. Out: text of nginx.conf. Written after the template of ingress-nginx 1.15.1;
Lua is replaced: ssl-redirect by maps and `if`, the balancer by a header that names the upstream, the certificate by a map on
SNI, a canary by maps on its header and cookie. `set_escape_uri` is replaced by `ESCAPE`, which the oracle expands.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ingress.nginx_servers import (
    DEFAULT_CERTIFICATE,
    DEFAULT_SERVER,
    Location,
    Model,
    Server,
    Upstream,
)

#: Header that names the upstream, the authentication URL, and the request.
UPSTREAM, AUTH, NUMBER = "X-Oracle-Upstream", "X-Oracle-Auth", "X-Oracle-Number"
#: The oracle has to escape the URI between these marks.
#: Measured on `set_escape_uri` of Debian's libnginx-mod-http-set-misc 0.33: letters, digits and these stay.
UNESCAPED = "-_.~!*'()@$,|`"
ESCAPE, ESCAPED = "@escape@", "@escaped@"


@dataclass(frozen=True)
class Run:
    """Ports and files of one run."""

    folder: Path
    http: int
    https: int
    standard: int  # the controller's default backend
    origin: int


def render(model: Model, run: Run) -> str:
    """The configuration file."""
    return _Render(model, run).text()


def quoted(text: str) -> str:
    """A quoted parameter."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Render:
    def __init__(self, model: Model, run: Run) -> None:
        self.model, self.run = model, run
        self.lines: list[str] = []
        self.forwarded = model.config.get("use-forwarded-headers") == "true"
        self.zones: set[str] = set()
        self.origins: dict[int, str] = {}

    def text(self) -> str:
        servers = [self.model.servers[name] for name in sorted(self.model.servers)]
        folder = self.run.folder
        temporary = " ".join(
            f"{name}_temp_path {folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        self._put(
            "daemon off; master_process off; worker_processes 1;",
            f"pid {folder}/pid; error_log {folder}/log error;",
            "events { worker_connections 512; }",
            "http {",
            f"access_log off; {temporary}",
            "server_names_hash_bucket_size 256; variables_hash_bucket_size 256;",
            "map_hash_bucket_size 256; proxy_headers_hash_bucket_size 256;",
            "server_name_in_redirect off; port_in_redirect off; uninitialized_variable_warn off;",
            "server_tokens off; keepalive_requests 100000; client_body_buffer_size 64k;",
            'geo $literal_dollar { default "$"; }',
            f"upstream origin {{ server 127.0.0.1:{self.run.origin}; keepalive 8; }}",
            f"upstream standard {{ server 127.0.0.1:{self.run.standard}; keepalive 8; }}",
            f"server {{ listen 127.0.0.1:{self.run.standard}; location / {{ return 404; }} }}",
        )
        if self.model.config.get("relative-redirects") == "true":
            self._put("absolute_redirect off;")
        self._maps()
        self._certificates()
        for number, upstream in enumerate(self.model.upstreams.values()):
            self._canary(number, upstream)
        for server in servers:
            for location in server.locations:
                self._zones(location)
                self._cors_maps(location)
        for name, server in self.model.redirects():
            self._redirect_server(name, server)
        for server in servers:
            self._server(server)
        self._put("}")
        return "\n".join(self.lines) + "\n"

    def _put(self, *lines: str) -> None:
        self.lines += lines

    def _map(self, source: str, name: str, **entries: str) -> None:
        self._put(f"map {source} ${name} {{", *(f"  {line}" for line in entries.values()), "}")

    # ---- variables that Lua sets in ingress-nginx ----

    def _maps(self) -> None:
        put = self._put
        if self.forwarded or self.model.config.get("enable-real-ip") == "true":
            put("set_real_ip_from 0.0.0.0/0; real_ip_header X-Forwarded-For; real_ip_recursive on;")
        put(*(f"deny {one};" for one in self._setting("block-cidrs")))
        for setting, source in (("block-user-agents", "user_agent"), ("block-referers", "referer")):
            entries = " ".join(f"{one} 1;" for one in self._setting(setting))
            put(f"map $http_{source} $block_{source} {{ default 0; {entries} }}")
        put('map $http_host $this_host { "" $host; default $http_host; }')
        if self.forwarded:
            put(
                'map $http_x_forwarded_proto $pass_access_scheme { "" $scheme; default $http_x_forwarded_proto; }'
            )
            put(
                'map $http_x_forwarded_host $best_http_host { "" $this_host; "~^(?<first_host>[^,]*)" $first_host; }'
            )
            put(
                'map $http_x_forwarded_port $pass_port { "" $own_port; default $http_x_forwarded_port; }'
            )
            put(
                'map $http_x_forwarded_port $www_port { "" $server_port; default $http_x_forwarded_port; }'
            )
        else:
            put("map $scheme $pass_access_scheme { default $scheme; }")
            put("map $http_host $best_http_host { default $this_host; }")
            put("map $scheme $pass_port { default $own_port; }")
            put("map $server_port $www_port { default $server_port; }")
        put("map $scheme $own_port { https 443; default $server_port; }")
        put('map $http_x_request_id $req_id { default $http_x_request_id; "" "<random>"; }')
        put('map $http_upgrade $connection_upgrade { default upgrade; "" ""; }')
        put('map $best_http_host $redirect_host { "~^(?<host_only>[^:]*)" $host_only; }')
        put(
            'map $request_uri $uri_without_slash { "~^(?<before_slash>.*)/$" $before_slash; default $request_uri; }'
        )
        put(
            'map $http_x_forwarded_for $full_x_forwarded_for { default "$http_x_forwarded_for, $realip_remote_addr"; "" "$realip_remote_addr"; }'
        )
        put('map $pass_access_scheme $is_plain { "~^http$" 1; default ""; }')
        put(
            'map "$pass_access_scheme:$has_certificate" $is_plain_secured { "~^http:1$" 1; default ""; }'
        )
        put(f'map $scheme $hsts {{ https "{self._hsts()}"; default ""; }}')

    def _setting(self, name: str) -> list[str]:
        listed = self.model.config.get(name, "").split(",")
        return [one.strip() for one in listed if one.strip()]

    def _hsts(self) -> str:
        config = self.model.config
        if config.get("hsts", "true") != "true":
            return ""
        value = "max-age=" + config.get("hsts-max-age", "31536000")
        if config.get("hsts-include-subdomains", "true") == "true":
            value += "; includeSubDomains"
        return value + ("; preload" if config.get("hsts-preload") == "true" else "")

    def _certificates(self) -> None:
        table = self.model.certificate_servers()
        table.pop(DEFAULT_SERVER, None)
        files = {DEFAULT_CERTIFICATE: f"{self.run.folder}/default.pem"}
        for name, pem in self.model.certificates.items():
            files[name] = f"{self.run.folder}/{name.replace('/', '_')}.pem"
            Path(files[name]).write_bytes(pem)
        exact = {name: one for name, one in table.items() if not name.startswith("*.")}
        wild = {name[2:]: one for name, one in table.items() if name.startswith("*.")}
        lines = [(f"~*^{re.escape(name)}\\.?$", one) for name, one in exact.items()]
        lines += [(f"~*^[^.]+\\.{re.escape(name)}\\.?$", one) for name, one in wild.items()]
        self._put("map $ssl_server_name $certificate_file {")
        self._put(*(f"  {quoted(name)} {files[one]};" for name, one in lines))
        self._put(f"  default {files[DEFAULT_CERTIFICATE]};", "}", "map $host $has_certificate {")
        self._put(*(f"  {quoted(name)} 1;" for name, _ in lines), '  default "";', "}")

    def _canary(self, number: int, upstream: Upstream) -> None:
        """$upstream_N: the upstream, or its canary by header, cookie and weight."""
        name = upstream.alternatives[0] if upstream.alternatives else ""
        other = self.model.upstreams.get(name)
        policy = other.policy if other and other.up else None
        if other is None or policy is None:
            self._put(f"map $scheme $upstream_{number} {{ default {quoted(upstream.name)}; }}")
            return
        header = policy.header.lower().replace("-", "_")
        if header and policy.header_value:
            by_header = f"{quoted('~^' + re.escape(policy.header_value) + '$')} yes;"
        elif header and policy.header_pattern:
            by_header = f"{quoted('~' + policy.header_pattern)} yes;"
        else:
            by_header = '"~^always$" yes; "~^never$" no;'
        source = f"$http_{header}" if header else "$literal_dollar"
        # An absent header never matches: Lua asks for the variable first.
        self._put(f'map {source} $header_{number} {{ "" ""; {by_header} default ""; }}')
        cookie = f"$cookie_{policy.cookie}" if policy.cookie else "$literal_dollar"
        self._put(
            f'map {cookie} $cookie_{number} {{ "~^always$" yes; "~^never$" no; default ""; }}'
        )
        always = policy.weight >= max(policy.weight_total, 100)
        self._put(
            f'map "$header_{number}:$cookie_{number}" $upstream_{number} {{',
            f'  "~^yes:" {quoted(other.name)}; "~^no:" {quoted(upstream.name)};',
            f'  "~^:yes" {quoted(other.name)}; "~^:no" {quoted(upstream.name)};',
            f"  default {quoted(other.name if always else upstream.name)};",
            "}",
        )

    def _cors(self, location: Location) -> None:
        """Headers where the origin is allowed; a preflight is 204. `_cors_maps` wrote the maps."""
        name = self.origins.get(id(location))
        if name is None:
            return
        self._put(f"add_header Access-Control-Allow-Origin ${name} always;")
        for number, header in enumerate(location.settings.cors_headers):
            self._put(f"add_header {header} ${name}_{number} always;")
        self._put(f"if (${name}_preflight) {{ return 204; }}")

    def _cors_maps(self, location: Location) -> None:
        pattern = location.settings.cors_origins
        if pattern is None or location.settings.denied:
            return
        name = self.origins[id(location)] = f"cors_{len(self.origins)}"
        entries = 'default "*";'
        if pattern != "*":
            entries = f'{quoted("~*" + pattern)} $http_origin; default "";'
        self._put(f"map $http_origin ${name} {{ {entries} }}")
        for number, value in enumerate(location.settings.cors_headers.values()):
            self._put(f'map ${name} ${name}_{number} {{ "" ""; default {quoted(value)}; }}')
        self._put(
            f'map "$request_method:${name}" ${name}_preflight {{ "~^OPTIONS:." 1; default ""; }}'
        )

    def _zones(self, location: Location) -> None:
        ingress, settings = location.ingress, location.settings
        if ingress is None or not settings.limits:
            return
        name = _zone(location)
        if name in self.zones:
            return
        self.zones.add(name)
        exempt = "".join(f" {one} 1;" for one in settings.unlimited)
        self._put(
            f"geo $remote_addr $allowed_{name} {{ default 0;{exempt} }}",
            f'map $allowed_{name} $limit_{name} {{ 0 $binary_remote_addr; 1 ""; }}',
        )
        for kind, unit in (("limit-rps", "s"), ("limit-rpm", "m")):
            if limit := settings.limits.get(kind):
                self._put(
                    f"limit_req_zone $limit_{name} zone={name}_{unit}:1m rate={limit}r/{unit};"
                )

    # ---- servers ----

    def _listen(self, server: str) -> None:
        default = " default_server" if server == DEFAULT_SERVER else ""
        self._put(
            f"listen 127.0.0.1:{self.run.http}{default};",
            f"listen 127.0.0.1:{self.run.https} ssl{default};",
            "ssl_certificate $certificate_file; ssl_certificate_key $certificate_file;",
        )

    def _redirect_server(self, name: str, server: Server) -> None:
        code = self.model.config.get("http-redirect-code", "308")
        scheme = "$pass_access_scheme" if self.forwarded else "$scheme"
        self._put("server {", f"server_name {quoted(name)};")
        self._listen(name)
        self._put(*_BLOCKS)
        self._put(f"return {code} {scheme}://{server.name}:$www_port$uri_without_slash;", "}")

    def _server(self, server: Server) -> None:
        names = [_server_name(server.name), *(quoted(one) for one in server.aliases)]
        self._put("server {", f"server_name {' '.join(names)};")
        self._listen(server.name)
        self._put(*_BLOCKS)
        pages: dict[str, set[int]] = {}
        for location in server.locations:
            pages.setdefault(location.page_backend, set()).update(location.settings.error_codes)
        for upstream, codes in sorted(pages.items()):
            for code in sorted(codes):
                self._page(upstream, code)
        regex = any(one.needs_rewrite() or one.settings.use_regex for one in server.locations)
        for location in server.locations:
            self._location(server, location, regex=regex)
        self._put("}")

    def _page(self, upstream: str, code: int) -> None:
        self._put(
            f"location @custom_{upstream}_{code} {{ internal; proxy_intercept_errors off;",
            f"proxy_set_header X-Code {code}; proxy_set_header X-Format $http_accept;",
            "proxy_set_header X-Original-URI $request_uri;",
            *_DESCRIPTION,
            "proxy_set_header X-Request-ID $req_id; proxy_set_header X-Forwarded-For $remote_addr;",
            "proxy_set_header Host $best_http_host;",
            f"proxy_set_header {UPSTREAM} {quoted(upstream)};",
            "rewrite (.*) / break;",
            f"proxy_pass http://{_pool(upstream)};",
            "}",
        )

    def _location(self, server: Server, location: Location, *, regex: bool) -> None:
        settings, put = location.settings, self._put
        if settings.app_root:
            put(f"if ($uri = /) {{ return 302 $scheme://$http_host{settings.app_root}; }}")
        external = self._external(location)
        auth_path = ""
        if external.url:
            encoded = location.path.encode().hex()
            auth_path = f"/_external-auth-{encoded}-{'Exact' if location.exact else 'Prefix'}"
            self._auth_location(auth_path, location)
        signin = "@" + hashlib.sha1((location.path + external.signin).encode()).hexdigest()
        if external.signin and not settings.denied:
            put(
                f"location {signin} {{ internal; add_header Set-Cookie $auth_cookie;",
                f"return 302 {quoted(_signin(external.signin, external.signin_param))}; }}",
            )
        if regex:
            head = f"~* {quoted('^' + location.path)}"
        else:
            head = f"{'= ' if location.exact else ''}{quoted(location.path)}"
        put(f"location {head} {{")
        self._describe(server, location)
        put(f"port_in_redirect {'on' if settings.port_in_redirect else 'off'};")
        put("add_header Strict-Transport-Security $hsts always;")
        if settings.denied:
            put("return 503; }")
            return
        for name, value in settings.response_headers.items():
            put(f"add_header {name} {quoted(value.replace('$', '${literal_dollar}'))} always;")
        self._cors(location)
        put(*(f"deny {one};" for one in settings.deny))
        put(
            *(f"allow {one};" for one in settings.allow), *(["deny all;"] if settings.allow else [])
        )
        listed = self.model.config.get("no-auth-locations", "/.well-known/acme-challenge")
        if not _in_list(location, listed):
            self._authentication(location, auth_path, signin)
        self._limit(location)
        if re.fullmatch(r"\d+[kKmMgG]?", settings.body_size):
            put(f"client_max_body_size {settings.body_size};")
        self._request_headers(location)
        if settings.satisfy:
            put(f"satisfy {settings.satisfy};")
        if settings.relative:
            put("absolute_redirect off;")
        if settings.error_codes and settings.intercepts:
            put("proxy_intercept_errors on;")
        for code in settings.error_codes:
            put(f"error_page {code} = @custom_{location.page_backend}_{code};")
        self._rewrite_phase(location)
        put("}")

    def _rewrite_phase(self, location: Location) -> None:
        """Return, redirects, the rewrite and the pass: what the rewrite module and Lua do in this order."""
        settings, put = location.settings, self._put
        put(settings.snippet)
        if settings.redirect_url:
            put(f"return {settings.redirect_code} {settings.redirect_url};")
        rewrite = ""
        if settings.target and settings.target != location.path:
            rewrite = f"rewrite {quoted('(?i)' + location.path)} {settings.target} break;"
        if settings.target.startswith(("http://", "https://")):
            put(rewrite)
        listed = self.model.config.get("no-tls-redirect-locations", "/.well-known/acme-challenge")
        if not _in_list(location, listed):
            uri = "$request_uri" if settings.preserve_trailing_slash else "$uri_without_slash"
            port = ":443" if settings.port_in_redirect else ""
            code = self.model.config.get("http-redirect-code", "308")
            for wanted, variable in (
                (settings.force_ssl_redirect, "$is_plain"),
                (settings.ssl_redirect, "$is_plain_secured"),
            ):
                if wanted:
                    put(f"if ({variable}) {{ return {code} https://$redirect_host{port}{uri}; }}")
        upstream = self.model.upstreams.get(location.backend)
        if upstream is None or not upstream.up:
            put("return 503;")
        if not settings.target.startswith(("http://", "https://")):
            put(rewrite)
        put(f"proxy_pass http://{_pool(location.backend)};")
        if settings.redirect_from in ("default", "off"):
            put(f"proxy_redirect {settings.redirect_from};")
        elif settings.redirect_to != "off":
            put(f"proxy_redirect {settings.redirect_from} {settings.redirect_to};")

    def _describe(self, server: Server, location: Location) -> None:
        """Variables of error pages: the Ingress, and the Service of its first rule for this path."""
        ingress = location.ingress
        values = ["", "", "", ""]
        if ingress is not None:
            values[:2] = [ingress.namespace, ingress.name]
            chosen = ingress.default_backend
            for rule in ingress.rules:
                if (rule.get("host") or DEFAULT_SERVER) != server.name:
                    continue
                same = [
                    one
                    for one in (rule.get("http") or {}).get("paths") or []
                    if (one.get("path") or "/") == (location.ingress_path or "/")
                ]
                if same:
                    chosen = same[0]["backend"]["service"]
                    break
            if chosen:
                port = chosen.get("port") or {}
                values[2:] = [chosen["name"], str(port.get("number") or port.get("name"))]
        names = ("namespace", "ingress_name", "service_name", "service_port")
        self._put(*(f"set ${name} {quoted(one)};" for name, one in zip(names, values, strict=True)))

    def _external(self, location: Location):  # type: ignore[no-untyped-def]
        settings, config = location.settings, self.model.config
        if settings.external.url or location.ingress is None or not settings.global_auth:
            return settings.external
        if not config.get("global-auth-url"):
            return settings.external
        made = type(settings.external)(config["global-auth-url"])
        made.host = urlsplit(made.url).hostname or ""
        made.method = config.get("global-auth-method", "")
        made.signin = config.get("global-auth-signin", "")
        made.signin_param = config.get("global-auth-signin-redirect-param", "")
        listed = config.get("global-auth-response-headers", "").split(",")
        made.response_headers = [one.strip() for one in listed if one.strip()]
        made.request_redirect = config.get("global-auth-request-redirect", "")
        made.always_cookie = config.get("global-auth-always-set-cookie") == "true"
        return made

    def _auth_location(self, path: str, location: Location) -> None:
        external = self._external(location)
        put = self._put
        put(
            f"location = {path} {{ internal; proxy_intercept_errors off; proxy_pass_request_body off;"
        )
        put('proxy_set_header Content-Length ""; proxy_set_header X-Forwarded-Proto "";')
        put("proxy_set_header X-Request-ID $req_id;")
        if external.method:
            put(f"proxy_method {external.method}; proxy_set_header X-Original-URI $request_uri;")
            put("proxy_set_header X-Scheme $pass_access_scheme;")
        put(
            f"proxy_set_header Host {external.host};",
            "proxy_set_header X-Original-URL $scheme://$http_host$request_uri;",
            "proxy_set_header X-Original-Method $request_method;",
            'proxy_set_header X-Sent-From "nginx-ingress-controller";',
            "proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $remote_addr;",
            f"proxy_set_header X-Auth-Request-Redirect {external.request_redirect or '$request_uri'};",
            f"proxy_set_header {AUTH} {quoted(external.url)};",
        )
        if re.fullmatch(r"\d+[kKmMgG]?", location.settings.body_size):
            put(f"client_max_body_size {location.settings.body_size};")
        parts = urlsplit(external.url)
        query = f"?{parts.query}" if parts.query else ""
        target = f"http://127.0.0.1:{self.run.origin}{parts.path}{query}"
        put(f"set $target {quoted(target)}; proxy_http_version 1.1; proxy_pass $target; }}")

    def _authentication(self, location: Location, auth_path: str, signin: str) -> None:
        external, put = self._external(location), self._put
        if auth_path:
            always = " always" if external.always_cookie else ""
            put(
                f"auth_request {auth_path}; auth_request_set $auth_cookie $upstream_http_set_cookie;"
            )
            put(f"add_header Set-Cookie $auth_cookie{always};")
            for number, name in enumerate(external.response_headers):
                variable = name.lower().replace("-", "_")
                put(f"auth_request_set $authHeader{number} $upstream_http_{variable};")
                put(f"proxy_set_header '{name}' $authHeader{number};")
        if external.signin:
            put(f"error_page 401 = {signin};")
        if location.settings.realm is not None:
            data = location.settings.password_file.encode()
            file = self.run.folder / f"{hashlib.sha1(data).hexdigest()}.passwd"
            file.write_bytes(data)
            put(f"auth_basic {quoted(location.settings.realm)}; auth_basic_user_file {file};")
            put('proxy_set_header Authorization "";')

    def _limit(self, location: Location) -> None:
        for kind, unit in (("limit-rps", "s"), ("limit-rpm", "m")):
            if limit := location.settings.limits.get(kind):
                burst = limit * location.settings.burst
                self._put(f"limit_req zone={_zone(location)}_{unit} burst={burst} nodelay;")
        if location.settings.limits:
            self._put("limit_req_status 503;")

    def _request_headers(self, location: Location) -> None:
        settings, config, put = location.settings, self.model.config, self._put
        full = self.forwarded and config.get("compute-full-forwarded-for") == "true"
        put(
            f"proxy_set_header Host {quoted(settings.vhost) if settings.vhost else '$best_http_host'};",
            "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;",
            "proxy_set_header X-Request-ID $req_id; proxy_set_header X-Real-IP $remote_addr;",
            f"proxy_set_header X-Forwarded-For {'$full_x_forwarded_for' if full else '$remote_addr'};",
            "proxy_set_header X-Forwarded-Host $best_http_host;",
            "proxy_set_header X-Forwarded-Port $pass_port;",
            "proxy_set_header X-Forwarded-Proto $pass_access_scheme;",
            "proxy_set_header X-Forwarded-Scheme $pass_access_scheme;",
            "proxy_set_header X-Scheme $pass_access_scheme;",
            "proxy_set_header X-Original-Forwarded-For $http_x_forwarded_for;",
            "proxy_set_header X-Original-Forwarded-Host $http_x_forwarded_host;",
            'proxy_set_header Proxy ""; proxy_http_version 1.1;',
            f"proxy_cookie_domain {settings.cookie_domain}; proxy_cookie_path {settings.cookie_path};",
        )
        if config.get("proxy-add-original-uri-header") == "true":
            put("proxy_set_header X-Original-URI $request_uri;")
        if settings.prefix and settings.target and settings.target != location.path:
            put(f"proxy_set_header X-Forwarded-Prefix {quoted(settings.prefix)};")
        if location.backend.startswith("custom-default-backend-"):
            put(
                "proxy_set_header X-Code 503; proxy_set_header X-Format $http_accept;",
                *_DESCRIPTION,
            )
        number = (
            list(self.model.upstreams).index(location.backend)
            if (location.backend in self.model.upstreams)
            else 0
        )
        put(f"proxy_set_header {UPSTREAM} $upstream_{number};")


_BLOCKS = ("if ($block_user_agent) { return 403; }", "if ($block_referer) { return 403; }")
_DESCRIPTION = (
    "proxy_set_header X-Namespace $namespace; proxy_set_header X-Ingress-Name $ingress_name;",
    "proxy_set_header X-Service-Name $service_name; proxy_set_header X-Service-Port $service_port;",
)


def _pool(upstream: str) -> str:
    return "standard" if upstream == "upstream-default-backend" else "origin"


def _zone(location: Location) -> str:
    assert location.ingress is not None
    return f"{location.ingress.namespace}_{location.ingress.name}".replace("-", "_")


def _in_list(location: Location, listed: str) -> bool:
    return any(one.strip() and location.path.startswith(one.strip()) for one in listed.split(","))


def _server_name(name: str) -> str:
    if not name.startswith("*"):
        return quoted(name)
    rest = "\\.".join(name.replace("*.", "", 1).split("."))
    return quoted(rf"~^(?<subdomain>[\w-]+)\.{rest}$")


def _signin(url: str, parameter: str) -> str:
    parameter = parameter or "rd"
    url = url.replace("$escaped_request_uri", f"{ESCAPE}$request_uri{ESCAPED}")
    query = urlsplit(url).query
    values = [one.partition("=") for one in query.split("&") if one]
    if any(name == parameter and value for name, _, value in values):
        return url
    mark = "&" if values else "?"
    return f"{url}{mark}{parameter}=$pass_access_scheme://$http_host{ESCAPE}$request_uri{ESCAPED}"
