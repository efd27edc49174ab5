//! The server: listens, serves requests and ends.

use std::net::SocketAddr;

use ralph_app::{App, AppError};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::api;
use crate::context::ServerContext;
use crate::options::ServeOptions;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    context: ServerContext,
    address: ServerAddress,
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    pub socket: SocketAddr,
}

impl Server {
    /// Listens on the address of the options.
    pub async fn bind(app: App, options: ServeOptions) -> Result<Self, AppError> {
        let wanted = SocketAddr::new(options.host, options.port);
        let cannot_listen = |error: std::io::Error| {
            AppError::runtime(
                format!("cannot listen on {wanted}"),
                error.to_string(),
                "choose another port with `--port`, or a free one with `--port 0`",
            )
        };
        let listener = TcpListener::bind(wanted).await.map_err(cannot_listen)?;
        let socket = listener.local_addr().map_err(cannot_listen)?;
        Ok(Self {
            listener,
            context: ServerContext::new(app, &options),
            address: ServerAddress { socket },
        })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Serves requests until `stop` becomes true.
    pub async fn serve(self, mut stop: watch::Receiver<bool>) -> Result<(), AppError> {
        let supervisor = self.context.supervisor.clone();
        let router = api::routes().with_state(self.context);
        let stopped = async move {
            // A dropped sender stops the server, too.
            let _stopped = stop.wait_for(|stop| *stop).await;
        };
        axum::serve(self.listener, router)
            .with_graceful_shutdown(stopped)
            .await
            .map_err(|error| {
                AppError::runtime("the server failed", error.to_string(), "start it again")
            })?;
        supervisor.interrupt_all();
        Ok(())
    }
}
