//! A proxy of Pingora for the bench: routes by host and path prefix, with the headers that all proxies add.
//!
//! Arguments: PORT ROUTES PROTOCOLS [CERTIFICATE KEY]. ROUTES is a file of lines "host prefix address". PROTOCOLS: "1" or "2" for
//! clients, then for backends. With a certificate clients speak TLS. One worker thread.

use async_trait::async_trait;
use pingora::apps::HttpServerOptions;
use pingora::prelude::*;
use pingora::server::configuration::ServerConf;
use std::{collections::HashMap, fs, time::Instant};

struct Route {
    prefix: String,
    address: String,
}

struct Gateway {
    hosts: HashMap<String, Vec<Route>>,
    scheme: &'static str,
    backends: u8,
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = Option<Instant>;

    fn new_ctx(&self) -> Self::CTX {
        None
    }

    async fn upstream_peer(&self, session: &mut Session, _: &mut Self::CTX) -> Result<Box<HttpPeer>> {
        let head = session.req_header();
        let host = head.headers.get("host").and_then(|value| value.to_str().ok()).unwrap_or("");
        let path = head.uri.path();
        let routes = self.hosts.get(host).map_or(&[][..], Vec::as_slice);
        match routes.iter().find(|route| path.starts_with(&route.prefix)) {
            Some(route) => {
                let mut peer = HttpPeer::new(route.address.as_str(), false, String::new());
                peer.options.set_http_version(self.backends, self.backends);
                Ok(Box::new(peer))
            }
            None => Error::e_explain(ErrorType::HTTPStatus(404), "no route"),
        }
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        began: &mut Self::CTX,
    ) -> Result<()> {
        *began = Some(Instant::now());
        let client = session.client_addr().and_then(|one| one.as_inet()).map(|one| one.ip().to_string());
        request.insert_header("x-forwarded-for", client.unwrap_or_default())?;
        request.insert_header("x-forwarded-proto", self.scheme)?;
        request.insert_header("x-request-id", uuid::Uuid::new_v4().to_string())?;
        request.insert_header("x-edge-internal", "true")?;
        request.insert_header("x-edge-expected-rq-timeout-ms", "15000")
    }

    async fn response_filter(
        &self,
        _: &mut Session,
        response: &mut ResponseHeader,
        began: &mut Self::CTX,
    ) -> Result<()> {
        let taken = began.map_or(0, |one| one.elapsed().as_millis());
        response.insert_header("x-edge-upstream-service-time", taken.to_string())?;
        response.insert_header("server", "pingora")
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (port, routes, protocols) = (&arguments[0], &arguments[1], arguments[2].as_bytes());
    let mut hosts: HashMap<String, Vec<Route>> = HashMap::new();
    for line in fs::read_to_string(routes).expect("routes").lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let route = Route { prefix: parts[1].into(), address: parts[2].into() };
        hosts.entry(parts[0].into()).or_default().push(route);
    }
    let mut settings = ServerConf::default();
    (settings.threads, settings.upstream_keepalive_pool_size) = (1, 1024);
    let mut server = Server::new_with_opt_and_conf(None, settings);
    server.bootstrap();
    let certificate = arguments.get(3).zip(arguments.get(4));
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let gateway = Gateway { hosts, scheme, backends: protocols[1] - b'0' };
    let mut service = http_proxy_service(&server.configuration, gateway);
    let mut options = HttpServerOptions::default();
    options.h2c = protocols[0] == b'2';
    service.app_logic_mut().expect("application").server_options = Some(options);
    let address = format!("127.0.0.1:{port}");
    match certificate {
        None => service.add_tcp(&address),
        Some((certificate, key)) => service.add_tls(&address, certificate, key).expect("certificate"),
    }
    server.add_service(service);
    server.run_forever();
}
