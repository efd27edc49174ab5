//! The server: listens, serves requests and ends.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::middleware::from_fn;
use ralph_app::server::StateLock;
use ralph_app::{App, AppError};
use ralph_core::secret::Secret;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::auth::{
    AccessControl, AccessToken, AllowedOrigins, RequestGuard, SessionCookie, WebOrigin, WebScheme,
};
use crate::context::{ServerContext, WebAddress};
use crate::edge::{RequestService, ServerListener, serve_connections};
use crate::options::ServeOptions;
use crate::server_file::PublishedServer;
use crate::telemetry::label_route;
use crate::{api, pages, tls};

/// The interval in which expired sessions end.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long a stopping server waits for its runs, its operations and its poller. Together with the other
/// waits, it ends within 12 seconds.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(7);
/// How long a stopping server waits for the collector of telemetry.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<ServerListener>,
    service: Arc<RequestService>,
    context: ServerContext,
    address: ServerAddress,
    /// Held as long as the server works with the state directory.
    lock: StateLock,
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    pub socket: SocketAddr,
    /// The address for browsers, without a slash at the end.
    pub url: String,
    /// The address for programs on this machine, without a slash at the end.
    pub local_url: String,
}

impl Server {
    /// Listens on the address of the options.
    pub async fn bind(app: App, mut options: ServeOptions) -> Result<Self, AppError> {
        require_encryption(&options)?;
        let token = match options.token.take() {
            Some(token) => AccessToken::from_environment(token)?,
            None => AccessToken::generate(),
        };
        let lock = StateLock::acquire(app.state_dir()?.root(), &*app.clock())?;
        let (listeners, address) = listen(&options).await?;
        app.add_secret("RALPH_TOKEN", token.secret());
        let app = Arc::new(app);
        let access = Arc::new(AccessControl::new(token, app.clock()));
        let web = Arc::new(web_address(&address, &options));
        let guard = RequestGuard {
            access: access.clone(),
            cookie: web.cookie.clone(),
            origins: allowed_origins(&listeners, &options),
            has_https_name: has_https_name(&options),
            is_behind_proxy: options.behind_proxy,
        };
        let local_url = address.local_url.clone();
        let published = PublishedServer::new(&app, local_url, access.token())?;
        let edge = (access, web, Arc::new(published));
        let context = ServerContext::new(app, options.workers, edge)?;
        let router = api::routes().merge(pages::routes());
        let router = router.layer(from_fn(label_route));
        let router = router.with_state(context.clone());
        let service = RequestService::new(router, guard, &context);
        Ok(Self {
            listeners,
            service: Arc::new(service),
            context,
            address,
            lock,
        })
    }

    /// Returns the addresses of the server.
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Returns the token of programs.
    pub fn token(&self) -> Secret {
        self.context.access.token()
    }

    /// Returns the application whose runs the server works on.
    pub fn app(&self) -> Arc<App> {
        self.context.app.clone()
    }

    /// Returns a new link that signs a browser in once.
    pub fn login_link(&self) -> String {
        let created = self.context.access.create_login_code();
        self.context.web.login_link(created.code.expose())
    }

    /// Serves requests until `stop` becomes true.
    pub async fn serve(self, mut stop: watch::Receiver<bool>) -> Result<(), AppError> {
        let ServerContext {
            supervisor,
            access,
            published,
            index,
            app,
            operations,
            poller,
            live,
            ..
        } = self.context;
        supervisor.resume_runs()?;
        let stopping = watch::Sender::new(false);
        let serving = serve_connections(self.listeners, self.service, stopping.subscribe());
        let stopped = async {
            tokio::select! {
                // A dropped sender stops the server, too.
                _ = stop.wait_for(|stop| *stop) => {}
                () = end_expired_sessions(&access) => {}
            }
            stopping.send_replace(true);
            tokio::join!(
                supervisor.shut_down(),
                operations.stop(),
                poller.stop(),
                live.close()
            );
        };
        let maintained = index.maintain(stopping.subscribe());
        tokio::join!(serving, stopped, maintained);
        published.remove();
        // The last spans of the parked runs.
        let telemetry = app.telemetry();
        let flushed = tokio::task::spawn_blocking(move || telemetry.flush(FLUSH_TIMEOUT));
        if flushed.await.is_err() {
            tracing::debug!("the flush of telemetry failed");
        }
        drop(self.lock);
        Ok(())
    }
}

async fn end_expired_sessions(access: &AccessControl) {
    let mut ticks = interval(EXPIRY_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        access.remove_expired();
    }
}

/// Refuses to send tokens and cookies over a network without encryption.
fn require_encryption(options: &ServeOptions) -> Result<(), AppError> {
    if options.host.is_loopback() || options.tls.is_some() || options.behind_proxy {
        return Ok(());
    }
    Err(AppError::usage(
        format!("refusing to listen on {}", options.host),
        "other machines can reach it, and connections are not encrypted",
        "use `--tls-cert` and `--tls-key`, or `--behind-proxy` if a proxy encrypts them",
    ))
}

/// Opens the listeners: the one of the options, and with TLS another one for programs of this machine,
/// which then need not trust the certificate.
async fn listen(options: &ServeOptions) -> Result<(Vec<ServerListener>, ServerAddress), AppError> {
    let acceptor = options.tls.as_ref().map(tls::acceptor).transpose()?;
    let main = bind(SocketAddr::new(options.host, options.port), acceptor).await?;
    let own = WebOrigin {
        scheme: main.scheme(),
        host: reachable(main.address.ip()).into(),
        port: main.address.port(),
    };
    let url = match &options.public_url {
        Some(public) => format!("{}{}", public.origin, public.base_path),
        None => own.to_string(),
    };
    let mut address = ServerAddress {
        socket: main.address,
        local_url: own.to_string(),
        url,
    };
    let mut listeners = vec![main];
    if options.tls.is_some() {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let local = bind(local, None).await?;
        address.local_url = format!("http://{}", local.address);
        listeners.push(local);
    }
    Ok((listeners, address))
}

async fn bind(
    wanted: SocketAddr,
    tls: Option<tokio_rustls::TlsAcceptor>,
) -> Result<ServerListener, AppError> {
    let bound = TcpListener::bind(wanted).await;
    let bound = bound.and_then(|socket| Ok::<_, io::Error>((socket.local_addr()?, socket)));
    let (address, socket) = bound.map_err(|error| {
        AppError::runtime(
            format!("cannot listen on {wanted}"),
            error.to_string(),
            "choose another port with `--port`, or a free one with `--port 0`",
        )
    })?;
    Ok(ServerListener {
        socket,
        address,
        tls,
    })
}

/// Returns an address to connect to: no client can connect to the one that means all addresses.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V4(_) | IpAddr::V6(_) => address,
    }
}

fn allowed_origins(listeners: &[ServerListener], options: &ServeOptions) -> AllowedOrigins {
    let own = listeners
        .iter()
        .map(|listener| (listener.address, listener.scheme()));
    let public = options.public_url.as_ref();
    AllowedOrigins::new(own, public.map(|public| public.origin.clone()))
}

/// Returns whether browsers use a name of the server, which can require HTTPS.
fn has_https_name(options: &ServeOptions) -> bool {
    options
        .public_url
        .as_ref()
        .is_some_and(|public| public.origin.scheme == WebScheme::Https)
}

fn web_address(address: &ServerAddress, options: &ServeOptions) -> WebAddress {
    let is_https = options.tls.is_some() || has_https_name(options);
    let scheme = if is_https {
        WebScheme::Https
    } else {
        WebScheme::Http
    };
    let base_path = options.public_url.as_ref();
    let base_path = base_path.map(|public| public.base_path.clone());
    let base_path = base_path.unwrap_or_default();
    WebAddress {
        url: address.url.clone(),
        cookie: SessionCookie::new(scheme, &base_path),
        base_path,
        is_behind_proxy: options.behind_proxy,
    }
}
