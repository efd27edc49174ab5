//! Which credential is for which host, methods and paths.

use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;
use ralph_core::net::{Endpoint, Host};
use ralph_core::secret::{Redactor, Secret, TokenShapes};

use super::PlaceholderToken;
use super::path::PathPattern;
use crate::gate::GateError;
use crate::http::HttpOrigin;
use crate::meter::ModelWireFormat;

/// One credential, and everything it may be used for.
pub struct Route {
    pub(super) name: String,
    pub(super) prefix: String,
    pub(super) upstream: RouteUpstream,
    pub(super) kind: CredentialScheme,
    pub(super) secret: Arc<Secret>,
    pub(super) redactor: Redactor,
    pub(super) placeholder: PlaceholderToken,
    pub(super) allowed_requests: Vec<AllowedRequest>,
    pub(super) dialect: ErrorDialect,
    /// Whether its host is reached through here alone.
    pub(super) is_exclusive: bool,
}

/// Where a credential belongs.
#[derive(Debug, Clone)]
pub(super) struct RouteUpstream {
    pub(super) origin: HttpOrigin,
    pub(super) endpoint: Endpoint,
    /// What stands in `Host`.
    pub(super) host_header: HeaderValue,
    /// What stands before each path there.
    pub(super) base_path: String,
}

/// How a credential is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CredentialScheme {
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
pub(super) enum ErrorDialect {
    Anthropic,
    OpenAi,
    Plain,
}

/// One thing that a credential may be used for.
#[derive(Debug, Clone)]
pub(super) struct AllowedRequest {
    pub(super) method: Method,
    pub(super) path: PathPattern,
    pub(super) query: QueryPattern,
    pub(super) billing: RequestBilling,
}

/// What a request asks of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestBilling {
    /// Nothing: its body is passed on as it arrives.
    Passthrough,
    /// Something that is free of charge. Its body is parsed and screened.
    Free(ModelWireFormat),
    /// An answer, which is paid for.
    Metered(ModelWireFormat),
    /// An answer whose length the request cannot limit.
    MeteredUnlimited(ModelWireFormat),
}

/// Which queries go with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryPattern {
    Any,
    None,
    Exact(&'static str),
}

impl QueryPattern {
    pub(super) fn matches(self, query: Option<&str>) -> bool {
        match self {
            Self::Any => true,
            Self::None => query.is_none(),
            Self::Exact(exact) => query == Some(exact),
        }
    }
}

impl Route {
    /// Returns its name: `anthropic`, `openai`, `github`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the sandbox is given instead of the credential.
    pub fn placeholder(&self) -> &PlaceholderToken {
        &self.placeholder
    }

    /// Returns the base URL inside the sandbox, where the credential port is at an address.
    pub fn base_url(&self, address: std::net::SocketAddr) -> String {
        format!("http://{address}{}", self.prefix)
    }

    /// Returns it without its name in front of its paths, for a port that has no other.
    #[must_use]
    pub fn without_name_prefix(mut self) -> Self {
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
    pub(super) fn find_allowed_request(
        &self,
        method: &Method,
        path: &str,
        query: Option<&str>,
    ) -> Option<&AllowedRequest> {
        self.allowed_requests.iter().find(|use_| {
            use_.method == *method && use_.path.matches(path) && use_.query.matches(query)
        })
    }

    pub(super) fn redactor(name: &str, secret: &Secret) -> Redactor {
        let copy = Secret::new(secret.expose().to_owned());
        Redactor::new(vec![(name.to_owned(), copy)]).with_shapes(TokenShapes::None)
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
                return Err(GateError::DuplicatePrefix { prefix });
            }
        }
        Ok(Self { routes })
    }

    pub(crate) fn as_slice(&self) -> &[Route] {
        &self.routes
    }

    /// Tells whether a host is reached through here alone.
    pub(crate) fn is_exclusive_host(&self, host: &Host) -> bool {
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
