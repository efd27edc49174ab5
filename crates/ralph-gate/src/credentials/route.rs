//! Which credential is for which host, methods and paths.

use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;
use ralph_core::net::{Endpoint, Host};
use ralph_core::secret::{Redactor, Secret, Shapes};

use super::Phantom;
use super::path::Pattern;
use crate::gate::GateError;
use crate::http::Place;
use crate::meter::Wire;

/// One credential, and everything it may be used for.
pub struct Route {
    pub(super) name: String,
    pub(super) prefix: String,
    pub(super) upstream: Upstream,
    pub(super) kind: Kind,
    pub(super) secret: Arc<Secret>,
    pub(super) redactor: Redactor,
    pub(super) phantom: Phantom,
    pub(super) uses: Vec<Use>,
    pub(super) dialect: Dialect,
    /// Whether its host is reached through here alone.
    pub(super) is_exclusive: bool,
}

/// Where a credential belongs.
#[derive(Debug, Clone)]
pub(super) struct Upstream {
    pub(super) place: Place,
    pub(super) endpoint: Endpoint,
    /// What stands in `Host`.
    pub(super) host: HeaderValue,
    /// What stands before each path there.
    pub(super) base: String,
}

/// How a credential is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `x-api-key`, as Anthropic's keys.
    ApiKey,
    /// `Authorization: Bearer` and the mark of a login, as Anthropic's.
    AnthropicLogin,
    /// `Authorization: Bearer`.
    Bearer,
    /// `Authorization: Basic`, as git does it with GitHub.
    GitBasic,
}

/// In whose form errors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Anthropic,
    OpenAi,
    Plain,
}

/// One thing that a credential may be used for.
#[derive(Debug, Clone)]
pub(super) struct Use {
    pub(super) method: Method,
    pub(super) path: Pattern,
    pub(super) query: Query,
    pub(super) asks: Asks,
}

/// What a request asks of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// Nothing: its body is passed on as it arrives.
    Nothing,
    /// Something that is free of charge. Its body is parsed and screened.
    Free(Wire),
    /// An answer, which is paid for.
    Answer(Wire),
    /// An answer whose length the request cannot limit.
    FixedAnswer(Wire),
}

/// Which queries go with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Query {
    Any,
    None,
    Exactly(&'static str),
}

impl Query {
    pub(super) fn covers(self, query: Option<&str>) -> bool {
        match self {
            Self::Any => true,
            Self::None => query.is_none(),
            Self::Exactly(exact) => query == Some(exact),
        }
    }
}

impl Route {
    /// Returns its name: `anthropic`, `openai`, `github`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the sandbox is given instead of the credential.
    pub fn phantom(&self) -> &Phantom {
        &self.phantom
    }

    /// Returns the base URL inside the sandbox, where the credential port is at an address.
    pub fn base_url(&self, address: std::net::SocketAddr) -> String {
        format!("http://{address}{}", self.prefix)
    }

    /// Returns it without its name in front of its paths, for a port that has no other.
    #[must_use]
    pub fn at_root(mut self) -> Self {
        if let Some(rest) = self.prefix.strip_prefix(&format!("/{}", self.name)) {
            self.prefix = rest.to_owned();
        }
        self
    }

    /// Returns the endpoint that the credential is sent to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.upstream.endpoint
    }

    /// Finds what a request would use it for.
    pub(super) fn find(&self, method: &Method, path: &str, query: Option<&str>) -> Option<&Use> {
        self.uses.iter().find(|use_| {
            use_.method == *method && use_.path.covers(path) && use_.query.covers(query)
        })
    }

    pub(super) fn redactor(name: &str, secret: &Secret) -> Redactor {
        let copy = Secret::new(secret.expose().to_owned());
        Redactor::new(vec![(name.to_owned(), copy)]).looking_for(Shapes::None)
    }
}

/// The credentials of a sandbox.
pub(crate) struct Routes {
    routes: Vec<Route>,
}

impl Routes {
    pub(crate) fn new(routes: Vec<Route>) -> Result<Self, GateError> {
        for (index, route) in routes.iter().enumerate() {
            if routes[..index]
                .iter()
                .any(|other| other.prefix == route.prefix)
            {
                let prefix = route.prefix.clone();
                return Err(GateError::SamePrefix { prefix });
            }
        }
        Ok(Self { routes })
    }

    pub(crate) fn all(&self) -> &[Route] {
        &self.routes
    }

    /// Tells whether a host is reached through here alone.
    pub(crate) fn keep(&self, host: &Host) -> bool {
        self.routes
            .iter()
            .any(|route| route.is_exclusive && route.upstream.endpoint.host == *host)
    }

    /// Finds the route of a path, and what of the path comes after its own.
    pub(super) fn find<'a>(&self, path: &'a str) -> Option<(&Route, &'a str)> {
        self.routes
            .iter()
            .filter_map(|route| {
                let rest = path.strip_prefix(route.prefix.as_str())?;
                rest.starts_with('/').then_some((route, rest))
            })
            .max_by_key(|(route, _)| route.prefix.len())
    }
}
