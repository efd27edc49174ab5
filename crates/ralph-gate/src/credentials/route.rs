//! Routes: the host, methods and paths for which a credential may be used.

use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;
use ralph_core::net::{Endpoint, Host};
use ralph_core::ports::{GitCredential, ScmError};
use ralph_core::secret::{Redactor, Secret, TokenShapes};

use super::PlaceholderToken;
use super::path::PathPattern;
use crate::gate::GateError;
use crate::http::HttpOrigin;
use crate::meter::ModelWireFormat;

/// A credential and the requests it may be used for.
pub struct Route {
    pub(super) name: String,
    pub(super) prefix: String,
    pub(super) upstream: RouteUpstream,
    pub(super) kind: CredentialScheme,
    pub(super) credential: RouteCredential,
    pub(super) placeholder: PlaceholderToken,
    pub(super) allowed_requests: Vec<AllowedRequest>,
    pub(super) dialect: ErrorDialect,
    /// Whether the host is reachable only through the credential port.
    pub(super) is_exclusive: bool,
}

/// The source of the credential of a route.
pub(super) enum RouteCredential {
    /// It stays the same.
    Fixed(SentCredential),
    /// It is read for each request, because it can expire or be replaced.
    Git(Arc<dyn GitCredential>),
}

/// A credential as it is sent, and the redactor that removes it from responses.
#[derive(Clone)]
pub(super) struct SentCredential {
    pub(super) secret: Arc<Secret>,
    pub(super) redactor: Redactor,
}

impl SentCredential {
    pub(super) fn new(name: &str, secret: Secret) -> Self {
        let copy = Secret::new(secret.expose().to_owned());
        let redactor = Redactor::new(vec![(name.to_owned(), copy)]);
        Self {
            secret: Arc::new(secret),
            redactor: redactor.with_shapes(TokenShapes::None),
        }
    }
}

/// The upstream that a credential is sent to.
#[derive(Debug, Clone)]
pub(super) struct RouteUpstream {
    pub(super) origin: HttpOrigin,
    pub(super) endpoint: Endpoint,
    /// The value of the `Host` header.
    pub(super) host_header: HeaderValue,
    /// The prefix of every upstream path.
    pub(super) base_path: String,
}

/// The way a credential is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CredentialScheme {
    /// `x-api-key`, for Anthropic API keys.
    ApiKey,
    /// `Authorization: Bearer` with the login marker, for Anthropic logins.
    AnthropicLogin,
    /// `Authorization: Bearer`.
    Bearer,
    /// `Authorization: Basic`, as git sends it to GitHub.
    GitBasic,
}

/// The format of error responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorDialect {
    Anthropic,
    OpenAi,
    Plain,
}

/// A kind of request that a credential may be used for.
#[derive(Debug, Clone)]
pub(super) struct AllowedRequest {
    pub(super) method: Method,
    pub(super) path: PathPattern,
    pub(super) query: QueryPattern,
    pub(super) billing: RequestBilling,
}

/// The way a request is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestBilling {
    /// Not billed; the body is streamed through unread.
    Passthrough,
    /// Free of charge, but the body is parsed and screened.
    Free(ModelWireFormat),
    /// Billed for the response.
    Metered(ModelWireFormat),
    /// Billed for a response whose length the request cannot limit.
    MeteredUnlimited(ModelWireFormat),
}

/// The queries accepted with a path.
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
    /// Returns the route name, such as `anthropic`, `openai` or `github`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the placeholder token that the sandbox uses instead of the credential.
    pub fn placeholder(&self) -> &PlaceholderToken {
        &self.placeholder
    }

    /// Returns the base URL inside the sandbox for a credential port at an address.
    pub fn base_url(&self, address: std::net::SocketAddr) -> String {
        format!("http://{address}{}", self.prefix)
    }

    /// Drops the name prefix of the paths, for a port with a single route.
    #[must_use]
    pub fn without_name_prefix(mut self) -> Self {
        if let Some(rest) = self.prefix.strip_prefix(&format!("/{}", self.name)) {
            self.prefix = rest.to_owned();
        }
        self
    }

    /// Changes the name and the name prefix of the paths, for a second credential of one provider.
    #[must_use]
    pub fn renamed(mut self, name: &str) -> Self {
        if let Some(rest) = self.prefix.strip_prefix(&format!("/{}", self.name)) {
            self.prefix = format!("/{name}{rest}");
        }
        name.clone_into(&mut self.name);
        self
    }

    /// Returns whether its requests are billed.
    pub fn is_metered(&self) -> bool {
        let is_billed = |allowed: &AllowedRequest| allowed.billing != RequestBilling::Passthrough;
        self.allowed_requests.iter().any(is_billed)
    }

    /// Returns the endpoint that the credential is sent to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.upstream.endpoint
    }

    /// Returns the allowed request that matches, if any.
    pub(super) fn find_allowed_request(
        &self,
        method: &Method,
        path: &str,
        query: Option<&str>,
    ) -> Option<&AllowedRequest> {
        self.allowed_requests.iter().find(|allowed| {
            allowed.method == *method && allowed.path.matches(path) && allowed.query.matches(query)
        })
    }

    /// Returns the credential that is valid now.
    pub(super) async fn current_credential(&self) -> Result<SentCredential, ScmError> {
        match &self.credential {
            RouteCredential::Fixed(credential) => Ok(credential.clone()),
            RouteCredential::Git(source) => {
                let login = source.login().await?;
                Ok(SentCredential::new(&self.name, login.password))
            }
        }
    }
}

/// The routes of a sandbox. Their prefixes are unique.
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

    /// Returns whether a host is reachable only through the credential port.
    pub(crate) fn is_exclusive_host(&self, host: &Host) -> bool {
        self.routes
            .iter()
            .any(|route| route.is_exclusive && route.upstream.endpoint.host == *host)
    }

    /// Returns the route for a path, and the rest of the path after the route's prefix.
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
